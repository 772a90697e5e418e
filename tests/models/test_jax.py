"""Keras' JAX backend in a process where TensorFlow cannot be imported: fit, save, load."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.models import BertClassifier
from tests.checks import BATCH, CONFIG
from tests.conftest import REPO

pytestmark = [
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="starts from TensorFlow's process"
    ),
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]

CODE = """
import json, sys
sys.modules["tensorflow"] = None
request = json.load(sys.stdin)

import numpy as np
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.training import AdamW, WarmupLinearDecay

model = BertClassifier(BertConfig(**request["config"]), 2, labels=["a", "b"])
model.compile(AdamW(WarmupLinearDecay(1e-2, 10)), weighted_metrics=[])
batch = {name: np.array(value, "int32") for name, value in request["batch"].items()}
labels, weights = np.array([0, 1, 1]), np.array([1.0, 0.5, 0.0])
history = model.fit(batch, labels, sample_weight=weights, batch_size=3, epochs=2, verbose=0)
model.save_pretrained(request["folder"])
loaded = BertClassifier.from_pretrained(request["folder"])
logits = loaded.predict(batch, verbose=0)
assert np.array_equal(logits, model.predict(batch, verbose=0))
print(json.dumps({"logits": logits.tolist(), "loss": history.history["loss"]}))
"""


def test_fit_save_and_load_without_tensorflow(tmp_path):
    request = {
        "config": CONFIG.to_dict(),
        "batch": {name: value.tolist() for name, value in BATCH.items()},
        "folder": str(tmp_path / "run"),
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(REPO)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert np.isfinite(answer["loss"]).all()
    model = BertClassifier.from_pretrained(tmp_path / "run")
    assert model.labels == ("a", "b")
    logits = ops.convert_to_numpy(model(BATCH))
    np.testing.assert_allclose(logits, answer["logits"], atol=1e-6)
