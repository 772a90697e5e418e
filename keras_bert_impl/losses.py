"""Losses as weighted means: sum(w * loss) / sum(w).

Keras divides by the number of slots by default, so a loss would depend on how many rows or
positions have weight 0; Google's `run_pretraining.py` divides by the sum of the weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import keras
from keras import ops

__all__ = [
    "SparseAccuracy",
    "SparseCrossentropy",
    "WeightedMean",
    "as_weighted_mean",
    "track_outputs",
    "weighted_sums",
]

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
if ON_TENSORFLOW:
    import tensorflow as tf


def as_weighted_mean(loss, total: Callable | None = None):
    """The `loss` argument of `compile` with every mean replaced by the weighted mean.

    Args:
        loss: a name, function, `keras.losses.Loss`, None, or a list or dict of these.
        total: sums a float scalar over all replicas; None on one device.

    Returns:
        The same structure of `keras.losses.Loss` objects. The reduction "sum", which a caller
        asks for by name, is kept. Objects of the caller are not changed.

    Raises:
        ValueError: Keras knows no loss of that name.
    """

    def one(loss):
        if loss is None:
            return None
        loss = keras.losses.get(loss)
        if isinstance(loss, WeightedMean):
            loss = loss.loss
        if getattr(loss, "reduction", None) in ("sum", "none"):
            return loss
        return WeightedMean(loss, total=total)

    return keras.tree.map_structure(one, loss)


@keras.saving.register_keras_serializable("keras_bert_impl")
class WeightedMean(keras.losses.Loss):
    """sum(w * loss) / sum(w), both sums over the global batch; 0 where every weight is 0.

    Args:
        loss: a `keras.losses.Loss`, or a function (y_true, y_pred) -> losses [B, ...].
        total: sums a float scalar over all replicas; None on one device.
    """

    def __init__(self, loss, name: str | None = None, total: Callable | None = None):
        name = name or getattr(loss, "name", None) or getattr(loss, "__name__", "loss")
        super().__init__(name=name, reduction="mean_with_sample_weight")
        self.loss = loss
        self.total = total
        self.tracker = None
        self._share = None

    @contextlib.contextmanager
    def scaled(self, share):
        """Within the block: the mean of this call's rows alone, times `share`, a scalar.

        With the share of the global weight that the rows have, the sum over all parts of a batch
        is the mean over the batch.
        """
        self._share = share
        try:
            yield
        finally:
            self._share = None

    def __call__(self, y_true, y_pred, sample_weight=None):
        weighted_loss, weights = weighted_sums(self, y_true, y_pred, sample_weight)
        if self.tracker is not None:
            mean = ops.divide_no_nan(weighted_loss, weights)
            self.tracker.update_state(ops.stop_gradient(mean), sample_weight=weights)
        if self._share is not None:
            return ops.divide_no_nan(weighted_loss, weights) * self._share
        if self.total is not None:
            weights = self.total(weights)
        return ops.divide_no_nan(weighted_loss, weights)

    def call(self, y_true, y_pred):
        if isinstance(self.loss, keras.losses.Loss):
            return self.loss.call(y_true, y_pred)
        return self.loss(*_match_ranks(y_true, y_pred))

    def get_config(self):
        return {"loss": keras.saving.serialize_keras_object(self.loss), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config["loss"]), name=config["name"])


def track_outputs(losses) -> None:
    """Gives each weighted mean in a dict of losses a `tracker`, the metric `{name}_loss`.

    It is sum(w * loss) / sum(w) over all batches since its reset. Nothing is done unless
    `losses` is a flat dict of weighted means: only then is their sum the whole loss.

    Args:
        losses: what `as_weighted_mean` returned.
    """
    given = losses if isinstance(losses, dict) else {}
    given = {name: loss for name, loss in given.items() if loss is not None}
    if all(isinstance(loss, WeightedMean) for loss in given.values()):
        for name, loss in given.items():
            loss.tracker = keras.metrics.Mean(name=f"{name}_loss")


def _match_ranks(y_true, y_pred):
    """Drops or adds the last axis of size 1 of `y_true`, as Keras does for its own losses."""
    extra = len(y_true.shape) - len(y_pred.shape)
    if extra == 1 and y_true.shape[-1] == 1:
        return ops.squeeze(y_true, axis=-1), y_pred
    if extra == -1 and y_pred.shape[-1] == 1:
        return ops.expand_dims(y_true, -1), y_pred
    return y_true, y_pred


def weighted_sums(loss: keras.losses.Loss, y_true, y_pred, sample_weight=None):
    """The two sums whose ratio is the weighted mean of a loss.

    Args:
        loss: its `call` gives the losses [B, ...].
        y_true, y_pred: as `loss.call` takes them; a Keras mask on `y_pred` counts as weight.
            A class number of weight 0 may be any, as -100.
        sample_weight: [B] or [B, ...] or None (every weight is 1).

    Returns:
        (sum of w * loss, sum of w), two float scalars.
    """
    mask = getattr(y_pred, "_keras_mask", None)
    y_true, y_pred = (ops.convert_to_tensor(y, dtype=loss.dtype) for y in (y_true, y_pred))
    if len(y_true.shape) == len(y_pred.shape) - 1:
        # Numbers of classes: one that does not count need not be one, as the usual -100.
        counts = _product_of_weights(y_true, sample_weight, mask) != 0
        y_true = ops.where(counts, y_true, ops.zeros_like(y_true))
    losses = loss.call(y_true, y_pred)
    ignored = getattr(getattr(loss, "loss", loss), "ignore_class", None)
    regarded = None if ignored is None else y_true != ignored
    weights = _product_of_weights(losses, sample_weight, mask, regarded)
    return ops.sum(losses * weights), ops.sum(weights)


def _product_of_weights(values, *factors):
    """The product of weights [B] or [B, ...], where given, in the shape of the values."""
    weights = ops.ones_like(values)
    for factor in factors:
        if factor is None:
            continue
        factor = ops.cast(factor, values.dtype)
        while len(factor.shape) > len(values.shape) and factor.shape[-1] == 1:
            factor = ops.squeeze(factor, -1)
        while len(factor.shape) < len(values.shape):
            factor = ops.expand_dims(factor, -1)
        weights = weights * factor
    return weights


@keras.saving.register_keras_serializable("keras_bert_impl")
class SparseCrossentropy(keras.losses.Loss):
    """log(sum(exp(x))) - x[y]: as `keras.losses.SparseCategoricalCrossentropy(from_logits=True)`.

    On CPUs TensorFlow's own operation takes three times as long as the passes it stands for,
    which over a whole vocabulary is much of a step.

    Shapes: y integers [...], x float [..., V] -> [...].

    Raises:
        ValueError: `fit` or `evaluate` meets a target outside [0, V), on CPUs.
    """

    def __init__(self, name: str = "sparse_crossentropy", **kwargs):
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true, "int32")
        if not ON_TENSORFLOW or tf.config.list_physical_devices("GPU"):
            return ops.sparse_categorical_crossentropy(labels, y_pred, from_logits=True)
        rows = tf.reshape(y_pred, (-1, y_pred.shape[-1]))
        with tf.control_dependencies([_check_below(labels, y_pred.shape[-1])]):
            losses = _crossentropy(rows, tf.reshape(labels, [-1]))
        return tf.reshape(losses, tf.shape(labels))


@keras.saving.register_keras_serializable("keras_bert_impl")
class SparseAccuracy(keras.metrics.MeanMetricWrapper):
    """Share of rows whose largest logit is that of the target; a tie counts as right.

    As `keras.metrics.SparseCategoricalAccuracy`, in one pass over the logits.

    Shapes: y integers [...], x float [..., V].
    """

    def __init__(self, name: str = "accuracy", dtype=None):
        super().__init__(_is_largest, name=name, dtype=dtype)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


def _is_largest(y_true, y_pred):
    # The loss refuses targets outside the range.
    labels = ops.clip(ops.cast(y_true, "int32"), 0, y_pred.shape[-1] - 1)
    if ON_TENSORFLOW:
        found = tf.gather(y_pred, labels, batch_dims=len(labels.shape))
    else:
        found = ops.take_along_axis(y_pred, ops.expand_dims(labels, -1), axis=-1)[..., 0]
    return ops.cast(found >= ops.max(y_pred, axis=-1), "float32")


def _check_below(labels, limit: int):
    """An operation that fails with a message that the trainer shows."""
    lowest = tf.minimum(tf.reduce_min(labels), 0)
    highest = tf.maximum(tf.reduce_max(labels), 0)
    message = f"keras_bert_impl: targets must be in [0, {limit})"
    valid = tf.logical_and(lowest >= 0, highest < limit)
    return tf.debugging.Assert(valid, [message, lowest, highest])


if ON_TENSORFLOW:

    @tf.custom_gradient
    def _crossentropy(x, labels):
        """Rows [R, V] and their labels [R] -> losses [R]."""
        largest = tf.reduce_max(x, axis=-1, keepdims=True)
        exp = tf.exp(x - largest)
        total = tf.reduce_sum(exp, axis=-1, keepdims=True)
        losses = (tf.math.log(total) + largest)[:, 0] - tf.gather(x, labels, batch_dims=1)

        def gradient(upstream):
            share = exp * (upstream[:, None] / total)
            where = tf.stack([tf.range(tf.size(labels)), labels], axis=1)
            return tf.tensor_scatter_nd_sub(share, where, upstream), None

        return losses, gradient
