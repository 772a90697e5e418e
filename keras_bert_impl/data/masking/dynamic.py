"""Masks drawn inside ``tf.data``, new ones in every epoch (the dynamic form).

The same rule as for the static form, as TensorFlow operations. All draws follow from a seed, so a
batch can be made again.

Shapes: B rows, S pieces, P predictions; units (words or spans) are laid out in S places too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.masking.rules import Masking, mask_id_of
from keras_bert_impl.text.vocab import Vocab

__all__ = ["mask_batch"]

Tensors = dict[str, tf.Tensor]


def mask_batch(
    features: Mapping[str, tf.Tensor], seed: tf.Tensor, masking: Masking, vocab: Vocab
) -> tuple[Tensors, Tensors, Tensors]:
    """Draws masks for a batch of unmasked examples.

    Args:
        features: ``token_ids``, ``segment_ids``, ``padding_mask`` int32 [B, S], S static. For whole
            words or spans also ``continues`` [B, S], as `PackedExamples` has it; without it pieces
            that start with ``##`` in the vocabulary go on with a word. ``is_random_next`` [B]
            where there is a sentence task.
        seed: integers [2]; the same seed gives the same masks on every device.
        masking: how to choose and replace.
        vocab: gives ``[CLS]``, ``[SEP]``, ``[MASK]`` and the range of random pieces.

    Returns:
        Inputs (``token_ids`` with the replacements, ``segment_ids``, ``padding_mask``,
        ``masked_positions`` int32 [B, P], ascending), targets (``masked_lm`` int32 [B, P] and
        ``next_sentence`` int32 [B]) and weights (float32, of the same keys). Slots that are not
        used hold 0, with weight 0, behind the used ones. P is ``masking.slots(S)``.

    Raises:
        ValueError: S is not static, or the vocabulary lacks ``[MASK]``.
    """
    token_ids = tf.convert_to_tensor(features["token_ids"])
    width = token_ids.shape[1]
    if width is None:
        raise ValueError(f"token_ids must have a static length [B, S], got {token_ids.shape}")
    seeds = tf.unstack(tf.random.split(tf.cast(seed, tf.int64), 4, alg="philox"))
    rows = _Rows(features, masking, vocab)
    choose = _choose_units if masking.in_units else _choose_pieces
    chosen = choose(rows, masking, seeds[:2])
    used = chosen < width
    positions = tf.where(used, chosen, 0)
    weights = tf.cast(used, tf.float32)
    masked_ids = tf.gather(token_ids, positions, batch_dims=1)
    action = _actions(rows, positions, masking, seeds[2])
    random_ids = tf.random.stateless_uniform(
        tf.shape(chosen), seeds[3], maxval=len(vocab), dtype=tf.int32, alg="philox"
    )
    replaced = tf.where(action < masking.mask_share, mask_id_of(vocab), random_ids)
    kept = action >= masking.mask_share + masking.random_share
    replaced = tf.where(kept, masked_ids, replaced)
    inputs = {
        "token_ids": _write(token_ids, chosen, replaced),
        "segment_ids": features["segment_ids"],
        "padding_mask": features["padding_mask"],
        "masked_positions": positions,
    }
    targets = {"masked_lm": tf.where(used, masked_ids, 0)}
    sample_weights = {"masked_lm": weights}
    if "is_random_next" in features:
        targets["next_sentence"] = tf.cast(features["is_random_next"], tf.int32)
        sample_weights["next_sentence"] = tf.ones_like(targets["next_sentence"], tf.float32)
    return inputs, targets, sample_weights


class _Rows:
    """What may be chosen, and how pieces make words; bool [B, S], int32 [B]."""

    def __init__(self, features: Mapping[str, tf.Tensor], masking: Masking, vocab: Vocab) -> None:
        token_ids = features["token_ids"]
        real = features["padding_mask"] > 0
        self.width = token_ids.shape[1]
        self.candidates = real & (token_ids != vocab.cls_id) & (token_ids != vocab.sep_id)
        counts = tf.constant(masking.counts(self.width))
        self.wanted = tf.gather(counts, tf.reduce_sum(tf.cast(real, tf.int32), axis=1))
        before = tf.pad(self.candidates[:, :-1], [[0, 0], [1, 0]])
        self.segment_starts = self.candidates & ~before
        if masking.whole_words or masking.replace_per_word:
            if "continues" in features:
                continues = tf.cast(features["continues"], tf.bool)
            else:
                table = np.array([token.startswith("##") for token in vocab.tokens])
                continues = tf.gather(tf.constant(table), token_ids)
            self.word_starts = self.candidates & (~continues | self.segment_starts)


def _choose_pieces(rows: _Rows, masking: Masking, seeds: list[tf.Tensor]) -> tf.Tensor:
    """Chooses single pieces: int32 [B, P], ascending, then S in slots that are not used."""
    slots = masking.slots(rows.width)
    keys = _uniform(tf.shape(rows.candidates), seeds[0])
    keys = tf.where(rows.candidates, keys, -1.0)
    best_keys, best = tf.math.top_k(keys, slots)
    used = (tf.range(slots) < rows.wanted[:, None]) & (best_keys >= 0)
    return tf.sort(tf.where(used, best, rows.width))


def _choose_units(rows: _Rows, masking: Masking, seeds: list[tf.Tensor]) -> tf.Tensor:
    """Chooses whole words or spans; result as of `_choose_pieces`."""
    width = rows.width
    slots = masking.slots(width)
    starts = rows.word_starts if masking.whole_words else rows.candidates
    if masking.ngram > 1:
        starts = _span_starts(rows, starts, masking, seeds[1])
    unit = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1
    number = tf.shape(unit)[0]
    # Pieces that may not be chosen count for the unit behind the last one.
    bases = tf.range(number)[:, None] * (width + 1)
    flat_unit = tf.where(rows.candidates, unit, width) + bases
    ones = tf.ones_like(flat_unit)
    sizes = tf.math.unsorted_segment_sum(ones, flat_unit, number * (width + 1))
    sizes = tf.reshape(sizes, [number, width + 1])[:, :width]
    keys = tf.where(sizes > 0, _uniform(tf.shape(sizes), seeds[0]), -1.0)
    order = tf.math.top_k(keys, width).indices
    taken = _fill(tf.gather(sizes, order, batch_dims=1), rows.wanted, slots)
    flat_order = tf.reshape(order + bases, [-1, 1])
    accepted = tf.scatter_nd(flat_order, tf.reshape(taken, [-1]), [number * (width + 1)])
    pieces = tf.gather(accepted, flat_unit)
    # Larger for places further to the left.
    ranks = tf.where(pieces, width - tf.range(width), 0)
    return width - tf.math.top_k(ranks, slots).values


def _fill(sizes: tf.Tensor, wanted: tf.Tensor, slots: int) -> tf.Tensor:
    """Takes units from the left while they fit, and passes over what does not; bool [B, S].

    Args:
        sizes: int32 [B, S], 0 for no unit.
        wanted: int32 [B], most pieces of a row; where no unit fits, the first that fits `slots` is
            taken.
    """
    waiting = sizes > 0

    def fitting(waiting, taken, remaining):
        return waiting & (sizes <= remaining)

    def some_fit(*state):
        return tf.reduce_any(fitting(*state))

    # What does not fit now never will, so a pass takes all up to the next unit that is too long.
    def take(*state):
        waiting, taken, remaining = fitting(*state), *state[1:]
        open_sizes = tf.where(waiting, sizes, 0)
        fits = waiting & (tf.cumsum(open_sizes, axis=1) <= remaining)
        spent = tf.reduce_sum(tf.where(fits, sizes, 0), axis=1, keepdims=True)
        return waiting & ~fits, taken | fits, remaining - spent

    state = (waiting, tf.zeros_like(waiting), wanted[:, None])
    taken = tf.while_loop(some_fit, take, state)[1]
    possible = waiting & (sizes <= slots)
    first = possible & (tf.cumsum(tf.cast(possible, tf.int32), axis=1) == 1)
    return taken | (first & ~tf.reduce_any(taken, axis=1, keepdims=True))


def _span_starts(rows: _Rows, starts: tf.Tensor, masking: Masking, seed: tf.Tensor) -> tf.Tensor:
    """Joins neighbouring units of a segment to spans of random lengths; bool [B, S]."""
    draws = _uniform(tf.shape(starts), seed)
    longer = draws[:, :, None] > masking.span_shares()[:-1]
    lengths = 1 + tf.reduce_sum(tf.cast(longer, tf.int32), axis=-1)
    edges = tf.cumsum(tf.minimum(lengths, rows.wanted[:, None]), axis=1)
    unit = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1
    span = tf.searchsorted(edges, unit, side="right")
    changes = tf.pad(span[:, 1:] != span[:, :-1], [[0, 0], [1, 0]])
    return starts & (changes | rows.segment_starts)


def _actions(rows: _Rows, positions: tf.Tensor, masking: Masking, seed: tf.Tensor) -> tf.Tensor:
    """Draws from [0, 1) that say what becomes of each chosen piece; float32 [B, P]."""
    if not masking.replace_per_word:
        return _uniform(tf.shape(positions), seed)
    word = tf.cumsum(tf.cast(rows.word_starts, tf.int32), axis=1)
    draws = _uniform([tf.shape(word)[0], rows.width + 1], seed)
    word_of = tf.gather(word, positions, batch_dims=1)
    return tf.gather(draws, word_of, batch_dims=1)


def _write(token_ids: tf.Tensor, places: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Writes values [B, P] to places [B, P] of each row; place S is nowhere."""
    width = token_ids.shape[1]
    padded = tf.reshape(tf.pad(token_ids, [[0, 0], [0, 1]]), [-1])
    flat = places + tf.range(tf.shape(token_ids)[0])[:, None] * (width + 1)
    padded = tf.tensor_scatter_nd_update(
        padded, tf.reshape(flat, [-1, 1]), tf.reshape(values, [-1])
    )
    return tf.ensure_shape(tf.reshape(padded, [-1, width + 1])[:, :width], token_ids.shape)


def _uniform(shape: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    return tf.random.stateless_uniform(shape, seed, alg="philox")
