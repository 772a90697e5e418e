"""Keras' JAX backend on four devices: the weights of one device, and they load in TensorFlow."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.conftest import REPO
from tests.trainer.cases import Case, flat_weights, make_model

pytestmark = [
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="starts from TensorFlow's process"
    ),
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]
NAMES = ["pretrainer", "pretrainer: clip, ema, lamb", "classifier"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("jax")


@pytest.fixture(scope="module")
def results(folder):
    found = {}
    for kind in ("none", "data", "model"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.trainer.jax_cases", kind, str(folder)],
            capture_output=True,
            text=True,
            cwd=REPO,
            env={
                **os.environ,
                "PYTHONPATH": str(REPO),
                "KERAS_BACKEND": "jax",
                "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            },
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found[kind] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", ["data", "model"])
@pytest.mark.parametrize("name", NAMES)
def test_weights_are_those_of_one_device(results, kind, name):
    ours, expected = results[kind][name], results["none"][name]
    assert ours["iterations"] == 8
    assert np.abs(np.subtract(ours["weights"], ours["before"])).max() > 3e-3
    np.testing.assert_allclose(ours["weights"], expected["weights"], rtol=0, atol=3e-6)


def test_the_layout_cuts_the_large_weights(results):
    assert results["data"]["pretrainer"]["cut"] == 0
    # Three embeddings, seven weights of attention and three of the feed-forward part.
    assert results["model"]["pretrainer"]["cut"] == 13


def test_weights_and_optimizer_load_in_tensorflow(results, folder):
    model = make_model(Case())
    model.load_weights(folder / "model.weights.h5")
    np.testing.assert_array_equal(flat_weights(model), results["model"]["pretrainer"]["weights"])
    assert int(keras.ops.convert_to_numpy(model.optimizer.iterations)) == 8
    assert all(np.abs(v.numpy()).max() > 0 for v in model.optimizer._momentums)
