"""Tokenized documents to pre-training examples, without masks.

Semantics of google-research/bert ``create_pretraining_data.py``: examples are filled with whole
sentences of one document; half of them (and all that have one sentence only) get their second
segment from another document, and the sentences that this leaves unused are used again.

Examples are laid out by a loop over sentence lengths; their tokens are then gathered at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from keras_bert_impl.data.documents import TokenizedDocuments, starts_of, tokenize_documents

__all__ = [
    "SENTENCE_TASKS",
    "PackedExamples",
    "TokenizedDocuments",
    "check_next_sentence",
    "check_sentence_counts",
    "pack_examples",
    "tokenize_documents",
]

SENTENCE_TASKS = ("nsp", "sop", "none")
_DRAWS = 4096
# [CLS] a [SEP] b [SEP] with one piece each.
_SHORTEST = 5


@dataclass(frozen=True)
class PackedExamples:
    """N examples ``[CLS] a [SEP] b [SEP]`` or ``[CLS] a [SEP]``, one behind the other.

    Attributes:
        token_ids: int32 [sum of lengths].
        continues: bool [sum of lengths], whether a piece belongs to the word of the piece before;
            False where a segment starts and for ``[CLS]`` and ``[SEP]``.
        starts: int64 [N + 1], where each example starts, and the end.
        first_lengths: int32 [N], length of segment 0 with its ``[CLS]`` and ``[SEP]``.
        is_random_next: int8 [N]; 1 where b comes from another document (``"nsp"``, as Google) or
            where a and b are swapped (``"sop"``). None without sentence task.
    """

    token_ids: np.ndarray
    continues: np.ndarray
    starts: np.ndarray
    first_lengths: np.ndarray
    is_random_next: np.ndarray | None

    def __len__(self) -> int:
        return len(self.first_lengths)


def check_next_sentence(documents: TokenizedDocuments, sentence_task: str = "nsp") -> None:
    """Raises ValueError where these documents are too few or too short for the sentence task."""
    sentences = len(documents.sentence_starts) - 1
    check_sentence_counts(len(documents), sentences, sentence_task)


def check_sentence_counts(documents: int, sentences: int, sentence_task: str = "nsp") -> None:
    """Raises ValueError where a corpus of so many documents and sentences has no sentence task.

    With one document there is no other to draw a random next sentence from; where every document
    has one sentence, all examples would be random, or there would be nothing to swap.
    """
    if sentence_task == "none":
        return
    if sentence_task == "nsp" and documents < 2:
        raise ValueError(
            "next-sentence prediction needs at least two documents (a random next sentence comes "
            f"from another one), got {documents}: separate documents by blank lines, or make "
            "examples without it (--no-nsp)"
        )
    if documents and sentences == documents:
        raise ValueError(
            f"all {documents} documents have one sentence each, so none has a next sentence: put "
            "blank lines between documents only, not between sentences, or make examples without "
            "next-sentence prediction (--no-nsp)"
        )


def pack_examples(
    documents: TokenizedDocuments,
    rng: np.random.Generator,
    *,
    cls_id: int,
    sep_id: int,
    max_seq_length: int = 128,
    short_seq_prob: float = 0.1,
    sentence_task: str = "nsp",
) -> PackedExamples:
    """Makes the examples of one pass over the documents, in the order of the documents.

    Args:
        documents: at least two for ``"nsp"``.
        rng: source of all draws; the same state gives the same bytes.
        cls_id, sep_id: ids of ``[CLS]`` and ``[SEP]``.
        max_seq_length: longest example, special tokens counted.
        short_seq_prob: share of the documents whose examples are filled to a random length only
            (Google draws it a document, not an example).
        sentence_task: ``"nsp"``; ``"sop"``, segments of one document, swapped in half of the
            examples (documents of one sentence give none); ``"none"``, full sentences as one
            segment (longer sentences go on in the next example).

    Raises:
        ValueError: one document for ``"nsp"``, `max_seq_length` below 5, or an unknown task. For
            documents of one sentence see `check_next_sentence`: a chunk of a corpus may hold only
            such.
    """
    if sentence_task not in SENTENCE_TASKS:
        raise ValueError(
            f"sentence_task must be one of {', '.join(SENTENCE_TASKS)}, got {sentence_task!r}"
        )
    if max_seq_length < _SHORTEST:
        raise ValueError(f"max_seq_length must be at least {_SHORTEST}, got {max_seq_length}")
    if len(documents) == 1 and sentence_task == "nsp":
        check_next_sentence(documents)
    if sentence_task == "none":
        longest = max_seq_length - 2
        layout = _lay_out_segments(documents, _uniform(rng), longest, short_seq_prob)
        return _gather(documents, [np.array(layout, np.int64)], None, cls_id, sep_id)
    longest = max_seq_length - 3
    lay_out = _lay_out_pairs if sentence_task == "nsp" else _lay_out_ordered
    layout = np.array(lay_out(documents, _uniform(rng), longest, short_seq_prob), np.int64)
    layout = layout.reshape(-1, 5)
    segments = _truncate(layout[:, :2], layout[:, 2:4], longest, rng)
    return _gather(documents, segments, layout[:, 4].astype(np.int8), cls_id, sep_id)


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    """Draws from [0, 1), taken from the generator many at a time."""
    while True:
        yield from rng.random(_DRAWS).tolist()


def _target(draws: Iterator[float], longest: int, short_seq_prob: float) -> int:
    if next(draws) < short_seq_prob:
        return 2 + int(next(draws) * (longest - 1))
    return longest


def _lay_out_pairs(
    documents: TokenizedDocuments, draws: Iterator[float], longest: int, short_seq_prob: float
) -> list[tuple[int, int, int, int, int]]:
    """Rows (start of a, end of a, start of b, end of b, random next) in tokens, untruncated."""
    tokens = documents.sentence_starts.tolist()
    edges = documents.document_starts.tolist()
    others = len(edges) - 2
    rows = []
    for number in range(len(edges) - 1):
        sentence, stop = edges[number], edges[number + 1]
        target = _target(draws, longest, short_seq_prob)
        while sentence < stop:
            start = tokens[sentence]
            end = bisect_left(tokens, start + target, sentence + 1, stop)
            middle = sentence + 1
            if end - sentence > 2:
                middle += int(next(draws) * (end - sentence - 1))
            split = tokens[middle]
            if end - sentence > 1 and next(draws) >= 0.5:
                rows.append((start, split, split, tokens[end], 0))
                sentence = end
                continue
            other = int(next(draws) * others)
            other += other >= number
            first, last = edges[other], edges[other + 1]
            first += int(next(draws) * (last - first))
            wanted = tokens[first] + target - (split - start)
            until = bisect_left(tokens, wanted, first + 1, last)
            rows.append((start, split, tokens[first], tokens[until], 1))
            sentence = middle
    return rows


def _lay_out_ordered(
    documents: TokenizedDocuments, draws: Iterator[float], longest: int, short_seq_prob: float
) -> list[tuple[int, int, int, int, int]]:
    """Rows as of `_lay_out_pairs`, of neighbouring segments, swapped where the last item is 1."""
    tokens = documents.sentence_starts.tolist()
    edges = documents.document_starts.tolist()
    rows = []
    for begin, stop in pairwise(edges):
        sentence = begin
        target = _target(draws, longest, short_seq_prob)
        while sentence < stop and stop - begin > 1:
            # A sentence that is left over alone takes the one before it along.
            first = min(sentence, stop - 2)
            start = tokens[first]
            end = bisect_left(tokens, start + target, first + 2, stop)
            split = tokens[first + 1 + int(next(draws) * (end - first - 1))]
            if next(draws) < 0.5:
                rows.append((split, tokens[end], start, split, 1))
            else:
                rows.append((start, split, split, tokens[end], 0))
            sentence = end
    return rows


def _lay_out_segments(
    documents: TokenizedDocuments, draws: Iterator[float], longest: int, short_seq_prob: float
) -> list[tuple[int, int]]:
    """Rows (start, end) in tokens of full sentences, at most `longest`."""
    tokens = documents.sentence_starts.tolist()
    edges = documents.document_starts.tolist()
    rows = []
    for begin, stop in pairwise(edges):
        target = _target(draws, longest, short_seq_prob)
        start, sentence = tokens[begin], begin
        while sentence < stop:
            end = bisect_left(tokens, start + target, sentence + 1, stop)
            if tokens[end] - start > longest:
                end = bisect_right(tokens, start + longest, sentence, end) - 1
            finish = tokens[end] if tokens[end] > start else start + longest
            rows.append((start, finish))
            start, sentence = finish, end
    return rows


def _truncate(
    first: np.ndarray, second: np.ndarray, longest: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Pops pieces from the longer segment, each from a random end, until both fit together.

    Args:
        first, second: int64 [N, 2], starts and ends in tokens.
    """
    lengths = [second[:, 1] - second[:, 0], first[:, 1] - first[:, 0]]
    excess = np.maximum(lengths[0] + lengths[1] - longest, 0)
    difference = np.abs(lengths[1] - lengths[0])
    unequal = np.minimum(excess, difference)
    first_is_longer = lengths[1] > lengths[0]
    # Of two equal segments Google pops from the second one.
    from_first = np.where(first_is_longer, unequal, 0) + (excess - unequal) // 2
    cut = []
    for segment, pops in ((first, from_first), (second, excess - from_first)):
        front = rng.binomial(pops, 0.5)
        cut.append(segment + np.stack([front, front - pops], axis=1))
    return cut


def _gather(
    documents: TokenizedDocuments,
    segments: list[np.ndarray],
    is_random_next: np.ndarray | None,
    cls_id: int,
    sep_id: int,
) -> PackedExamples:
    """Copies the tokens of the segments (int64 [N, 2] each) between special tokens."""
    segments = [segment.reshape(-1, 2) for segment in segments]
    lengths = [segment[:, 1] - segment[:, 0] for segment in segments]
    starts = starts_of(sum(lengths) + 1 + len(segments))
    token_ids = np.full(starts[-1], sep_id, np.int32)
    token_ids[starts[:-1]] = cls_id
    continues = np.zeros(len(token_ids), bool)
    places = starts[:-1] + 1
    # Segments in turn of the examples: one run of tokens each, from `source` to `place`.
    runs = np.stack(lengths, axis=1).ravel()
    place = np.stack([places, places + lengths[0] + 1][: len(segments)], axis=1).ravel()
    source = np.stack([segment[:, 0] for segment in segments], axis=1).ravel()
    before = np.cumsum(runs) - runs
    steps = np.arange(runs.sum())
    targets = steps + np.repeat(place - before, runs)
    sources = steps + np.repeat(source - before, runs)
    token_ids[targets] = documents.token_ids[sources]
    continues[targets] = documents.continues[sources]
    continues[place] = False
    return PackedExamples(
        token_ids, continues, starts, (lengths[0] + 2).astype(np.int32), is_random_next
    )
