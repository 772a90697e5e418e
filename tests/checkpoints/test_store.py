"""The run folder: what is saved is loaded; folders that are damaged, newer, or finished."""

from __future__ import annotations

import json

import h5py
import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints import store
from keras_bert_impl.models import BertClassifier, BertEncoder
from tests.checks import BATCH, CONFIG

LABELS = ("neg", "very pos", "Ünïcode")


@pytest.fixture
def classifier():
    return BertClassifier(CONFIG, 3, dropout=0.4, labels=LABELS)


@pytest.fixture
def run(classifier, tmp_path):
    classifier.save_pretrained(tmp_path / "run")
    return tmp_path / "run"


def same_weights(first, second) -> None:
    for a, b in zip(first.get_weights(), second.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def rewrite(run, **changes) -> None:
    file = run / "keras_bert.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_what_is_saved_is_loaded(classifier, run):
    assert {path.name for path in run.iterdir()} == {
        "keras_bert.json",
        "labels.txt",
        "model.weights.h5",
    }
    loaded = BertClassifier.from_pretrained(run)
    assert (loaded.config, loaded.num_classes, loaded.labels) == (CONFIG, 3, LABELS)
    same_weights(classifier, loaded)
    np.testing.assert_array_equal(np.array(classifier(BATCH)), np.array(loaded(BATCH)))


def test_arguments_win_over_the_folder(classifier, run):
    loaded = BertClassifier.from_pretrained(run, dropout=0.0, dtype="mixed_bfloat16")
    assert (loaded.dropout_rate, loaded.labels) == (0.0, classifier.labels)
    assert loaded.compute_dtype == "bfloat16"
    same_weights(classifier, loaded)


def test_labels_are_not_needed(tmp_path):
    model = BertClassifier(CONFIG, 4)
    model.save_pretrained(tmp_path / "run")
    loaded = BertClassifier.from_pretrained(tmp_path / "run")
    assert (loaded.num_classes, loaded.labels) == (4, None)


def test_another_number_of_classes_gets_a_new_head(classifier, run, caplog):
    loaded = BertClassifier.from_pretrained(run, num_classes=2)
    assert "newly initialised: the head of BertClassifier" in caplog.text
    assert (loaded.num_classes, loaded.labels) == (2, None)
    same_weights(classifier.encoder, loaded.encoder)


def test_the_encoder_of_a_classifier_and_back(classifier, run, tmp_path, caplog):
    encoder = BertEncoder.from_pretrained(run)
    same_weights(classifier.encoder, encoder)
    assert "newly initialised" not in caplog.text
    encoder.save_pretrained(tmp_path / "encoder")
    same_weights(encoder, BertEncoder.from_pretrained(tmp_path / "encoder"))
    model = BertClassifier.from_pretrained(tmp_path / "encoder", num_classes=2)
    same_weights(encoder, model.encoder)
    assert "newly initialised: the head" in caplog.text


def test_the_state_of_the_optimizer_is_left_out(tmp_path):
    model = BertClassifier(CONFIG, 2)
    model.compile("adam", run_eagerly=True)
    model.fit(BATCH, np.array([0, 1, 1]), verbose=0)
    optimizer = model.optimizer
    model.save_pretrained(tmp_path / "run")
    assert model.optimizer is optimizer
    with h5py.File(tmp_path / "run/model.weights.h5") as file:
        assert "optimizer" not in file
    model.fit(BATCH, np.array([0, 1, 1]), verbose=0)
    assert int(optimizer.iterations) == 2


def test_a_finished_run_is_not_overwritten(classifier, run):
    before = (run / "model.weights.h5").read_bytes()
    with pytest.raises(FileExistsError, match="holds a finished run"):
        BertClassifier(CONFIG, 3).save_pretrained(run)
    assert (run / "model.weights.h5").read_bytes() == before


@pytest.mark.parametrize("label", ["two\nlines", "a\rb"])
def test_labels_with_line_breaks_are_refused(label, tmp_path):
    model = BertClassifier(CONFIG, 2, labels=["a", label])
    with pytest.raises(ValueError, match="labels must not hold line breaks"):
        model.save_pretrained(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_failed_save_leaves_no_run(classifier, tmp_path, monkeypatch):
    def fail(file):
        file.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(classifier, "save_weights", fail)
    with pytest.raises(OSError, match="No space left"):
        classifier.save_pretrained(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} <= {"labels.txt"}
    monkeypatch.undo()
    classifier.save_pretrained(tmp_path / "run")
    same_weights(classifier, BertClassifier.from_pretrained(tmp_path / "run"))


def test_keras_bert_json_is_written_last(classifier, tmp_path, monkeypatch):
    seen = []

    def look(path, data):
        seen.append((path.name, sorted(p.name for p in path.parent.iterdir())))
        path.write_text(data)

    monkeypatch.setattr(store, "atomic_write", look)
    classifier.save_pretrained(tmp_path / "run")
    assert seen[-1] == ("keras_bert.json", ["labels.txt", "model.weights.h5"])


def test_the_versions_are_recorded(run):
    content = json.loads((run / "keras_bert.json").read_text())
    assert (content["format_version"], content["model"]) == (1, "BertClassifier")
    assert content["versions"]["keras"] == keras.__version__


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 2}, r"format_version 2 is not known .*upgrade keras-bert-impl"),
        ({"model": "BertJuggler"}, "unknown model 'BertJuggler'"),
        ({"settings": {}}, r"not a run of this package: no 'config' in it"),
    ],
)
def test_folders_that_are_not_known(run, changes, message):
    rewrite(run, **changes)
    with pytest.raises(ValueError, match=rf"keras_bert\.json: {message}"):
        BertEncoder.from_pretrained(run)


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_keras_bert_json(run, content):
    (run / "keras_bert.json").write_text(content)
    with pytest.raises(ValueError, match=r"keras_bert\.json: not a run of this package"):
        BertClassifier.from_pretrained(run)


def test_damaged_or_missing_weights(run):
    file = run / "model.weights.h5"
    for content in (file.read_bytes()[:1000], b""):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.weights\.h5: cannot be loaded"):
            BertClassifier.from_pretrained(run)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.weights\.h5: no such file"):
        BertClassifier.from_pretrained(run)


def test_weights_of_another_model(run, tmp_path):
    other = BertClassifier(CONFIG.replace(hidden_size=4), 3)
    other.save_pretrained(tmp_path / "other")
    (tmp_path / "other/model.weights.h5").replace(run / "model.weights.h5")
    with pytest.raises(ValueError, match=r"model\.weights\.h5: cannot be loaded"):
        BertClassifier.from_pretrained(run)


def test_labels_that_do_not_match(run):
    file = run / "labels.txt"
    file.write_text("a\nb\nc", encoding="utf-8")
    assert BertClassifier.from_pretrained(run).labels == ("a", "b", "c")
    file.write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"labels\.txt: expected 3 labels, one a line, got 2"):
        BertClassifier.from_pretrained(run)
