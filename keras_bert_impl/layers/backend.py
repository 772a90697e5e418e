"""Operations that have a faster form on TensorFlow, each beside its `keras.ops` twin.

The layers call the public functions; the `*_generic` twins define what they compute and serve
on every other backend.
"""

from __future__ import annotations

import keras
from keras import ops

__all__ = ["check_below", "dropout", "gelu"]

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
if ON_TENSORFLOW:
    import tensorflow as tf

# Starts every run-time check's message, so that the trainer can show it without the trace.
CHECK_MARK = "keras_bert_impl: "


def gelu_generic(x, approximate: bool):
    """GELU (Hendrycks & Gimpel 2016): x * P(X <= x), exact (erf) or by tanh."""
    if approximate:
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + ops.tanh(inner))
    return 0.5 * x * (1.0 + ops.erf(x * 0.7071067811865476))


def gelu(x, approximate: bool):
    """GELU with the float type of `x`; written with Erf, never Erfc, which exporters lack."""
    return gelu_generic(x, approximate)


def dropout_generic(x, rate: float, seed):
    """Inverted dropout (Srivastava et al. 2014)."""
    return keras.random.dropout(x, rate, seed=seed)


def dropout(x, rate: float, seed):
    return dropout_generic(x, rate, seed)


def check_below(values, limit: int, what: str):
    """Returns `values` [...] int32 unless one is not in [0, limit): then the step fails.

    On TensorFlow only; XLA removes the check from compiled graphs.

    Raises:
        ValueError: in eager mode. In a graph the step ends in an InvalidArgumentError whose
            message holds `CHECK_MARK`.
    """
    if not ON_TENSORFLOW or not tf.is_tensor(values) or limit is None:
        return values
    lowest = tf.minimum(tf.reduce_min(values), 0)
    highest = tf.maximum(tf.reduce_max(values), 0)
    valid = tf.logical_and(lowest >= 0, highest < limit)
    message = f"{what} must be in [0, {limit})"
    if tf.executing_eagerly():
        if not valid:
            raise ValueError(f"{message}, got values from {int(lowest)} to {int(highest)}")
        return values
    check = tf.debugging.Assert(valid, [f"{CHECK_MARK}{message}", lowest, highest])
    with tf.control_dependencies([check]):
        return tf.identity(values)
