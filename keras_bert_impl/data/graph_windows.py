"""Windows over words and over contexts as TensorFlow operations, for graphs that are served.

The rows are those of `encode_words` and `encode_questions`, which encode whole files in NumPy.

Shapes: N texts, W words, R rows (windows), S sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.text.packing import pack

__all__ = ["QuestionRows", "WordRows", "first_of_best", "question_rows", "word_rows"]


class WordRows(NamedTuple):
    """Rows ``[CLS] pieces [SEP]``, and where in their values the first piece of each word is.

    ``token_ids`` and ``segment_ids`` are ragged int32 [R, (S)], ``positions`` int64 [W].
    """

    token_ids: tf.RaggedTensor
    segment_ids: tf.RaggedTensor
    positions: tf.Tensor


class QuestionRows(NamedTuple):
    """Rows ``[CLS] question [SEP] part of the context [SEP]``.

    Attributes:
        token_ids, segment_ids: ragged int32 [R, (S)].
        question_of: the question of each row, int64 [R], ascending.
        first_lengths: where the context begins in the row, int64 [R].
        first_pieces: the piece of all contexts that is the first of the row, int64 [R].
        piece_counts: pieces of the context in the row, int64 [R].
        starts, ends: characters of the pieces of all contexts, int32 [pieces].
    """

    token_ids: tf.RaggedTensor
    segment_ids: tf.RaggedTensor
    question_of: tf.Tensor
    first_lengths: tf.Tensor
    first_pieces: tf.Tensor
    piece_counts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def word_rows(tokenizer, words: tf.RaggedTensor, *, max_length: int) -> WordRows:
    """The rows of `encode_words` with its default overlap.

    Args:
        tokenizer: a `BertTokenizer`.
        words: string [N, (W)].
        max_length: longest row, special tokens included, at least 3.
    """
    capacity = max_length - 2
    pieces = _pieces(tokenizer, words.flat_values)[:, :capacity]
    before = pieces.row_splits
    sentence_of, firsts, lasts = _cut(before, words.row_splits, capacity, capacity // 4)
    starts, ends = (
        tf.gather(splits, sentence_of) for splits in (words.row_splits, words.row_splits[1:])
    )
    owner = _owners(before, (firsts, lasts), (starts, ends))
    firsts, lasts = tf.gather(before, firsts), tf.gather(before, lasts)
    places = tf.ragged.range(firsts, lasts)
    rows = places.with_flat_values(tf.gather(pieces.flat_values, places.flat_values))
    vocab = tokenizer.vocab
    token_ids, segment_ids = pack(
        rows, max_length=max_length, cls_id=vocab.cls_id, sep_id=vocab.sep_id
    )
    row_starts = tf.gather(token_ids.row_starts(), owner)
    positions = row_starts + 1 + before[:-1] - tf.gather(firsts, owner)
    return WordRows(token_ids, segment_ids, positions)


def _pieces(tokenizer, words: tf.Tensor) -> tf.RaggedTensor:
    """Pieces of each word, at least one: ``[UNK]`` where the tokenizer keeps nothing."""
    pieces = tokenizer.tokenize(words).ids
    missing = tf.cast(pieces.row_lengths() == 0, tf.int64)
    unknown = tf.fill([tf.reduce_sum(missing)], tf.constant(tokenizer.vocab.unk_id, tf.int32))
    unknown = tf.RaggedTensor.from_row_lengths(unknown, missing, validate=False)
    return tf.concat([pieces, unknown], axis=1)


def _cut(before: tf.Tensor, splits: tf.Tensor, capacity: int, overlap: int) -> tuple:
    """Sentence, first and last (excluded) word of each window, int64 [R] each.

    A step of the loop makes the next window of every sentence that is not at its end.
    """
    starts, ends = splits[:-1], splits[1:]
    words = tf.size(before, tf.int64) - 1

    def search(values, side):
        return tf.searchsorted(before, values, side=side, out_type=tf.int64)

    def last_of(first):
        return tf.minimum(search(tf.gather(before, first) + capacity, "right") - 1, ends)

    def first_of(last, pieces):
        return search(tf.gather(before, last) - pieces, "left")

    def step(first, last, *made):
        goes_on = last < ends
        back = first_of(last, overlap)
        fits = tf.gather(before, ends) - tf.gather(before, back) <= capacity
        # The next word must fit, however long it is.
        room = first_of(tf.minimum(last + 1, words), capacity)
        next_first = tf.maximum(tf.maximum(back, room), tf.minimum(first + 1, words))
        next_first = tf.where(fits, first_of(ends, capacity), next_first)
        first = tf.where(goes_on, next_first, first)
        last = tf.where(goes_on, tf.where(fits, ends, last_of(next_first)), last)
        return (first, last, *write(made, first, last, goes_on))

    def write(made, *values):
        return tuple(a.write(a.size(), v) for a, v in zip(made, values, strict=True))

    def array(dtype):
        return tf.TensorArray(dtype, 0, dynamic_size=True, clear_after_read=False)

    first, last = starts, last_of(starts)
    made = write((array(tf.int64), array(tf.int64), array(tf.bool)), first, last, first < last)
    _, _, *made = tf.while_loop(
        lambda first, last, *_: tf.reduce_any(last < ends), step, (first, last, *made)
    )
    firsts, lasts, is_window = (tf.transpose(values.stack()) for values in made)
    sentence_of = tf.where(is_window)[:, 0]
    return sentence_of, tf.boolean_mask(firsts, is_window), tf.boolean_mask(lasts, is_window)


def _owners(before: tf.Tensor, window: tuple, sentence: tuple) -> tf.Tensor:
    """The window in which each word has the most context, int64 [W]: the first of equal ones."""
    (firsts, lasts), (starts, ends) = window, sentence
    words = tf.ragged.range(firsts, lasts)
    word, row = words.flat_values, words.value_rowids()
    far = tf.int64.max
    left = tf.gather(before, word) - tf.gather(tf.gather(before, firsts), row)
    right = tf.gather(tf.gather(before, lasts), row) - tf.gather(before, word + 1)
    left = tf.where(tf.gather(firsts > starts, row), left, far)
    right = tf.where(tf.gather(lasts < ends, row), right, far)
    return first_of_best(tf.minimum(left, right), word, row, tf.size(before, tf.int64) - 1)


def first_of_best(
    values: tf.Tensor, item: tf.Tensor, row: tf.Tensor, count: tf.Tensor
) -> tf.Tensor:
    """For each of `count` items the first row in which its value is largest, int64 [count]."""
    best = tf.math.unsorted_segment_max(values, item, count)
    rows = tf.where(values == tf.gather(best, item), row, tf.int64.max)
    return tf.math.unsorted_segment_min(rows, item, count)


def question_rows(
    tokenizer,
    questions: tf.Tensor,
    contexts: tf.Tensor,
    *,
    max_length: int,
    doc_stride: int,
    max_query_length: int,
) -> QuestionRows:
    """The rows of `encode_questions`; a context of nothing has one row too.

    Args:
        tokenizer: a `BertTokenizer`.
        questions, contexts: string [N] each.
        max_length, doc_stride, max_query_length: as in `encode_questions`, which checks them.
    """
    queries = tokenizer.tokenize(questions).ids[:, :max_query_length]
    pieces = tokenizer.tokenize(contexts)
    room = max_length - queries.row_lengths() - 3
    total = pieces.ids.row_lengths()
    windows = 1 + tf.maximum(-((room - total) // doc_stride), 0)
    question_of = tf.repeat(tf.range(queries.nrows()), windows)
    offsets = doc_stride * tf.ragged.range(windows).flat_values
    counts = tf.minimum(tf.gather(room, question_of), tf.gather(total, question_of) - offsets)
    firsts = tf.gather(pieces.ids.row_starts(), question_of) + offsets
    places = tf.ragged.range(firsts, firsts + counts)
    parts = places.with_flat_values(tf.gather(pieces.ids.flat_values, places.flat_values))
    vocab = tokenizer.vocab
    token_ids, segment_ids = pack(
        tf.gather(queries, question_of),
        parts,
        max_length=max_length,
        cls_id=vocab.cls_id,
        sep_id=vocab.sep_id,
    )
    return QuestionRows(
        token_ids,
        segment_ids,
        question_of,
        tf.gather(queries.row_lengths(), question_of) + 2,
        firsts,
        counts,
        pieces.starts.flat_values,
        pieces.ends.flat_values,
    )
