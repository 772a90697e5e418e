"""The same weights and scores on one device and on two; in a process with two CPU devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.conftest import REPO

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tf.distribute is TensorFlow's"
)
# What is compared with which run on one device.
PAIRS = [
    ("Tiny, 1 replicas, 4 steps", "Tiny, 1 replicas, 1 steps"),
    ("Tiny, 2 replicas, 1 steps", "Tiny, 1 replicas, 1 steps"),
    ("Tiny, 2 replicas, 4 steps", "Tiny, 1 replicas, 1 steps"),
    ("Tiny, 2 replicas, 2 micro-batches", "Tiny, 1 replicas, 1 steps"),
    ("bert, 2 replicas, 4 steps", "bert, 1 replicas, 4 steps"),
]


@pytest.fixture(scope="module")
def results():
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.strategy_cases"],
        capture_output=True,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("name", "one"), PAIRS)
def test_training_is_equal(results, name, one):
    ours, expected = results[name], results[one]
    assert ours["iterations"] == expected["iterations"] == 22
    difference = np.array(ours["weights"]) - np.array(expected["weights"])
    assert np.abs(difference).max() <= 3e-6
    for key in ("loss", "accuracy"):
        np.testing.assert_allclose(ours[key], expected[key], atol=1e-5)


@pytest.mark.parametrize(("name", "one"), PAIRS[:4])
def test_scores_and_predictions_are_equal(results, name, one):
    for key in ("scores", "predictions"):
        np.testing.assert_allclose(results[name][key], results[one][key], atol=1e-5)


@pytest.mark.parametrize(
    "name", ["2 replicas", "2 replicas, 4 steps", "2 replicas, 2 micro-batches"]
)
def test_the_log_of_several_losses_is_equal(results, name):
    ours, expected = results["pairs"][name], results["pairs"]["1 replica"]
    names = {"loss", "slots_loss", "row_loss", "slots_accuracy", "row_accuracy"}
    assert set(ours["scores"]) == set(ours["log"]) == names
    for key in names:
        np.testing.assert_allclose(ours["log"][key], expected["log"][key], atol=1e-5)
        np.testing.assert_allclose(ours["scores"][key], expected["scores"][key], atol=1e-5)


def test_each_replica_and_step_draws_its_own_dropout_mask(results):
    masks = [np.array(mask) for mask in results["masks"]]
    assert len(masks) == 4
    for i, first in enumerate(masks):
        assert 10 < (first == 0).sum() < 54
        assert not any(np.array_equal(first, second) for second in masks[i + 1 :])


def test_xla_over_several_replicas_is_refused(results):
    assert "jit_compile=True does not work under a strategy" in results["refusal"]
