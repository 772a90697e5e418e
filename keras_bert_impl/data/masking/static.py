"""Masks drawn once, for examples that lie ready as arrays (the static form).

Shapes: B rows, S pieces, P predictions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keras_bert_impl.data.masking.rules import Masking, mask_id_of
from keras_bert_impl.data.pretraining import PackedExamples
from keras_bert_impl.text.vocab import Vocab

__all__ = ["MaskedExamples", "mask_examples"]

_ROWS = 1024


@dataclass(frozen=True)
class MaskedExamples:
    """N examples with masks.

    Attributes:
        token_ids: int32 [sum of lengths], with the replacements.
        starts, first_lengths, is_random_next: as in `PackedExamples`.
        masked_positions: int32 [N, P], ascending; 0 in slots that are not used.
        masked_ids: int32 [N, P], the ids that stood there; 0 in slots that are not used.
        masked_weights: float32 [N, P], 1 for used slots, then 0.
    """

    token_ids: np.ndarray
    starts: np.ndarray
    first_lengths: np.ndarray
    is_random_next: np.ndarray | None
    masked_positions: np.ndarray
    masked_ids: np.ndarray
    masked_weights: np.ndarray

    def __len__(self) -> int:
        return len(self.first_lengths)


def mask_examples(
    examples: PackedExamples,
    rng: np.random.Generator,
    masking: Masking,
    vocab: Vocab,
    *,
    max_seq_length: int,
) -> MaskedExamples:
    """Draws masks for all examples.

    Args:
        examples: as `pack_examples` makes them.
        rng: source of all draws; the same state gives the same bytes.
        masking: how to choose and replace.
        vocab: gives ``[CLS]``, ``[SEP]``, ``[MASK]`` and the range of random pieces.
        max_seq_length: length that the examples were packed for.

    Returns:
        The examples with P = ``masking.slots(max_seq_length)`` prediction slots. Every example has
        a prediction, unless whole words are asked for and each is longer than P.

    Raises:
        ValueError: the vocabulary lacks ``[MASK]``.
    """
    mask_id = mask_id_of(vocab)
    slots = masking.slots(max_seq_length)
    counts = masking.counts(max_seq_length)
    token_ids = examples.token_ids.copy()
    total = len(examples)
    positions = np.zeros((total, slots), np.int32)
    masked_ids = np.zeros((total, slots), np.int32)
    weights = np.zeros((total, slots), bool)
    lengths = np.diff(examples.starts)
    candidates = (token_ids != vocab.cls_id) & (token_ids != vocab.sep_id)
    choose = _choose_units if masking.in_units else _choose_pieces
    for first in range(0, total, _ROWS):
        rows = slice(first, min(first + _ROWS, total))
        flat = slice(examples.starts[first], examples.starts[rows.stop])
        block = _Block(candidates[flat], examples.continues[flat], lengths[rows])
        chosen, used = choose(block, counts[lengths[rows]], slots, masking, rng)
        places = examples.starts[rows][:, None] + chosen
        positions[rows] = np.where(used, chosen, 0)
        weights[rows] = used
        places = places[used]
        original = token_ids[places]
        masked_ids[rows][used] = original
        action = _actions(block, chosen, used, masking, rng)
        random_ids = rng.integers(len(vocab), size=len(places), dtype=np.int32)
        replaced = np.where(action < masking.mask_share, np.int32(mask_id), random_ids)
        kept = action >= masking.mask_share + masking.random_share
        token_ids[places] = np.where(kept, original, replaced)
    return MaskedExamples(
        token_ids,
        examples.starts,
        examples.first_lengths,
        examples.is_random_next,
        positions,
        masked_ids,
        weights.astype(np.float32),
    )


class _Block:
    """Rows of pieces, padded: which may be chosen, and which go on with a word; bool [B, S]."""

    def __init__(self, candidates: np.ndarray, continues: np.ndarray, lengths: np.ndarray) -> None:
        self.real = np.arange(lengths.max()) < lengths[:, None]
        self.candidates = self._padded(candidates)
        self._flat_continues = continues

    def _padded(self, flat: np.ndarray) -> np.ndarray:
        padded = np.zeros(self.real.shape, bool)
        padded[self.real] = flat
        return padded

    @property
    def word_starts(self) -> np.ndarray:
        return self.candidates & ~self._padded(self._flat_continues)


def _choose_pieces(block, wanted, slots, masking, rng) -> tuple[np.ndarray, np.ndarray]:
    """Chooses single pieces: positions int64 [B, P], ascending where used, and used bool [B, P]."""
    keys = rng.random(block.candidates.shape, dtype=np.float32)
    keys[~block.candidates] = 2
    slots_here = min(slots, keys.shape[1])
    best = np.argpartition(keys, slots_here - 1, axis=1)[:, :slots_here]
    best_keys = np.take_along_axis(keys, best, axis=1)
    best = np.take_along_axis(best, np.argsort(best_keys, axis=1), axis=1)
    width = keys.shape[1]
    available = block.candidates.sum(axis=1)
    used = np.arange(slots) < np.minimum(wanted, available)[:, None]
    chosen = np.full(used.shape, width)
    chosen[:, :slots_here] = best
    chosen[~used] = width
    chosen.sort(axis=1)
    return chosen, used


def _choose_units(block, wanted, slots, masking, rng) -> tuple[np.ndarray, np.ndarray]:
    """Chooses whole words or spans; result as of `_choose_pieces`."""
    starts = block.word_starts if masking.whole_words else block.candidates
    if masking.ngram > 1:
        starts = _span_starts(block, starts, wanted, masking, rng)
    rows, width = starts.shape
    unit = np.cumsum(starts, axis=1) - 1
    # Pieces that may not be chosen count for the unit behind the last one.
    flat_unit = np.where(block.candidates, unit, width) + np.arange(rows)[:, None] * (width + 1)
    sizes = np.bincount(flat_unit.ravel(), minlength=rows * (width + 1))
    sizes = sizes.reshape(rows, width + 1)[:, :width]
    keys = rng.random(sizes.shape, dtype=np.float32)
    keys[sizes == 0] = 2
    order = np.argsort(keys, axis=1)
    accepted = np.zeros((rows, width + 1), bool)
    taken = _fill(np.take_along_axis(sizes, order, axis=1), wanted, slots)
    np.put_along_axis(accepted, order, taken, axis=1)
    chosen_pieces = accepted.ravel()[flat_unit]
    number = chosen_pieces.sum(axis=1)
    used = np.arange(slots) < number[:, None]
    chosen = np.full(used.shape, width)
    chosen[used] = np.nonzero(chosen_pieces)[1]
    return chosen, used


def _fill(sizes: np.ndarray, wanted: np.ndarray, slots: int) -> np.ndarray:
    """Takes units of these sizes from the left while they fit, and passes over what does not.

    Args:
        sizes: int [B, S], 0 for no unit.
        wanted: int [B], most pieces of a row; where no unit fits, the first that fits `slots` is
            taken.

    Returns:
        bool [B, S], units taken.
    """
    remaining = wanted.astype(sizes.dtype)[:, None]
    waiting = sizes > 0
    taken = np.zeros(sizes.shape, bool)
    # What does not fit now never will, so a pass takes all up to the next unit that is too long.
    while (waiting := waiting & (sizes <= remaining)).any():
        running = np.cumsum(np.where(waiting, sizes, 0), axis=1)
        fits = waiting & (running <= remaining)
        taken |= fits
        waiting &= ~fits
        remaining = remaining - np.sum(sizes, axis=1, where=fits, keepdims=True)
    nothing = np.flatnonzero(~taken.any(axis=1))
    if len(nothing):
        possible = (sizes[nothing] > 0) & (sizes[nothing] <= slots)
        first = possible.argmax(axis=1)
        taken[nothing, first] = possible[np.arange(len(nothing)), first]
    return taken


def _span_starts(block, starts, wanted, masking, rng) -> np.ndarray:
    """Joins neighbouring units of a segment to spans of random lengths; bool [B, S]."""
    rows, width = starts.shape
    lengths = np.searchsorted(masking.span_shares(), rng.random(starts.shape, np.float32)) + 1
    edges = np.cumsum(np.minimum(lengths, wanted[:, None]), axis=1)
    opens = np.zeros((rows, width + 1), bool)
    opens[:, 0] = True
    np.put_along_axis(opens, np.minimum(edges, width), True, axis=1)
    unit = np.cumsum(starts, axis=1) - 1
    segment_starts = block.candidates.copy()
    segment_starts[:, 1:] &= ~block.candidates[:, :-1]
    return starts & (np.take_along_axis(opens, np.maximum(unit, 0), axis=1) | segment_starts)


def _actions(block, chosen, used, masking, rng) -> np.ndarray:
    """Draws from [0, 1) that say what becomes of each chosen piece; float32 [used slots]."""
    if not masking.replace_per_word:
        return rng.random(np.count_nonzero(used), np.float32)
    word = np.cumsum(block.word_starts, axis=1)
    draws = rng.random((len(word), word.shape[1] + 1), np.float32)
    row = np.nonzero(used)[0]
    return draws[row, word[row, chosen[used]]]
