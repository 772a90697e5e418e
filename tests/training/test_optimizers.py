"""AdamW against Google's trajectory and a NumPy reference; the schedule's corners."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest

from keras_bert_impl.training import AdamW, WarmupLinearDecay


def test_schedule_corners():
    schedule = WarmupLinearDecay(1e-3, total_steps=100, warmup_steps=10)
    values = [float(schedule(step)) for step in (0, 5, 10, 55, 100, 200)]
    np.testing.assert_allclose(values, [0, 5e-4, 9e-4, 4.5e-4, 0, 0], rtol=1e-6)


def test_schedule_without_warmup_starts_at_the_peak():
    assert float(WarmupLinearDecay(1e-3, total_steps=10, warmup_steps=0)(0)) == pytest.approx(1e-3)


def test_schedule_rejects_a_warmup_longer_than_the_run():
    with pytest.raises(ValueError, match="warmup_steps=11"):
        WarmupLinearDecay(1e-3, total_steps=10, warmup_steps=11)


def test_config_round_trip():
    optimizer = AdamW(WarmupLinearDecay(1e-3, 10), bias_correction=False, epsilon=1e-5)
    copy = AdamW.from_config(optimizer.get_config())
    assert copy.get_config() == optimizer.get_config()
    assert copy.bias_correction is False


def test_follows_googles_trajectory(shared):
    golden = json.loads((shared / "reference/google_optimizer_trajectory.json").read_text())
    names = {"dense/kernel": "kernel", "dense/bias": "bias", "LayerNorm/gamma": "gamma"}
    variables = {key: keras.Variable(golden["init"][key], name=name) for key, name in names.items()}
    optimizer = AdamW(
        WarmupLinearDecay(0.01, total_steps=20, warmup_steps=5), bias_correction=False
    )
    optimizer.build(list(variables.values()))
    for step in golden["steps"]:
        gradients = [
            2 * golden["c"][key] * (variable - np.array(golden["target"][key], "float32"))
            for key, variable in variables.items()
        ]
        scale = _gradient_scale(golden, step, gradients)
        optimizer.apply([g * scale for g in gradients], list(variables.values()))
        for key, variable in variables.items():
            np.testing.assert_allclose(keras.ops.convert_to_numpy(variable), step[key], atol=1e-5)


def _gradient_scale(golden, step, gradients):
    norm = float(np.sqrt(sum(np.sum(np.square(np.array(g))) for g in gradients)))
    return step["grad_global_norm_before_clip"] / norm


@pytest.mark.parametrize("epsilon", [1e-6, 0.1])
@pytest.mark.parametrize("bias_correction", [True, False])
def test_equals_numpy(bias_correction, epsilon):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(3, 4)).astype("float32")
    variable, vector = keras.Variable(start, name="kernel"), keras.Variable(start[0], name="gamma")
    optimizer = AdamW(
        0.01,
        weight_decay=0.02,
        epsilon=epsilon,
        global_clipnorm=None,
        bias_correction=bias_correction,
    )
    optimizer.build([variable, vector])
    w, m, v = start.astype("float64"), np.zeros((3, 4)), np.zeros((3, 4))
    for t in range(1, 6):
        g = rng.normal(size=(3, 4))
        optimizer.apply([keras.ops.convert_to_tensor(g, "float32"), keras.ops.zeros(4)])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        mean, square = (m / (1 - 0.9**t), v / (1 - 0.999**t)) if bias_correction else (m, v)
        w = w - 0.01 * mean / (np.sqrt(square) + epsilon) - 0.01 * 0.02 * w
    np.testing.assert_allclose(keras.ops.convert_to_numpy(variable), w, atol=2e-6)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(vector), start[0])


def test_vectors_and_biases_are_not_decayed():
    dense = keras.layers.EinsumDense("bh,hnd->bnd", (2, 3), bias_axes="nd")
    dense.build((None, 4))
    norm = keras.layers.LayerNormalization()
    norm.build((None, 4))
    weights = [*dense.trainable_weights, *norm.trainable_weights]
    dense.bias.assign(np.ones((2, 3)))
    before = [keras.ops.convert_to_numpy(weight) for weight in weights]
    optimizer = AdamW(0.5, weight_decay=0.1, global_clipnorm=None)
    optimizer.build(weights)
    optimizer.apply([keras.ops.zeros(weight.shape) for weight in weights])
    for weight, old in zip(weights, before, strict=True):
        expected = old * (1 - 0.5 * 0.1) if weight.name == "kernel" else old
        np.testing.assert_allclose(keras.ops.convert_to_numpy(weight), expected, rtol=1e-6)


def test_clips_by_the_global_norm():
    a, b = keras.Variable([0.0]), keras.Variable([0.0])
    optimizer = AdamW(1.0, beta_1=0.0, beta_2=0.0, epsilon=1e6, bias_correction=False)
    optimizer.build([a, b])
    optimizer.apply([keras.ops.array([3.0]), keras.ops.array([4.0])])
    np.testing.assert_allclose([float(a[0]), float(b[0])], [-0.6e-6, -0.8e-6], rtol=1e-4)
