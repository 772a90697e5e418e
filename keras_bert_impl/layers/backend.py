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

    On TensorFlow only; XLA removes the check.
    """
    if not ON_TENSORFLOW or not tf.is_tensor(values):
        return values
    message = f"{CHECK_MARK}{what} must be in [0, {limit})"
    checks = [
        tf.debugging.assert_less(values, limit, message=message, summarize=8),
        tf.debugging.assert_non_negative(values, message=message, summarize=8),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return tf.identity(values)
