"""Losses as weighted means: against NumPy, in structures, through a config."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.losses import (
    SparseAccuracy,
    SparseCrossentropy,
    WeightedMean,
    as_weighted_mean,
    weighted_sums,
)

RANDOM = np.random.default_rng(0)
TRUE = RANDOM.integers(0, 5, (4, 6))
LOGITS = RANDOM.normal(size=(4, 6, 5)).astype("float32")
WEIGHTS = RANDOM.integers(0, 3, (4, 6)).astype("float32")
LOSSES = np.log(np.exp(LOGITS).sum(-1)) - np.take_along_axis(LOGITS, TRUE[..., None], -1)[..., 0]
CROSSENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.mark.parametrize("weights", [None, WEIGHTS, WEIGHTS[..., None], WEIGHTS[:, 0]])
def test_weighted_mean(weights):
    full = np.ones_like(LOSSES) if weights is None else weights
    full = full[:, None] if full.ndim == 1 else full.reshape(4, 6)
    full = np.broadcast_to(full, LOSSES.shape)
    loss = WeightedMean(CROSSENTROPY)(TRUE, LOGITS, sample_weight=weights)
    assert float(loss) == pytest.approx((LOSSES * full).sum() / full.sum(), abs=1e-5)
    sums = weighted_sums(CROSSENTROPY, TRUE, LOGITS, weights)
    np.testing.assert_allclose(
        [float(x) for x in sums], [(LOSSES * full).sum(), full.sum()], rtol=1e-5
    )


@pytest.mark.parametrize("loss", [CROSSENTROPY, SparseCrossentropy()])
@pytest.mark.parametrize("how", ["weights", "mask"])
def test_a_class_that_does_not_count_may_be_any(loss, how):
    targets, logits = np.where(WEIGHTS > 0, TRUE, -100), ops.convert_to_tensor(LOGITS)
    weights = (WEIGHTS > 0).astype("float32")
    if how == "mask":
        logits._keras_mask, weights = ops.convert_to_tensor(weights > 0), None
    found = float(WeightedMean(loss)(targets, logits, sample_weight=weights))
    assert found == pytest.approx(LOSSES[WEIGHTS > 0].mean(), abs=1e-5)


def test_no_weight_at_all_is_no_loss():
    assert float(WeightedMean(CROSSENTROPY)(TRUE, LOGITS, np.zeros((4, 6)))) == 0


def test_a_keras_mask_counts_as_weight():
    logits = ops.convert_to_tensor(LOGITS)
    logits._keras_mask = ops.convert_to_tensor(WEIGHTS > 0)
    expected = LOSSES[WEIGHTS > 0].mean()
    assert float(WeightedMean(CROSSENTROPY)(TRUE, logits)) == pytest.approx(expected, abs=1e-5)


def test_total_sums_over_replicas():
    loss = WeightedMean(CROSSENTROPY, total=lambda weights: 4 * weights)
    assert float(loss(TRUE, LOGITS)) == pytest.approx(LOSSES.mean() / 4, abs=1e-5)


def test_functions_match_ranks_as_keras_does():
    loss = as_weighted_mean("mse")
    y = np.array([1.0, 2.0, 4.0], "float32")
    assert float(loss(y, np.zeros((3, 1), "float32"))) == pytest.approx(7.0)
    assert float(loss(y[:, None], np.zeros(3, "float32"))) == pytest.approx(7.0)


def test_structures_keep_their_shape():
    summed = keras.losses.MeanSquaredError(reduction="sum")
    losses = as_weighted_mean({"a": "mse", "b": [CROSSENTROPY, None], "c": summed})
    assert isinstance(losses["a"], WeightedMean)
    assert losses["b"][0].loss is CROSSENTROPY
    assert losses["b"][1] is None
    assert losses["c"] is summed
    assert as_weighted_mean(None) is None
    again = as_weighted_mean(losses["a"], total=abs)
    assert again.loss is losses["a"].loss
    assert again.total is abs


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="made_up"):
        as_weighted_mean("made_up")


@pytest.mark.parametrize("loss", [CROSSENTROPY, SparseCrossentropy(), "mse"])
def test_config_round_trip(loss):
    loss = as_weighted_mean(loss)
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert isinstance(copy, WeightedMean)
    assert copy.name == loss.name
    y_true = LOGITS * 2 if loss.name == "mean_squared_error" else TRUE
    assert float(copy(y_true, LOGITS)) == float(loss(y_true, LOGITS))


def test_sparse_crossentropy():
    for scale in (1, 300):  # exp(300) is no float32
        losses = ops.convert_to_numpy(SparseCrossentropy().call(TRUE, ops.array(LOGITS * scale)))
        x = LOGITS.astype("float64") * scale
        top = x.max(-1, keepdims=True)
        expected = (
            np.log(np.exp(x - top).sum(-1))
            + (top - np.take_along_axis(x, TRUE[..., None], -1))[..., 0]
        )
        np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-5)
    assert ops.shape(SparseCrossentropy().call(TRUE[:, 0], ops.array(LOGITS[:, 0]))) == (4,)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a form of TensorFlow's")
def test_gradient_of_sparse_crossentropy():
    import tensorflow as tf

    x = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(SparseCrossentropy().call(TRUE, x) * WEIGHTS)
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    expected = (probabilities - np.eye(5)[TRUE]) * WEIGHTS[..., None]
    np.testing.assert_allclose(tape.gradient(loss, x).numpy(), expected, atol=1e-5)


def test_sparse_accuracy():
    metric, expected = SparseAccuracy(), keras.metrics.SparseCategoricalAccuracy()
    for part in (slice(0, 3), slice(3, 4)):
        metric.update_state(TRUE[part], LOGITS[part], sample_weight=WEIGHTS[part])
        expected.update_state(TRUE[part], LOGITS[part], sample_weight=WEIGHTS[part])
    assert float(metric.result()) == pytest.approx(float(expected.result()), abs=1e-6)
    assert 0 < float(metric.result()) < 1
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert isinstance(copy, SparseAccuracy)
    assert copy.name == "accuracy"
