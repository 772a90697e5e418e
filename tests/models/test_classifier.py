"""BertClassifier: outputs of transformers, training, losses on logits, files, messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.losses import WeightedMean
from keras_bert_impl.models import BertClassifier, BertEncoder
from keras_bert_impl.training import AdamW, load_model
from tests.checks import BATCH, CONFIG
from tests.conftest import REPO

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
ONLY_TENSORFLOW = pytest.mark.skipif(
    not ON_TENSORFLOW, reason="JAX cannot check values inside a compiled step"
)
LABELS = np.array([0, 1, 1], "int32")


def compiled(**kwargs) -> BertClassifier:
    model = BertClassifier(CONFIG, 2, **kwargs)
    model.compile(AdamW(1e-3))
    return model


def test_golden_logits_of_transformers(shared):
    folder = shared / "data/weights/tiny_random_hf/sequence_classification"
    golden = json.loads((folder / "golden_outputs.json").read_text())
    model = BertClassifier.from_pretrained(folder)
    assert model.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    logits = model.predict(
        {
            "token_ids": np.array(golden["input_ids"]),
            "segment_ids": np.array(golden["token_type_ids"]),
            "padding_mask": np.array(golden["attention_mask"]),
        },
        verbose=0,
    )
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-4)


def test_logits_are_float32_under_mixed_precision():
    logits = BertClassifier(CONFIG, 4, dtype="mixed_bfloat16")(BATCH)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert tuple(logits.shape) == (3, 4)


def test_learns_a_rule():
    random = np.random.default_rng(0)
    token_ids = random.integers(3, 30, (64, 6)).astype("int32")
    labels = random.integers(0, 2, 64).astype("int32")
    token_ids[:, 1] = np.where(labels == 1, 5, 9)
    keras.utils.set_random_seed(0)
    model = BertClassifier(CONFIG, 2)
    model.compile(AdamW(1e-2))
    model.fit({"token_ids": token_ids}, labels, epochs=20, verbose=0)
    loss, accuracy = model.evaluate({"token_ids": token_ids}, labels, verbose=0)
    assert accuracy == 1.0
    assert loss < 0.2


@pytest.mark.parametrize(
    "loss",
    [
        "auto",
        "sparse_categorical_crossentropy",
        "SparseCategoricalCrossentropy",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ],
    ids=["auto", "name", "class name", "object"],
)
def test_the_loss_takes_logits(loss):
    model = BertClassifier(CONFIG, 2)
    model.compile("sgd", loss=loss)
    logits = ops.convert_to_numpy(model(BATCH)).astype("float64")
    log_sums = np.log(np.exp(logits).sum(axis=-1))
    expected = (log_sums - logits[np.arange(3), LABELS]).mean()
    result = model.evaluate(BATCH, LABELS, verbose=0, return_dict=True)
    assert result["loss"] == pytest.approx(expected, abs=1e-5)
    assert set(result) == {"loss", "accuracy"}


def test_one_hot_labels():
    model = BertClassifier(CONFIG, 2)
    model.compile("sgd", loss="categorical_crossentropy")
    one_hot = np.eye(2, dtype="float32")[LABELS]
    result = model.evaluate(BATCH, one_hot, verbose=0)
    model.compile("sgd")
    np.testing.assert_allclose(result, model.evaluate(BATCH, LABELS, verbose=0), atol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.sparse_categorical_crossentropy,
        WeightedMean(keras.losses.CategoricalCrossentropy()),
    ],
    ids=["object", "function", "wrapped"],
)
def test_losses_on_probabilities_are_refused(loss):
    with pytest.raises(ValueError, match=r"returns logits: use \w+\(from_logits=True\)"):
        BertClassifier(CONFIG, 2).compile("sgd", loss=loss)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
        ({"num_classes": 2, "labels": ["a", "b", "c"]}, "expected 2 different labels, got"),
        ({"num_classes": 2, "labels": ["a", "b", "a"]}, "expected 2 different labels, got"),
        ({"num_classes": 2, "labels": ["a", "a"]}, "expected 2 different labels, got"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BertClassifier(CONFIG, **arguments)


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_bad_inputs_end_in_a_short_message(method):
    arguments = () if method == "predict" else (LABELS,)
    model = compiled()
    with pytest.raises(ValueError, match="expected the inputs") as caught:
        getattr(model, method)({"input_ids": BATCH["token_ids"]}, *arguments, verbose=0)
    assert not ON_TENSORFLOW or len(str(caught.value)) < 200
    long = {"token_ids": np.zeros((3, 17), "int32")}
    model = compiled()  # on JAX, Keras leaves a model without weights after an error
    with pytest.raises(ValueError, match="max_position_embeddings") as caught:
        getattr(model, method)(long, *arguments, verbose=0)
    assert "17" in str(caught.value)
    assert not ON_TENSORFLOW or len(str(caught.value)) < 200
    assert np.isfinite(ops.convert_to_numpy(model(BATCH))).all()


@ONLY_TENSORFLOW
@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_token_ids_out_of_range(method):
    arguments = () if method == "predict" else (LABELS,)
    with pytest.raises(ValueError, match=r"token_ids .*in \[0, 30\), got values from 0 to 30$"):
        getattr(compiled(), method)({"token_ids": BATCH["token_ids"] + 21}, *arguments, verbose=0)


@ONLY_TENSORFLOW
@pytest.mark.parametrize("method", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
def test_targets_out_of_range(method):
    with pytest.raises(ValueError, match=r"^targets must be in \[0, 2\), got (2|-1) \(those that"):
        getattr(compiled(), method)(BATCH, LABELS + 1 if method == "fit" else LABELS * 3 - 1)


@ONLY_TENSORFLOW
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_a_long_batch_of_a_dataset(method):
    import tensorflow as tf

    rows = [({"token_ids": np.zeros((3, length), "int32")}, LABELS) for length in (16, 17)]
    signature = (
        {"token_ids": tf.TensorSpec((None, None), tf.int32)},
        tf.TensorSpec((None,), tf.int32),
    )
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=signature)
    with pytest.raises(ValueError, match="max_position_embeddings"):
        getattr(compiled(), method)(dataset, verbose=0)


def test_none_stands_for_an_input_that_is_left_out():
    model = compiled()
    ids = BATCH["token_ids"]
    full = {"token_ids": ids, "segment_ids": None, "padding_mask": None}
    np.testing.assert_allclose(
        model.predict(full, verbose=0), model.predict({"token_ids": ids}, verbose=0), atol=1e-6
    )


def test_keras_file_with_state_of_training_in_a_fresh_process(tmp_path):
    model = compiled(labels=["bad", "good"])
    model.fit(BATCH, LABELS, verbose=0)
    path = tmp_path / "model.keras"
    model.save(path)
    code = f"""
import json, sys, keras_bert_impl, numpy as np
model = keras_bert_impl.load_model({str(path)!r})
batch = {{name: np.array(value, "int32") for name, value in json.load(sys.stdin).items()}}
logits = np.array(model(batch)).tolist()
kind, iterations = type(model.optimizer).__name__, int(model.optimizer.iterations)
print(json.dumps([logits, model.labels, kind, iterations]))
"""
    batch = json.dumps({name: value.tolist() for name, value in BATCH.items()})
    result = subprocess.run(
        [sys.executable, "-c", code],
        input=batch,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    logits, labels, optimizer, iterations = json.loads(result.stdout.splitlines()[-1])
    np.testing.assert_allclose(logits, ops.convert_to_numpy(model(BATCH)), atol=1e-6)
    assert (labels, optimizer, iterations) == (["bad", "good"], "AdamW", 1)


def test_training_goes_on_from_a_keras_file(tmp_path):
    keras.utils.set_random_seed(0)
    config = CONFIG.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertClassifier(config, 2)
    model.compile(AdamW(1e-2), run_eagerly=True)
    model.fit(BATCH, LABELS, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    for one in (model, loaded):
        one.fit(BATCH, LABELS, epochs=2, verbose=0)
    for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_head_for_the_same_labels_is_kept_and_for_others_new(tmp_path, caplog):
    saved = BertClassifier(CONFIG, 3, labels=["a", "b", "c"])
    saved.save_pretrained(tmp_path / "run")
    logits = ops.convert_to_numpy(saved(BATCH))
    sorted_otherwise = BertClassifier.from_pretrained(tmp_path / "run", 3, labels=["c", "a", "b"])
    found = ops.convert_to_numpy(sorted_otherwise(BATCH))
    np.testing.assert_allclose(found, logits[:, [2, 0, 1]], atol=1e-6)
    assert caplog.text == ""
    other = BertClassifier.from_pretrained(tmp_path / "run", 3, labels=["a", "b", "d"])
    assert "newly initialised: the head of BertClassifier" in caplog.text
    assert "has one for other labels (a, b, c, not a, b, d)" in caplog.text
    assert np.abs(other.head.get_weights()[0] - saved.head.get_weights()[0]).max() > 1e-3
    assert np.abs(found - ops.convert_to_numpy(other(BATCH))).max() > 1e-4


@keras.saving.register_keras_serializable("tests")
class OnTheEncoder(keras.Model):
    """As a user stacks an ordinary layer on the encoder."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.encoder = BertEncoder(config)
        self.out = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.out(self.encoder(inputs, training=training)["pooled_output"])

    def get_config(self):
        return {**super().get_config(), "config": self.encoder.config.to_dict()}


def test_a_model_of_a_user_comes_back_with_its_head_and_optimizer(tmp_path):
    model = OnTheEncoder(CONFIG)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(BATCH, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(BATCH), model.predict(BATCH))
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables)
    assert int(loaded.optimizer.iterations) == 1


def test_frozen_parts_stay_frozen_in_a_keras_file(tmp_path):
    model = BertClassifier(CONFIG, 2)
    model.encoder.embeddings.trainable = False
    model.encoder.blocks[0].attention.trainable = False
    model.compile(AdamW(1e-2))
    model.fit(BATCH, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    paths = [v.path for v in model.trainable_variables]
    assert [v.path for v in loaded.trainable_variables] == paths
    assert 0 < len(paths) < len(model.weights) - 5
    assert int(loaded.optimizer.iterations) == 1
    before = [ops.convert_to_numpy(v) for v in loaded.encoder.embeddings.weights]
    loaded.fit(BATCH, LABELS, verbose=0)
    for one, other in zip(before, loaded.encoder.embeddings.weights, strict=True):
        np.testing.assert_array_equal(one, ops.convert_to_numpy(other))


@ONLY_TENSORFLOW
@pytest.mark.parametrize("is_called", [True, False])
@pytest.mark.parametrize("make", [lambda: BertClassifier(CONFIG, 2), lambda: BertEncoder(CONFIG)])
def test_export_of_keras(make, is_called, tmp_path):
    import tensorflow as tf

    model = make()
    if is_called:
        model.predict(BATCH, verbose=0)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "exported")
    found = loaded.serve({name: tf.constant(value) for name, value in BATCH.items()})
    expected = model(BATCH)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
