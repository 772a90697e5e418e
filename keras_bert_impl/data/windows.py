"""Words to rows of pieces with one labelled piece a word; long sentences become windows.

W words, N sentences.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_bert_impl.data.encoding import EncodedTexts

__all__ = ["WordWindows", "encode_words"]

_logger = logging.getLogger(__name__)

_TOKENIZER_CHUNK = 8192


@dataclass(frozen=True)
class WordWindows:
    """Rows for `row_batches`, and where in them each word has its label.

    Attributes:
        rows: ``[CLS] pieces [SEP]``, one row a window; none for an empty sentence.
        positions: int64 [W], the first piece of each word, an index into ``rows.token_ids``; of a
            word in several windows, in that where it has the most context.
        lengths: int64 [N], words of each sentence.
        windowed: how many sentences did not fit into one row.
        cut: how many words have more pieces than a row and were cut.
    """

    rows: EncodedTexts
    positions: np.ndarray
    lengths: np.ndarray
    windowed: int
    cut: int

    def spread(self, values: Sequence | np.ndarray) -> np.ndarray:
        """Values of the W words at their pieces and 0 elsewhere, aligned with the token ids."""
        values = np.asarray(values)
        spread = np.zeros(len(self.rows.token_ids), values.dtype)
        spread[self.positions] = values
        return spread

    def weights(self) -> np.ndarray:
        """1 at the piece that has the label of its word, 0 elsewhere, float32."""
        return self.spread(np.ones(len(self.positions), np.float32))


def encode_words(
    tokenizer,
    sentences: Sequence[Sequence[str]],
    *,
    max_length: int = 128,
    overlap: int | None = None,
) -> WordWindows:
    """Cuts the words of each sentence into pieces and packs them.

    A word of which the tokenizer keeps nothing (control characters, say) becomes ``[UNK]``, so
    each word has a piece. A sentence longer than a row becomes windows that begin and end at
    words and share about `overlap` pieces; the last one reaches as far back as it can. Words in
    two windows have their label in that where fewer of their neighbours are missing, as
    Google's ``run_squad.py`` chooses; the ends of the sentence count as infinitely far away.

    Args:
        tokenizer: a `BertTokenizer`.
        sentences: words of N sentences.
        max_length: longest row, special tokens included.
        overlap: pieces that neighbouring windows share; by default a quarter of a row.

    Raises:
        ValueError: there are no words, or `max_length` or `overlap` is out of range.
    """
    capacity = max_length - 2
    if capacity < 1:
        raise ValueError(f"max_length must be at least 3, got {max_length}")
    overlap = capacity // 4 if overlap is None else overlap
    if not 0 <= overlap < capacity:
        raise ValueError(
            f"overlap must be in [0, {capacity}) for max_length={max_length}, got {overlap}"
        )
    lengths = np.array([len(words) for words in sentences], np.int64)
    if lengths.sum() == 0:
        raise ValueError("sentences: expected at least one word, got none")
    pieces, counts = _pieces(tokenizer, sentences)
    ends = np.cumsum(counts)
    starts = ends - counts
    cut = int(np.count_nonzero(counts > capacity))
    counts = np.minimum(counts, capacity)
    if cut:
        _logger.warning("%d words have more than %d pieces and were cut", cut, capacity)
    flat = pieces[
        np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    ]
    before = np.concatenate([[0], np.cumsum(counts)])
    firsts, lasts, owned, windowed = _windows(lengths, before, capacity, overlap)
    if windowed:
        _logger.info("%d sentences are longer than a row and became windows", windowed)
    return _pack(tokenizer.vocab, flat, before, (firsts, lasts, owned), (lengths, windowed, cut))


def _pieces(tokenizer, sentences) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of all words, int32, and how many each word has, at least 1, int64 [W].

    Each different word is cut once.
    """
    index: dict[str, int] = {}
    numbers = np.fromiter(
        (index.setdefault(word, len(index)) for words in sentences for word in words), np.int64
    )
    distinct = list(index)
    ids, counts = [], []
    for first in range(0, len(distinct), _TOKENIZER_CHUNK):
        found = tokenizer.tokenize(distinct[first : first + _TOKENIZER_CHUNK]).ids
        ids.append(found.flat_values.numpy())
        counts.append(found.row_lengths().numpy())
    ids, counts = np.concatenate(ids), np.concatenate(counts)
    starts = np.cumsum(counts) - counts
    if (counts == 0).any():
        ids = np.insert(ids, starts[counts == 0], tokenizer.vocab.unk_id)
        counts = np.maximum(counts, 1)
        starts = np.cumsum(counts) - counts
    of_word = counts[numbers]
    offsets = np.repeat(starts[numbers] - (np.cumsum(of_word) - of_word), of_word)
    return ids[offsets + np.arange(of_word.sum())], of_word


def _windows(lengths, before, capacity: int, overlap: int):
    """First and last (excluded) word of each window, the window of each word, long sentences."""
    firsts, lasts = [], []
    owned = np.empty(lengths.sum(), np.int64)
    windowed = 0
    ends = np.cumsum(lengths)
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        if start == end:
            continue
        number = len(firsts)
        if before[end] - before[start] <= capacity:
            firsts.append(start)
            lasts.append(end)
            owned[start:end] = number
            continue
        windowed += 1
        cuts = _cut_sentence(before, start, end, capacity, overlap)
        firsts += [first for first, _ in cuts]
        lasts += [last for _, last in cuts]
        owned[start:end] = number + _owners(before, start, end, cuts)
    return np.array(firsts), np.array(lasts), owned, windowed


def _cut_sentence(before, start, end, capacity, overlap) -> list[tuple[int, int]]:
    """Windows of the words from `start` to `end`, each with a word that no earlier one has."""

    def last_of(first):
        return int(np.searchsorted(before, before[first] + capacity, side="right")) - 1

    def first_of(last, pieces):
        return int(np.searchsorted(before, before[last] - pieces, side="left"))

    cuts = [(start, last_of(start))]
    while (last := cuts[-1][1]) < end:
        if before[end] - before[first_of(last, overlap)] <= capacity:
            cuts.append((first_of(end, capacity), end))
            break
        # The next word must fit, however long it is.
        first = max(first_of(last, overlap), first_of(last + 1, capacity), cuts[-1][0] + 1)
        cuts.append((first, last_of(first)))
    return [(first, min(last, end)) for first, last in cuts]


def _owners(before, start: int, end: int, cuts: list[tuple[int, int]]) -> np.ndarray:
    """Which window each word of a sentence has the most context in, int64 [words]."""
    best = np.full(end - start, -1.0)
    owner = np.zeros(end - start, np.int64)
    for number, (first, last) in enumerate(cuts):
        left = np.full(last - first, np.inf)
        right = left.copy()
        if first > start:
            left = (before[first:last] - before[first]).astype(float)
        if last < end:
            right = (before[last] - before[first + 1 : last + 1]).astype(float)
        context = np.minimum(left, right)
        here = slice(first - start, last - start)
        better = context > best[here]
        owner[here][better] = number
        best[here][better] = context[better]
    return owner


def _pack(vocab, flat, before, windows, facts) -> WordWindows:
    firsts, lasts, owned = windows
    counts = before[lasts] - before[firsts]
    lengths = counts + 2
    starts = np.cumsum(lengths) - lengths
    token_ids = np.empty(lengths.sum(), np.int32)
    token_ids[starts] = vocab.cls_id
    token_ids[starts + lengths - 1] = vocab.sep_id
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    token_ids[np.repeat(starts + 1, counts) + within] = flat[
        np.repeat(before[firsts], counts) + within
    ]
    words = np.arange(len(owned))
    positions = starts[owned] + 1 + before[words] - before[firsts[owned]]
    sentence_lengths, windowed, cut = facts
    lengths = lengths.astype(np.int32)
    rows = EncodedTexts(token_ids, starts, lengths, lengths, cut, vocab.pad_id)
    return WordWindows(rows, positions, sentence_lengths, windowed, cut)
