"""Start and end logits to answers as TensorFlow operations, for graphs that are served.

The answers are those of `decode_spans`: Google's candidates, n-best list and null score.

Shapes: Q questions, R rows (windows), S sequence, B best logits of a row, K candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.data.graph_windows import QuestionRows, first_of_best
from keras_bert_impl.text.characters import Characters

__all__ = ["Answers", "best_answers"]

_PADDING_LOGIT = -1e9


class Answers(NamedTuple):
    """The answer to each question, [Q] each: see `SpanAnswer`.

    Texts are strings, offsets int32, numbers float64. `null_odds` is None unless asked for.
    """

    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    probabilities: tf.Tensor
    null_odds: tf.Tensor | None


class _Candidates(NamedTuple):
    """Spans by question and then by score, best first: [K] each."""

    questions: tf.Tensor
    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    scores: tf.Tensor

    def at(self, places: tf.Tensor) -> _Candidates:
        return _Candidates(*(tf.gather(column, places) for column in self))


def best_answers(
    rows: QuestionRows,
    logits: tf.Tensor,
    contexts: Characters,
    *,
    n_best: int,
    max_answer_length: int,
    unanswerable: bool,
    null_threshold: float,
) -> Answers:
    """One answer a question; "" from 0 to 0 where there is none.

    Args:
        rows: windows of Q questions, each about a context of its own.
        logits: start and end logits of each token of the rows, float32 [tokens, 2].
        contexts: the Q contexts.
        n_best, max_answer_length, unanswerable, null_threshold: as in `decode_spans`.
    """
    number = tf.size(contexts.row_splits, tf.int64) - 1
    width = tf.reduce_max(tf.concat([rows.token_ids.row_lengths(), [1]], 0))
    shape = tf.stack([rows.token_ids.nrows(), width])
    starts, ends = (
        rows.token_ids.with_flat_values(column).to_tensor(_PADDING_LOGIT, shape=shape)
        for column in (logits[:, 0], logits[:, 1])
    )
    found = _candidates(rows, starts, ends, contexts, (n_best, max_answer_length))
    null = None
    if unanswerable:
        scores = tf.cast(starts[:, 0], tf.float64) + tf.cast(ends[:, 0], tf.float64)
        null = tf.math.unsorted_segment_min(scores, rows.question_of, number)
    found = _n_best(_distinct(found), null, n_best, number)
    return _answers(found, null, null_threshold, number)


def _candidates(rows: QuestionRows, starts, ends, contexts, limits: tuple[int, int]) -> _Candidates:
    n_best, max_answer_length = limits
    best = tf.minimum(n_best, tf.shape(starts)[1])
    start_logits, first = tf.math.top_k(starts, best)
    end_logits, last = tf.math.top_k(ends, best)
    first, last = tf.cast(first, tf.int64), tf.cast(last, tf.int64)
    before, counts = rows.first_lengths[:, None], rows.piece_counts[:, None]
    first_in, last_in = ((before <= x) & (x < before + counts) for x in (first, last))
    offsets = tf.cumsum(rows.piece_counts, exclusive=True)[:, None]
    piece = tf.where(first_in, offsets + first - before, tf.reduce_sum(rows.piece_counts))
    first_in &= tf.gather(tf.concat([_is_max_context(rows), [False]], 0), piece)
    length = last[:, None, :] - first[:, :, None]
    valid = first_in[:, :, None] & last_in[:, None, :] & (length >= 0)
    row, i, j = tf.unstack(tf.where(valid & (length < max_answer_length)), axis=1)
    start, end = tf.stack([row, i], 1), tf.stack([row, j], 1)
    scores = (
        tf.cast(tf.gather_nd(values, at), tf.float64)
        for values, at in ((start_logits, start), (end_logits, end))
    )
    place = tf.gather(rows.first_pieces - rows.first_lengths, row)
    start = tf.gather(rows.starts, place + tf.gather_nd(first, start))
    end = tf.gather(rows.ends, place + tf.gather_nd(last, end))
    question = tf.gather(rows.question_of, row)
    texts = contexts.parts(question, start, end)
    found = _Candidates(question, texts, start, end, sum(scores))
    # Stable: equal scores stay in the order of windows and ranks, as Google's sort leaves them.
    found = found.at(tf.argsort(found.scores, direction="DESCENDING", stable=True))
    return found.at(tf.argsort(found.questions, stable=True))


def _is_max_context(rows: QuestionRows) -> tf.Tensor:
    """`DocumentWindows.is_max_context`, bool [sum of piece_counts]."""
    pieces = tf.ragged.range(rows.first_pieces, rows.first_pieces + rows.piece_counts)
    piece, row = pieces.flat_values, pieces.value_rowids()
    left = piece - tf.gather(rows.first_pieces, row)
    count = tf.gather(rows.piece_counts, row)
    nearest = tf.cast(tf.minimum(left, count - 1 - left), tf.float64)
    score = nearest + 0.01 * tf.cast(count, tf.float64)
    owner = first_of_best(score, piece, row, tf.size(rows.starts, tf.int64))
    return tf.gather(owner, piece) == row


def _distinct(found: _Candidates) -> _Candidates:
    """The first of equal texts of a question."""
    key = tf.strings.join([tf.strings.as_string(found.questions), found.texts], " ")
    texts, text_of = tf.unique(key)
    places = tf.range(tf.size(key))
    return found.at(tf.math.unsorted_segment_min(places, text_of, tf.size(texts)))


def _n_best(found: _Candidates, null, n_best: int, number: tf.Tensor) -> _Candidates:
    """The list without "no answer", which takes a place where it is among the best."""
    limit = tf.fill([number], tf.constant(n_best, tf.int64))
    if null is not None:
        above = tf.cast(found.scores >= tf.gather(null, found.questions), tf.int64)
        above = tf.math.unsorted_segment_sum(above, found.questions, number)
        limit -= tf.cast(above < n_best, tf.int64)
    ones = tf.ones_like(found.questions)
    counts = tf.math.unsorted_segment_sum(ones, found.questions, number)
    rank = tf.cumsum(ones, exclusive=True) - tf.gather(
        tf.cumsum(counts, exclusive=True), found.questions
    )
    return found.at(tf.where(rank < tf.gather(limit, found.questions))[:, 0])


def _answers(found: _Candidates, null, null_threshold: float, number: tf.Tensor) -> Answers:
    by_question = tf.RaggedTensor.from_value_rowids(
        tf.range(tf.size(found.questions)), found.questions, number, validate=False
    )
    places = by_question.to_tensor(-1, shape=tf.stack([number, tf.constant(1, tf.int64)]))[:, 0]
    # One more, for a question without candidates.
    exists, empty = places >= 0, tf.size(found.questions)
    places = tf.where(exists, places, empty)
    text, start, end, score = (
        tf.gather(tf.concat([column, tf.zeros([1], column.dtype)], 0), places)
        for column in found[1:]
    )
    top = score if null is None else tf.where(exists, tf.maximum(score, null), null)
    weights = tf.exp(found.scores - tf.gather(top, found.questions))
    total = tf.math.unsorted_segment_sum(weights, found.questions, number)
    probability = tf.exp(score - top) / total
    if null is None:
        one = tf.ones_like(probability)
        return Answers(text, start, end, tf.where(exists, probability, one), None)
    weight = tf.exp(null - top)
    odds = tf.where(exists, null - score, null)
    is_null = ~exists | (odds > null_threshold)
    return Answers(
        tf.where(is_null, "", text),
        tf.where(is_null, 0, start),
        tf.where(is_null, 0, end),
        tf.where(is_null, weight, tf.exp(score - top)) / (total + weight),
        odds,
    )
