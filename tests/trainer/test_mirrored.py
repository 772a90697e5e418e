"""Equal weights after 8 steps on one device and on several; in processes with as many devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.conftest import REPO

if keras.backend.backend() != "tensorflow":
    pytest.skip("tf.distribute is TensorFlow's", allow_module_level=True)

from tests.trainer.mirrored_cases import ALIKE, RUNS


@pytest.fixture(scope="module")
def results():
    found = {}
    for replicas in RUNS:
        done = subprocess.run(
            [sys.executable, "-m", "tests.trainer.mirrored_cases", str(replicas)],
            capture_output=True,
            text=True,
            cwd=REPO,
            env={**os.environ, "PYTHONPATH": str(REPO)},
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found[replicas] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("replicas", "name"), [(count, name) for count in (2, 4) for name in RUNS[count]]
)
def test_weights_and_log_are_those_of_one_device(results, replicas, name):
    ours, expected = results[replicas][name], results[1][ALIKE.get(name, name)]
    assert ours["iterations"] == 8
    assert np.abs(np.subtract(ours["weights"], ours["before"])).max() > 4e-3
    difference = np.abs(np.subtract(ours["weights"], expected["weights"]))
    if "bfloat16" in name:
        # No farther from the run on one device than that is from float32.
        exact = results[1][name.replace("bfloat16", "adamw")]["weights"]
        assert difference.mean() < np.abs(np.subtract(expected["weights"], exact)).mean()
    else:
        assert difference.max() <= 3e-6
    assert ours["log"].keys() == expected["log"].keys()
    for key, value in expected["log"].items():
        atol = 1e-2 if "bfloat16" in name else 1e-5
        np.testing.assert_allclose(ours["log"][key], value, rtol=0, atol=atol, err_msg=key)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pretrainer: adamw", "pretrainer: lamb"),
        ("pretrainer: adamw", "pretrainer: bfloat16"),
        ("pretrainer: adamw", "pretrainer: clip, ema"),
    ],
)
def test_what_the_cases_differ_in_shows(results, one, other):
    one, other = results[1][one], results[1][other]
    assert np.abs(np.subtract(one["weights"], other["weights"])).max() > 2e-5
