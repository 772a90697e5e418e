"""Sums over replicas, and batches in parts."""

from __future__ import annotations

import keras
import tensorflow as tf

from keras_bert_impl.losses import WeightedMean

__all__ = ["add", "part_of", "shares_of", "sum_over_replicas", "value_at"]


def sum_over_replicas(value):
    """The sum of a tensor over all replicas; the tensor itself on one device."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)


def add(one, other):
    """The sum of two gradients, of which one or both may be None."""
    return other if one is None else one if other is None else one + other


def part_of(value, part: int, parts: int):
    """Rows of one of the parts of a batch; of equal size where the batch size is static.

    Eagerly every size is, also that of the last batch: then parts may differ by a row.
    """
    if value is None:
        return None
    rows = value.shape[0]
    if rows is not None and rows % parts and not tf.executing_eagerly():
        raise ValueError(f"{rows} rows a replica cannot be cut into micro_batches={parts}")
    rows = tf.shape(value)[0] if rows is None else rows
    return tf.identity(value[rows * part // parts : rows * (part + 1) // parts])


def value_at(values, path: tuple):
    """The value for an output, where each has its own; else the value for all."""
    for key in path:
        if not keras.tree.is_nested(values):
            break
        values = values[key]
    return values


def shares_of(losses, sample_weight, rows, parts: int) -> list[tuple]:
    """For each loss the share, float32 [parts], of the global weight that each part has here."""
    shares = []
    for path, loss in keras.tree.flatten_with_path(losses):
        if not isinstance(loss, WeightedMean):
            continue
        weight = value_at(sample_weight, path)
        weight = tf.ones(rows) if weight is None else tf.cast(weight, "float32")
        here = tf.stack([tf.reduce_sum(part_of(weight, part, parts)) for part in range(parts)])
        shares.append((loss, tf.math.divide_no_nan(here, sum_over_replicas(tf.reduce_sum(here)))))
    return shares
