"""Operations that have a faster form on TensorFlow, each beside its `keras.ops` twin.

The layers call the public functions. The `*_generic` twins define what is computed, and serve on
every other backend. The TensorFlow forms of inference are those that TensorFlow's graph
optimizer fuses (MatMul + BiasAdd + GELU, LayerNorm) on a CPU; those of training read and write
each large array as few times as possible.
"""

from __future__ import annotations

import keras
from keras import ops
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

__all__ = ["check_below", "check_length", "dropout", "gelu", "is_building", "layer_norm", "rows_at"]

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
if ON_TENSORFLOW:
    import tensorflow as tf

# Starts every run-time check's message, so that the trainer can show it without the trace.
CHECK_MARK = "keras_bert_impl: "

# tanh-form GELU: x * sigmoid(LINEAR * x + CUBIC * x^3)
LINEAR = 2 * 0.7978845608028654
CUBIC = LINEAR * 0.044715
SQRT_HALF = 0.7071067811865476
LOG_SQRT_2_PI = 0.9189385332046727


def gelu_generic(x, approximate: bool):
    """GELU (Hendrycks & Gimpel 2016): x * P(X <= x), exact (erf) or by tanh."""
    if approximate:
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + ops.tanh(inner))
    return 0.5 * x * (1.0 + ops.erf(x * SQRT_HALF))


def gelu(x, approximate: bool, training: bool = False):
    """GELU with the float type of `x`; the exact form uses Erf, as exporters lack Erfc."""
    if not ON_TENSORFLOW:
        return gelu_generic(x, approximate)
    if not training:
        # TensorFlow fuses the tanh form into the product before it only where this scope's name
        # sorts after the name of the layer that gave x.
        return tf.nn.gelu(x, approximate=approximate, name="tanh_gelu")
    return _trained_gelu_tanh(x) if approximate else _trained_gelu_erf(x)


def layer_norm_generic(x, gamma, beta, epsilon: float):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis, in float32."""
    y = ops.cast(x, "float32")
    mean, variance = ops.moments(y, axes=-1, keepdims=True)
    y = (y - mean) * ops.rsqrt(variance + epsilon) * gamma + beta
    return ops.cast(y, x.dtype)


def layer_norm(x, gamma, beta, epsilon: float, training: bool = False):
    """LayerNorm (Ba et al. 2016) over the last axis; float32 sums whatever the type of `x`.

    Shapes: x float [..., H], gamma and beta float32 [H] -> as x.
    """
    if not ON_TENSORFLOW or x.dtype == tf.float16 or not _on_cpu():
        return layer_norm_generic(x, gamma, beta, epsilon)
    shape = tf.shape(x)
    rows = tf.reduce_prod(shape[:-1])
    y, *_ = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x, (1, rows, x.shape[-1], 1)),
        scale=tf.fill([rows], 1.0),
        offset=tf.fill([rows], 0.0),
        mean=tf.constant([], tf.float32),
        variance=tf.constant([], tf.float32),
        epsilon=epsilon,
        is_training=True,
        data_format="NCHW",
    )
    gamma, beta = tf.cast(gamma, x.dtype), tf.cast(beta, x.dtype)
    y = tf.reshape(y, shape)
    if training:
        y = tf.nn.bias_add(_scale(tf.reshape(y, (rows, x.shape[-1])), gamma), beta)
        y = tf.reshape(y, shape)
    else:
        y = y * gamma + beta
    return tf.ensure_shape(y, x.shape)


def dropout_generic(x, rate: float, seeds):
    """Inverted dropout (Srivastava et al. 2014): 0 with probability `rate`, else x / (1 - rate)."""
    return keras.random.dropout(x, rate, seed=seeds)


def dropout(x, rate: float, seeds):
    """Inverted dropout with a mask of its own in each replica of a `tf.distribute` strategy.

    On TensorFlow the masks are cut from random words of 8 bits where that gives `rate` within
    2 %, and else of 16 bits; x is divided by the exact probability of its survival.

    Args:
        x: float [...].
        rate: in (0, 1).
        seeds: a `keras.random.SeedGenerator`.
    """
    if not ON_TENSORFLOW:
        return dropout_generic(x, rate, seeds)
    bits = 8 if abs(round(rate * 256) / 256 - rate) <= 0.02 * rate else 16
    threshold = round(rate * 2**bits)
    words = _random_words(tf.shape(x), bits, _seed_of_replica(seeds))
    kept = tf.cast(words >= tf.constant(threshold, words.dtype), x.dtype)
    return x * (kept * (1.0 / (1.0 - threshold / 2**bits)))


def rows_at(x, positions):
    """The vectors at `positions` of each row, one below the other.

    Shapes: x float [B, S, H], positions int32 [B, P] -> float [B * P, H]; static where they are.

    Raises:
        ValueError: a position is not in [0, S); as `check_below`.
    """
    batch, length = ops.shape(x)[:2]
    message = "masked_positions must be less than the number of tokens in a row"
    positions = _check(ops.cast(positions, "int32"), length, message)
    starts = ops.expand_dims(ops.arange(batch, dtype="int32") * length, 1)
    rows = ops.reshape(x, (-1, x.shape[-1]))
    return ops.take(rows, ops.reshape(positions + starts, (-1,)), axis=0)


def is_building() -> bool:
    """Whether Keras calls with stand-ins, of which it knows nothing but shapes."""
    return in_symbolic_scope()


def check_length(length, longest: int):
    """Returns `length`, int32 scalar, unless it is larger than `longest`; see `check_below`."""
    message = f"a sequence must have at most {longest} tokens (see max_position_embeddings)"
    return _check(length, longest + 1, message)


def check_below(values, limit: int, what: str):
    """Returns `values` [...] int32 unless one is not in [0, limit): then the step fails.

    On TensorFlow only; XLA removes the check from compiled graphs.

    Raises:
        ValueError: in eager mode. In a graph the step ends in an InvalidArgumentError whose
            message holds `CHECK_MARK`.
    """
    return _check(values, limit, f"{what} must be in [0, {limit})")


def _check(values, limit: int, message: str):
    if not ON_TENSORFLOW or not tf.is_tensor(values):
        return values
    lowest = tf.minimum(tf.reduce_min(values), 0)
    highest = tf.maximum(tf.reduce_max(values), 0)
    valid = tf.logical_and(lowest >= 0, highest < limit)
    if tf.executing_eagerly():
        if not valid:
            raise ValueError(f"{message}, got values from {int(lowest)} to {int(highest)}")
        return values
    check = tf.debugging.Assert(valid, [f"{CHECK_MARK}{message}", lowest, highest])
    with tf.control_dependencies([check]):
        return tf.identity(values)


def _on_cpu() -> bool:
    """Whether nothing but CPUs computes: cuDNN's and XLA's forms of the fused operations differ."""
    on_tpu = isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
    return not on_tpu and not tf.config.list_physical_devices("GPU")


def _random_words(shape, bits: int, seed):
    """Uniform unsigned integers of 8 or 16 bits, cut from random int32."""
    dtype = tf.uint8 if bits == 8 else tf.uint16
    count, per_word = tf.reduce_prod(shape), 32 // bits
    words = tf.random.stateless_uniform(
        [(count + per_word - 1) // per_word], seed, minval=None, maxval=None, dtype=tf.int32
    )
    return tf.reshape(tf.reshape(tf.bitcast(words, dtype), [-1])[:count], shape)


def _seed_of_replica(seeds):
    """int32 [2]; Keras mirrors the state of `seeds`, so replicas would draw the same numbers."""
    seed = tf.cast(tf.convert_to_tensor(seeds.next()), tf.int32)
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return seed
    return seed + tf.stack([context.replica_id_in_sync_group * 1000003, 0])


if ON_TENSORFLOW:

    @tf.custom_gradient
    def _trained_gelu_tanh(x):
        square = tf.square(x)
        share = tf.sigmoid(x * (square * CUBIC + LINEAR))

        def gradient(upstream):
            slope = x * (square * (3 * CUBIC) + LINEAR)
            return upstream * (share + tf.raw_ops.SigmoidGrad(y=share, dy=slope))

        return x * share, gradient

    @tf.custom_gradient
    def _trained_gelu_erf(x):
        share = tf.math.erf(x * SQRT_HALF) * 0.5 + 0.5

        def gradient(upstream):
            density = tf.exp(tf.square(x) * -0.5 - LOG_SQRT_2_PI)
            return upstream * (share + x * density)

        return x * share, gradient

    @tf.custom_gradient
    def _scale(x, gamma):
        """Rows [R, H] times gamma [H]; the gradient of gamma by the fast column sum."""

        def gradient(upstream):
            columns = tf.raw_ops.BiasAddGrad(out_backprop=upstream * x)
            return upstream * gamma, columns

        return x * gamma, gradient
