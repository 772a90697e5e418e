"""Questions and their contexts as windows `[CLS] question [SEP] part of the context [SEP]`.

Source: google-research/bert `run_squad.py`, convert_examples_to_features: the same windows, the
same answer positions. Offsets are those of our tokenizer, into the raw context, instead of Google's
words between white space.

Shapes: Q questions, W windows, K contexts, D pieces of all contexts.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.encoding import EncodedTexts
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.text.code_points import CHINESE_BLOCKS

__all__ = ["DocumentWindows", "encode_questions", "encode_training_questions"]

_logger = logging.getLogger(__name__)

_TOKENIZER_CHUNK = 512
# Google's words are what stands between these; with Chinese, each character is one.
_SPACES = " \t\r\n\u202f"
_CHINESE = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE_BLOCKS)
_REST_OF_WORD = re.compile(f"[^{_SPACES}{_CHINESE}]*")


@dataclass(frozen=True)
class Pieces:
    """Pieces of several texts, one behind the other: int32 [pieces], and int64 [texts + 1]."""

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    splits: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.splits)


@dataclass(frozen=True)
class DocumentWindows:
    """Windows over the contexts of questions, in the order of the questions.

    Attributes:
        questions: a `QuestionSet` of Q questions.
        rows: the packed windows, `EncodedTexts` of W rows; pieces of the context begin at
            `rows.first_lengths`.
        question_of: int32 [W], the question of each window, ascending; each has at least one.
        first_pieces: int64 [W], the piece of `pieces` that is the first of the context's.
        piece_counts: int64 [W], how many pieces of the context the window holds.
        pieces: pieces of the K contexts, with offsets into them.
        targets: `start` and `end` positions in the row, int32 [W] each; 0 where the window does
            not hold the answer. None without training.
    """

    questions: QuestionSet
    rows: EncodedTexts
    question_of: np.ndarray
    first_pieces: np.ndarray
    piece_counts: np.ndarray
    pieces: Pieces
    targets: dict[str, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.question_of)

    @functools.cached_property
    def is_max_context(self) -> np.ndarray:
        """Whether no other window has more context around a piece, bool [sum of piece_counts].

        A piece may stand in several windows; it counts in the one where the smaller of its left
        and right context is largest, the longer window and then the first winning a tie.
        """
        counts, question_of = self.piece_counts, self.question_of
        window = np.repeat(np.arange(len(self)), counts)
        piece = _ranges(self.first_pieces, counts)
        best = self._context(window, piece)
        is_max = np.ones(len(piece), bool)
        for step in range(1, int(np.bincount(question_of).max(initial=1))):
            overlap = False
            for other, wins in ((window - step, np.greater_equal), (window + step, np.greater)):
                inside = (other >= 0) & (other < len(self))
                other = np.where(inside, other, 0)
                inside &= question_of[other] == question_of[window]
                score = np.where(inside, self._context(other, piece), -1.0)
                is_max &= ~wins(score, best)
                overlap |= bool((score >= 0).any())
            if not overlap:
                break
        return is_max

    def _context(self, window: np.ndarray, piece: np.ndarray) -> np.ndarray:
        """Google's score of a piece in a window; -1 where it is not in it."""
        left = piece - self.first_pieces[window]
        right = self.piece_counts[window] - 1 - left
        score = np.minimum(left, right) + 0.01 * self.piece_counts[window]
        return np.where((left >= 0) & (right >= 0), score, -1.0)


def encode_questions(
    tokenizer,
    questions: QuestionSet,
    *,
    max_length: int = 384,
    doc_stride: int = 128,
    max_query_length: int = 64,
) -> DocumentWindows:
    """Windows to predict from, at least one a question.

    Args:
        tokenizer: a `BertTokenizer`.
        questions: Q questions.
        max_length: longest window, special tokens included. BERT: 384.
        doc_stride: how many pieces of the context the next window starts later. BERT: 128.
        max_query_length: pieces after which a question is cut. BERT: 64.

    Raises:
        ValueError: the longest question leaves no room for the context, or windows would not
            overlap; before anything is tokenized.
    """
    room = max_length - max_query_length - 3
    if min(max_query_length, doc_stride) < 1:
        raise ValueError(
            f"max_query_length and doc_stride must be at least 1, got {max_query_length} and "
            f"{doc_stride}"
        )
    if room < 1:
        raise ValueError(
            f"a question of max_query_length={max_query_length} tokens and 3 special tokens "
            f"leave no room for the context in max_length={max_length}: expected a max_length "
            f"of more than {max_query_length + 3}"
        )
    if doc_stride >= room:
        raise ValueError(
            f"doc_stride={doc_stride} must be less than the {room} tokens of context in a window "
            f"(max_length={max_length} - max_query_length={max_query_length} - 3), or windows "
            "would not overlap"
        )
    contexts = _tokenize(tokenizer, questions.contexts)
    queries = _tokenize(tokenizer, [question.text for question in questions.questions])
    cut = int(np.count_nonzero(queries.lengths > max_query_length))
    if cut:
        _logger.warning(
            "%d of %d questions are longer than max_query_length=%d tokens and were cut",
            cut,
            len(questions),
            max_query_length,
        )
    query_lengths = np.minimum(queries.lengths, max_query_length)
    context_of = np.array([question.context for question in questions.questions])
    total = contexts.lengths[context_of]
    room = max_length - query_lengths - 3
    windows = 1 + np.maximum(0, -(-(total - room) // doc_stride))
    question_of = np.repeat(np.arange(len(questions)), windows)
    offsets = doc_stride * _ranges(np.zeros_like(windows), windows)
    counts = np.minimum(room[question_of], total[question_of] - offsets)
    first_pieces = contexts.splits[context_of[question_of]] + offsets
    rows = _pack(
        tokenizer.vocab,
        (queries.ids, queries.splits[question_of], query_lengths[question_of]),
        (contexts.ids, first_pieces, counts),
    )
    question_of = question_of.astype(np.int32)
    return DocumentWindows(questions, rows, question_of, first_pieces, counts, contexts)


def encode_training_questions(tokenizer, questions: QuestionSet, **lengths) -> DocumentWindows:
    """Windows to train on: `encode_questions` of `questions.for_training()`, with `targets`.

    The answer is projected to words, and then to the pieces within them that are exactly the
    pieces of the answer, if there are such (Google's `_improve_answer_span`). Words are what
    white space separates, and single Chinese characters.

    Args:
        tokenizer: a `BertTokenizer`.
        questions: questions with answers.
        **lengths: as `encode_questions`.

    Raises:
        ValueError: as `encode_questions` and `QuestionSet.for_training`.
    """
    windows = encode_questions(tokenizer, questions.for_training(), **lengths)
    questions, pieces = windows.questions, windows.pieces
    spans = np.full((len(questions), 2), -1, np.int64)
    answered = [i for i, question in enumerate(questions.questions) if question.answers]
    texts = [questions.questions[i].answers[0].text for i in answered]
    answers = _tokenize(tokenizer, texts) if texts else None
    for row, i in enumerate(answered):
        question = questions.questions[i]
        base = pieces.splits[question.context]
        inside = slice(base, pieces.splits[question.context + 1])
        first, last = _words_of(question.answers[0], questions.contexts[question.context])
        first = base + np.searchsorted(pieces.starts[inside], first)
        last = base + np.searchsorted(pieces.starts[inside], last) - 1
        wanted = answers.ids[answers.splits[row] : answers.splits[row + 1]].tolist()
        spans[i] = _improved(pieces.ids[first : last + 1].tolist(), wanted, first, last)
    spans = spans[windows.question_of]
    start, end = (spans - windows.first_pieces[:, None]).T
    holds = (spans[:, 0] >= 0) & (start >= 0) & (end < windows.piece_counts) & (start <= end)
    before = windows.rows.first_lengths
    targets = {
        "start": np.where(holds, start + before, 0).astype(np.int32),
        "end": np.where(holds, end + before, 0).astype(np.int32),
    }
    return replace(windows, targets=targets)


def _words_of(answer, context: str) -> tuple[int, int]:
    """First character of the first word of an answer, and the end of its last word."""
    start, end = answer.start, answer.start + len(answer.text)
    if _REST_OF_WORD.match(context, end - 1).end() >= end:
        end = _REST_OF_WORD.match(context, end).end()
    if _REST_OF_WORD.match(context, start).end() > start:
        start -= _REST_OF_WORD.match(context[:start][::-1]).end()
    return start, end


def _improved(found: list, wanted: list, first: int, last: int) -> tuple[int, int]:
    """The first place where the pieces of the answer stand among those of its words."""
    for skip in range(len(found) - len(wanted) + 1 if wanted else 0):
        if found[skip : skip + len(wanted)] == wanted:
            return first + skip, first + skip + len(wanted) - 1
    return first, last


def _tokenize(tokenizer, texts: Sequence[str]) -> Pieces:
    def flat(strings):
        tokens = tokenizer.tokenize(strings)
        values = (part.flat_values for part in (tokens.ids, tokens.starts, tokens.ends))
        return *values, tokens.ids.row_lengths()

    if len(texts) <= _TOKENIZER_CHUNK:
        # Building a pipeline would take longer than the work.
        chunks = [[x.numpy() for x in flat(tf.constant(list(texts)))]]
    else:
        dataset = tf.data.Dataset.from_tensor_slices(list(texts)).batch(_TOKENIZER_CHUNK)
        dataset = dataset.map(flat, num_parallel_calls=tf.data.AUTOTUNE)
        chunks = list(dataset.as_numpy_iterator())
    ids, starts, ends, lengths = (np.concatenate(part) for part in zip(*chunks, strict=True))
    return Pieces(ids, starts, ends, np.concatenate([[0], np.cumsum(lengths)]))


def _pack(vocab, queries: tuple, contexts: tuple) -> EncodedTexts:
    """[CLS] question [SEP] context [SEP], each part given as (ids, starts [W], lengths [W])."""
    (query_ids, query_starts, query_lengths), (ids, doc_starts, doc_lengths) = queries, contexts
    lengths = query_lengths + doc_lengths + 3
    starts = np.cumsum(lengths) - lengths
    packed = np.full(int(lengths.sum()), vocab.sep_id, np.int32)
    packed[starts] = vocab.cls_id
    packed[_ranges(starts + 1, query_lengths)] = query_ids[_ranges(query_starts, query_lengths)]
    first_lengths = query_lengths + 2
    packed[_ranges(starts + first_lengths, doc_lengths)] = ids[_ranges(doc_starts, doc_lengths)]
    lengths, first_lengths = lengths.astype(np.int32), first_lengths.astype(np.int32)
    return EncodedTexts(packed, starts, lengths, first_lengths, 0, vocab.pad_id)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """start, start + 1, ... of each range, one behind the other."""
    offsets = np.cumsum(lengths) - lengths
    return np.repeat(starts - offsets, lengths) + np.arange(int(lengths.sum()))
