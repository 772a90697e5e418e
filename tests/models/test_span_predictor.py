"""BertSpanPredictor: outputs of transformers, the loss, padding, files, the JAX backend."""

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

from keras_bert_impl.models import BertSpanPredictor
from keras_bert_impl.training import AdamW
from tests.checks import BATCH, CONFIG, PADDING_MASK
from tests.conftest import REPO

TARGETS = {"start": np.array([1, 2, 0], "int32"), "end": np.array([2, 4, 0], "int32")}


def arrays(outputs) -> dict[str, np.ndarray]:
    return {name: ops.convert_to_numpy(x) for name, x in outputs.items()}


def test_golden_logits_of_transformers(shared):
    folder = shared / "data/weights/tiny_random_hf/question_answering"
    golden = json.loads((folder / "golden_outputs.json").read_text())
    mask = np.array(golden["attention_mask"])
    model = BertSpanPredictor.from_pretrained(folder)
    outputs = model.predict(
        {
            "token_ids": np.array(golden["input_ids"]),
            "segment_ids": np.array(golden["token_type_ids"]),
            "padding_mask": mask,
        },
        verbose=0,
    )
    for name in ("start", "end"):
        difference = outputs[name] - np.array(golden[f"{name}_logits"])
        assert np.abs(difference[mask == 1]).max() < 1e-4
        assert (outputs[name][mask == 0] == -1e9).all()


def test_logits_are_float32_under_mixed_precision():
    for logits in BertSpanPredictor(CONFIG, dtype="mixed_float16")(BATCH).values():
        assert keras.backend.standardize_dtype(logits.dtype) == "float32"
        assert tuple(logits.shape) == (3, 5)


def test_the_loss_is_the_mean_over_both_ends_and_real_positions():
    model = BertSpanPredictor(CONFIG)
    model.compile("sgd")
    outputs = arrays(model(BATCH))
    losses = {}
    for name, targets in TARGETS.items():
        rows = []
        # The last row is all padding: there the distribution is even.
        for logits, mask, target in zip(outputs[name], PADDING_MASK, targets, strict=True):
            real = logits[mask == 1].astype("float64") if mask.any() else np.zeros(5)
            rows.append(np.log(np.exp(real).sum()) - real[target])
        losses[name] = np.mean(rows)
    result = model.evaluate(BATCH, TARGETS, verbose=0, return_dict=True)
    assert result["start_loss"] == pytest.approx(losses["start"], abs=1e-5)
    assert result["end_loss"] == pytest.approx(losses["end"], abs=1e-5)
    assert result["loss"] == pytest.approx((losses["start"] + losses["end"]) / 2, abs=1e-5)
    assert set(result) == {"loss", "start_loss", "end_loss", "start_accuracy", "end_accuracy"}


def test_a_loss_given_by_the_caller_is_not_halved():
    model = BertSpanPredictor(CONFIG)
    crossentropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss={"start": crossentropy, "end": crossentropy}, metrics=None)
    given = model.evaluate(BATCH, TARGETS, verbose=0, return_dict=True)["loss"]
    model.compile("sgd")
    usual = model.evaluate(BATCH, TARGETS, verbose=0, return_dict=True)["loss"]
    assert given == pytest.approx(2 * usual, abs=1e-5)


def test_padding_and_batch_size_change_nothing():
    model = BertSpanPredictor(CONFIG)
    model.compile("sgd")
    two = {name: x[:2] for name, x in BATCH.items()}
    targets = {name: x[:2] for name, x in TARGETS.items()}
    expected = arrays(model(two))
    wide = {name: np.pad(x, ((0, 0), (0, 7))) for name, x in two.items()}
    padded = arrays(model(wide))
    for name in ("start", "end"):
        np.testing.assert_allclose(padded[name][:, :5], expected[name], atol=1e-5)
        alone = arrays(model({key: x[:1, :4] for key, x in two.items()}))[name]
        np.testing.assert_allclose(alone[0], expected[name][0, :4], atol=1e-5)
    losses = [model.evaluate(x, targets, verbose=0, return_dict=True) for x in (two, wide)]
    assert losses[0]["loss"] == pytest.approx(losses[1]["loss"], abs=1e-5)


def test_learns_a_rule():
    random = np.random.default_rng(0)
    token_ids = random.integers(8, 30, (64, 8)).astype("int32")
    rows = np.arange(64)
    start = random.integers(0, 6, 64)
    end = start + random.integers(1, 3, 64)
    token_ids[rows, start], token_ids[rows, end] = 5, 6
    keras.utils.set_random_seed(0)
    model = BertSpanPredictor(CONFIG)
    model.compile(AdamW(1e-2))
    targets = {"start": start, "end": end}
    model.fit({"token_ids": token_ids}, targets, epochs=30, verbose=0)
    result = model.evaluate({"token_ids": token_ids}, targets, verbose=0, return_dict=True)
    assert result["start_accuracy"] == result["end_accuracy"] == 1.0


def test_a_run_folder_gives_the_model_back(tmp_path):
    model = BertSpanPredictor(CONFIG)
    model.save_pretrained(tmp_path / "run")
    again = BertSpanPredictor.from_pretrained(tmp_path / "run")
    for name, expected in arrays(model(BATCH)).items():
        np.testing.assert_array_equal(arrays(again(BATCH))[name], expected)


def test_an_encoder_gets_a_new_head(minilm, caplog):
    model = BertSpanPredictor.from_pretrained(minilm)
    assert "newly initialised" in caplog.text
    assert "head/dense/kernel" in caplog.text
    assert model.head.dense.kernel.shape == (384, 2)


def test_inputs_that_are_none_are_named():
    with pytest.raises(ValueError, match="expected a dict with the keys"):
        BertSpanPredictor(CONFIG)(BATCH["token_ids"])


CODE = """
import json, sys
sys.modules["tensorflow"] = None
request = json.load(sys.stdin)

import numpy as np
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertSpanPredictor
from keras_bert_impl.training import AdamW

model = BertSpanPredictor(BertConfig(**request["config"]))
model.compile(AdamW(1e-2))
batch = {name: np.array(value, "int32") for name, value in request["batch"].items()}
targets = {name: np.array(value, "int32") for name, value in request["targets"].items()}
losses = model.fit(batch, targets, batch_size=3, epochs=3, verbose=0).history["loss"]
model.save_pretrained(request["folder"])
logits = BertSpanPredictor.from_pretrained(request["folder"]).predict(batch, verbose=0)
print(json.dumps({"loss": losses, **{name: x.tolist() for name, x in logits.items()}}))
"""


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="starts from TensorFlow's process"
)
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
def test_fit_save_and_load_without_tensorflow(tmp_path):
    request = {
        "config": CONFIG.to_dict(),
        "batch": {name: value.tolist() for name, value in BATCH.items()},
        "targets": {name: value.tolist() for name, value in TARGETS.items()},
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
    assert answer["loss"][-1] < answer["loss"][0]
    outputs = arrays(BertSpanPredictor.from_pretrained(tmp_path / "run")(BATCH))
    for name in ("start", "end"):
        np.testing.assert_allclose(outputs[name], answer[name], atol=1e-5)
