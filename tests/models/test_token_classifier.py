"""BertTokenClassifier: outputs of transformers, weights of the loss, training, files."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.models import BertTokenClassifier
from keras_bert_impl.training import AdamW, load_model
from tests.checks import BATCH, CONFIG

TAGS = np.array([[0, 1, 2, 0, 0], [0, 2, 2, 1, 0], [0, 0, 0, 0, 0]], "int32")
WEIGHTS = np.array([[0, 1, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]], "float32")


def logits_of(model, batch=BATCH):
    return ops.convert_to_numpy(model(batch))


def test_golden_logits_of_transformers(shared):
    folder = shared / "data/weights/tiny_random_hf/token_classification"
    golden = json.loads((folder / "golden_outputs.json").read_text())
    model = BertTokenClassifier.from_pretrained(folder)
    assert model.labels == tuple(f"LABEL_{number}" for number in range(5))
    logits = logits_of(
        model,
        {
            "token_ids": np.array(golden["input_ids"]),
            "segment_ids": np.array(golden["token_type_ids"]),
            "padding_mask": np.array(golden["attention_mask"]),
        },
    )
    real = np.array(golden["attention_mask"]) == 1
    np.testing.assert_allclose(logits[real], np.array(golden["logits"])[real], atol=1e-4)


def test_loss_and_accuracy_of_the_weighted_tokens():
    model = BertTokenClassifier(CONFIG, 3)
    model.compile("sgd")
    logits = logits_of(model).astype("float64")
    chosen, tags = logits[WEIGHTS == 1], TAGS[WEIGHTS == 1]
    losses = np.log(np.exp(chosen).sum(axis=-1)) - chosen[np.arange(4), tags]
    scores = model.evaluate(BATCH, TAGS, sample_weight=WEIGHTS, verbose=0, return_dict=True)
    assert scores["loss"] == pytest.approx(losses.mean(), abs=1e-5)
    assert scores["accuracy"] == pytest.approx((chosen.argmax(axis=-1) == tags).mean())
    assert set(scores) == {"loss", "accuracy"}


@pytest.mark.parametrize("how", ["weights", "ignored class"])
def test_tags_that_do_not_count_may_be_any(how):
    model = BertTokenClassifier(CONFIG, 3)
    if how == "weights":
        model.compile("sgd")
        options = {"sample_weight": WEIGHTS}
    else:
        crossentropy = keras.losses.SparseCategoricalCrossentropy
        model.compile("sgd", loss=crossentropy(from_logits=True, ignore_class=-100))
        options = {}
    tags = np.where(WEIGHTS == 1, TAGS, -100)
    expected = model.evaluate(BATCH, TAGS, sample_weight=WEIGHTS, verbose=0, return_dict=True)
    found = model.evaluate(BATCH, tags, verbose=0, return_dict=True, **options)
    assert found["loss"] == pytest.approx(expected["loss"], abs=1e-6)


def test_one_weight_a_row():
    rows = np.array([1.0, 0.0, 3.0], "float32")
    scores = []
    for weights in (rows, rows[:, None] * np.ones_like(WEIGHTS)):
        keras.utils.set_random_seed(0)
        model = BertTokenClassifier(CONFIG, 3)
        model.compile("sgd")
        options = {"sample_weight": weights, "verbose": 0, "return_dict": True}
        scores.append(model.evaluate(BATCH, TAGS, **options))
    assert scores[0] == pytest.approx(scores[1])


def test_weights_of_classes_are_refused():
    model = BertTokenClassifier(CONFIG, 3)
    model.compile("sgd")
    with pytest.raises(ValueError, match=r"give their weights as sample_weight \[batch, sequence"):
        model.fit(BATCH, TAGS, class_weight={0: 1.0, 1: 2.0, 2: 1.0})


def test_a_batch_without_labels_changes_nothing():
    model = BertTokenClassifier(CONFIG, 3)
    model.compile("sgd")
    before = model.get_weights()
    history = model.fit(BATCH, TAGS, sample_weight=0 * WEIGHTS, verbose=0)
    assert history.history["loss"] == [0.0]
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_learns_a_rule():
    random = np.random.default_rng(0)
    token_ids = random.integers(3, 30, (64, 6)).astype("int32")
    tags = token_ids % 3
    weights = np.ones(tags.shape, "float32")
    keras.utils.set_random_seed(0)
    model = BertTokenClassifier(CONFIG, 3)
    model.compile(AdamW(1e-2))
    model.fit({"token_ids": token_ids}, tags, sample_weight=weights, epochs=15, verbose=0)
    scores = model.evaluate({"token_ids": token_ids}, tags, sample_weight=weights, verbose=0)
    assert scores[1] > 0.95


def test_padding_and_neighbours_change_nothing():
    model = BertTokenClassifier(CONFIG, 3)
    whole = logits_of(model)
    wider = {name: np.pad(values, ((0, 0), (0, 9))) for name, values in BATCH.items()}
    real = BATCH["padding_mask"] == 1
    np.testing.assert_allclose(logits_of(model, wider)[:, :5][real], whole[real], atol=1e-5)
    for row in range(2):
        one = {name: values[row : row + 1] for name, values in BATCH.items()}
        found = logits_of(model, one)[0]
        np.testing.assert_allclose(found[real[row]], whole[row][real[row]], atol=1e-5)


def test_run_folder_and_keras_file(tmp_path):
    model = BertTokenClassifier(CONFIG, 3, labels=["O", "B-PER", "I-PER"])
    model.compile("sgd")
    model.fit(BATCH, TAGS, sample_weight=WEIGHTS, verbose=0)
    model.save_pretrained(tmp_path / "run")
    model.save(tmp_path / "model.keras")
    expected = logits_of(model)
    from_folder = BertTokenClassifier.from_pretrained(tmp_path / "run")
    for loaded in (from_folder, load_model(tmp_path / "model.keras")):
        assert loaded.labels == ("O", "B-PER", "I-PER")
        assert not loaded.encoder.pooler.trainable
        np.testing.assert_allclose(logits_of(loaded), expected, atol=1e-6)


def test_logits_are_float32_under_mixed_precision():
    logits = BertTokenClassifier(CONFIG, 4, dtype="mixed_bfloat16")(BATCH)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert tuple(logits.shape) == (3, 5, 4)


def test_bad_arguments():
    with pytest.raises(ValueError, match="num_classes must be at least 2, got 1"):
        BertTokenClassifier(CONFIG, 1)
    with pytest.raises(ValueError, match=r"returns logits: use \w+\(from_logits=True\)"):
        BertTokenClassifier(CONFIG, 2).compile(loss=keras.losses.SparseCategoricalCrossentropy())


def test_a_folder_without_a_head_of_this_kind(tmp_path):
    from keras_bert_impl.models import BertEncoder

    BertEncoder(CONFIG).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds no BertTokenClassifier: give num_classes"):
        BertTokenClassifier.from_pretrained(tmp_path)
    assert BertTokenClassifier.from_pretrained(tmp_path, 4).num_classes == 4
