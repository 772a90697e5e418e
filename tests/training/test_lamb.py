"""LAMB against NumPy, what it leaves out, and through a config."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from keras_bert_impl.training import Lamb, WarmupLinearDecay

RANDOM = np.random.default_rng(0)
START = RANDOM.normal(size=(3, 4)).astype("float32")


def lamb(w, gradients, rate, decay, adapts=True, corrects=True):
    """You et al. 2020, algorithm 2, in float64."""
    w, m, v = np.array(w, "float64"), np.zeros_like(w, "float64"), np.zeros_like(w, "float64")
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        powers = (0.9**t, 0.999**t) if corrects else (0, 0)
        u = m / (1 - powers[0]) / (np.sqrt(v / (1 - powers[1])) + 1e-6)
        u = u + decay * w
        ratio = np.linalg.norm(w) / np.linalg.norm(u) if adapts and np.linalg.norm(w) else 1.0
        w = w - rate * ratio * u
    return w


@pytest.mark.parametrize("corrects", [True, False])
def test_equals_numpy(corrects):
    variables = {
        "kernel": keras.Variable(START.copy(), name="kernel"),
        "embeddings": keras.Variable(np.zeros((2, 4), "float32"), name="embeddings"),
        "bias": keras.Variable(START[:2] * 2, name="bias"),
        "gamma": keras.Variable(START[0] * 3, name="gamma"),
    }
    starts = {name: keras.ops.convert_to_numpy(v).copy() for name, v in variables.items()}
    optimizer = Lamb(0.02, weight_decay=0.1, global_clipnorm=None, bias_correction=corrects)
    optimizer.build(list(variables.values()))
    gradients = [[RANDOM.normal(size=v.shape) for v in starts.values()] for _ in range(5)]
    for step in gradients:
        tensors = [keras.ops.convert_to_tensor(g, "float32") for g in step]
        optimizer.apply(tensors, list(variables.values()))
    for index, (name, start) in enumerate(starts.items()):
        plain = name in ("bias", "gamma")
        expected = lamb(
            start,
            [step[index] for step in gradients],
            0.02,
            0.0 if plain else 0.1,
            adapts=not plain,
            corrects=corrects,
        )
        ours = keras.ops.convert_to_numpy(variables[name])
        np.testing.assert_allclose(ours, expected, atol=3e-6, err_msg=name)


def test_no_gradient_and_no_weight_stay_finite():
    kernel = keras.Variable(np.zeros((2, 2), "float32"), name="kernel")
    optimizer = Lamb(0.1)
    optimizer.build([kernel])
    optimizer.apply([keras.ops.zeros((2, 2))])
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(kernel), np.zeros((2, 2)))


def test_clips_by_the_global_norm():
    a, b = keras.Variable([0.0]), keras.Variable([0.0])
    optimizer = Lamb(1.0, beta_1=0.0, beta_2=0.0, epsilon=1e6, bias_correction=False)
    optimizer.build([a, b])
    optimizer.apply([keras.ops.array([3.0]), keras.ops.array([4.0])])
    np.testing.assert_allclose([float(a[0]), float(b[0])], [-0.6e-6, -0.8e-6], rtol=1e-4)


def test_config_round_trip():
    optimizer = Lamb(WarmupLinearDecay(1e-3, 10), weight_decay=0.2, bias_correction=False)
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert isinstance(copy, Lamb)
    assert copy.get_config() == optimizer.get_config()
    assert (copy.decay, copy.bias_correction) == (0.2, False)


def test_a_file_keeps_its_state(tmp_path):
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile(Lamb(0.1), loss="mse")
    x, y = np.ones((4, 3)), np.ones((4, 2))
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for other in (model, loaded):
        other.fit(x, y, verbose=0)
    assert int(keras.ops.convert_to_numpy(loaded.optimizer.iterations)) == 2
    for ours, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-7)
