"""Shards to batches for `BertPretrainer.fit`: step t is a function of the seed and t alone.

The stream has no state, so a run goes on at any step, and each machine takes its rows of the same
global batches.

Shapes: B batch, S sequence, P predictions.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.masking import Masking, mask_batch
from keras_bert_impl.data.shard_records import RecordKind
from keras_bert_impl.data.shards import Shards
from keras_bert_impl.text.vocab import Vocab

__all__ = ["evaluation_batches", "pretraining_batches"]

_EVALUATION = 2**31 - 1


def pretraining_batches(
    shards: Shards,
    vocab: Vocab,
    *,
    batch_size: int,
    seed: int = 12345,
    start_step: int = 0,
    masking: Masking | None = None,
    rank: int = 0,
    world: int = 1,
) -> tf.data.Dataset:
    """An endless stream of steps.

    Row i of step t is record number n = t B + i of the stream: epoch e = n // N, and in it the
    record at place n % N of a permutation of all N records drawn from (seed, e). Records of the
    dynamic form get new masks, drawn from (seed, t).

    Args:
        shards: static or dynamic.
        vocab: that of the shards.
        batch_size: B, rows of a step over all machines.
        seed: of the order and the masks.
        start_step: the first step.
        masking: for dynamic shards; None: that of their manifest, or BERT's.
        rank, world: rows rank::world of each step are given.

    Returns:
        Dataset of (inputs, targets, weights) as `BertPretrainer` takes them, int32 and float32 in
        static shapes [B / world, S] and [B / world, P].

    Raises:
        ValueError: B does not divide by `world`, or masks are asked of static shards.
    """
    if batch_size % world:
        raise ValueError(f"batch_size {batch_size} does not divide by {world} machines")
    count = len(shards)
    finish = _finisher(shards, vocab, masking)

    def numbers(step: tf.Tensor) -> tf.Tensor:
        places = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        epochs = tf.cast(places // count, tf.int32)
        keys = tf.stack([tf.fill([batch_size], seed), epochs, tf.zeros_like(epochs)], axis=1)
        # Not `tf.random.experimental.index_shuffle`, whose padding takes one seed only.
        return tf.raw_ops.RandomIndexShuffle(
            index=places % count, seed=keys, max_index=count - 1, rounds=4
        )

    def batch(step: tf.Tensor):
        features = _features(shards, numbers(step), batch_size)
        return _share(finish(features, [seed, step]), rank, world)

    steps = tf.data.Dataset.range(start_step, tf.int64.max)
    return _deterministic(steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE))


def evaluation_batches(
    shards: Shards,
    vocab: Vocab,
    *,
    batch_size: int,
    seed: int = 12345,
    masking: Masking | None = None,
    rank: int = 0,
    world: int = 1,
) -> tf.data.Dataset:
    """Every record once, in order, with the same masks each time.

    The last batch is filled up with rows of weight 0, so that shapes are static and no record is
    left out.

    Args, Returns, Raises: as `pretraining_batches`.
    """
    if batch_size % world:
        raise ValueError(f"batch_size {batch_size} does not divide by {world} machines")
    count = len(shards)
    finish = _finisher(shards, vocab, masking)

    def batch(step: tf.Tensor):
        places = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        features = _features(shards, tf.minimum(places, count - 1), batch_size)
        inputs, targets, weights = finish(features, [seed, step + _EVALUATION])
        real = tf.cast(places < count, tf.float32)
        weights = {
            name: weight * tf.reshape(real, [-1] + [1] * (len(weight.shape) - 1))
            for name, weight in weights.items()
        }
        return _share((inputs, targets, weights), rank, world)

    steps = tf.data.Dataset.range(-(-count // batch_size))
    return _deterministic(steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE))


def _deterministic(batches: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.deterministic = True
    return batches.with_options(options).prefetch(tf.data.AUTOTUNE)


def _share(batch, rank: int, world: int):
    if world == 1:
        return batch
    return tf.nest.map_structure(lambda value: value[rank::world], batch)


def _features(shards: Shards, numbers: tf.Tensor, batch_size: int) -> dict[str, tf.Tensor]:
    """Records as int32 tensors in static shapes."""
    records = tf.numpy_function(
        lambda found: np.array(shards.read(found), object), [numbers], tf.string, stateful=False
    )
    records = tf.ensure_shape(records, [batch_size])
    parse = _parse_static if shards.form == "static" else _parse_dynamic
    return parse(records, shards.kind, shards.max_seq_length)


def _parse_static(records: tf.Tensor, kind: RecordKind, length: int) -> dict[str, tf.Tensor]:
    ints, floats = ({"dtype": dtype} for dtype in (tf.int64, tf.float32))
    row, slots = [length], [kind.predictions]
    spec = {
        kind.token_key: tf.io.FixedLenFeature(row, **ints),
        kind.segment_key: tf.io.FixedLenFeature(row, **ints),
        "input_mask": tf.io.FixedLenFeature(row, **ints),
        "masked_lm_positions": tf.io.FixedLenFeature(slots, **ints),
        "masked_lm_ids": tf.io.FixedLenFeature(slots, **ints),
        "masked_lm_weights": tf.io.FixedLenFeature(slots, **floats),
    }
    if kind.has_sentence_task:
        spec["next_sentence_labels"] = tf.io.FixedLenFeature([1], **ints)
    found = tf.io.parse_example(records, spec)
    features = {
        "token_ids": found[kind.token_key],
        "segment_ids": found[kind.segment_key],
        "padding_mask": found["input_mask"],
        "masked_positions": found["masked_lm_positions"],
        "masked_ids": found["masked_lm_ids"],
        "masked_weights": found["masked_lm_weights"],
    }
    if kind.has_sentence_task:
        features["is_random_next"] = found["next_sentence_labels"][:, 0]
    return {
        name: value if value.dtype == tf.float32 else tf.cast(value, tf.int32)
        for name, value in features.items()
    }


def _parse_dynamic(records: tf.Tensor, kind: RecordKind, length: int) -> dict[str, tf.Tensor]:
    spec = {
        "token_ids": tf.io.RaggedFeature(tf.int64),
        "first_length": tf.io.FixedLenFeature([], tf.int64),
    }
    if kind.has_sentence_task:
        spec["is_random_next"] = tf.io.FixedLenFeature([], tf.int64)
    if kind.has_words:
        spec["continues"] = tf.io.RaggedFeature(tf.int64)
    found = tf.io.parse_example(records, spec)
    shape = [records.shape[0], length]
    lengths = tf.cast(found["token_ids"].row_lengths(), tf.int32)[:, tf.newaxis]
    positions = tf.range(length)
    real = positions < lengths
    second = positions >= tf.cast(found["first_length"], tf.int32)[:, tf.newaxis]
    features = {
        "token_ids": tf.cast(found["token_ids"].to_tensor(shape=shape), tf.int32),
        "segment_ids": tf.cast(real & second, tf.int32),
        "padding_mask": tf.cast(real, tf.int32),
    }
    if kind.has_words:
        features["continues"] = tf.cast(found["continues"].to_tensor(shape=shape), tf.int32)
    if kind.has_sentence_task:
        features["is_random_next"] = tf.cast(found["is_random_next"], tf.int32)
    return features


def _finisher(shards: Shards, vocab: Vocab, masking: Masking | None):
    """(features, seeds) -> (inputs, targets, weights)."""
    if shards.form == "static":
        if masking is not None:
            raise ValueError(f"{shards.path}: its masks are drawn already (static form)")
        return lambda features, seeds: _as_given(features)
    masking = masking or Masking(**shards.manifest.get("masking", {}))
    return lambda features, seeds: mask_batch(
        features, tf.stack([tf.cast(part, tf.int64) for part in seeds]), masking, vocab
    )


def _as_given(features: dict[str, tf.Tensor]):
    names = ("token_ids", "segment_ids", "padding_mask", "masked_positions")
    targets = {"masked_lm": features["masked_ids"]}
    weights = {"masked_lm": features["masked_weights"]}
    if "is_random_next" in features:
        targets["next_sentence"] = features["is_random_next"]
        weights["next_sentence"] = tf.ones_like(features["is_random_next"], tf.float32)
    return {name: features[name] for name in names}, targets, weights
