"""Exports that are wrong in one way each, as they were seen in the wild."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from keras_bert_impl.serving import contents
from keras_bert_impl.serving.verify import EXPECTED_FILE, VerifyReport, main, verify
from keras_bert_impl.serving.warmup import WARMUP_FILE, Request, write_requests

SPEC = tf.TensorSpec([None, 2], tf.int32, name="token_ids")
ROWS = [[1, 2], [3, 4], [0, 9]]


class Classifier(tf.Module):
    """Weights as plain variables, or in a Keras layer, which only Python's loader finds again."""

    def __init__(self, in_keras: bool = False, **options):
        super().__init__()
        if in_keras:
            self.dense = keras.layers.Dense(2, use_bias=False, kernel_initializer="identity")
            self.dense.build((None, 2))
        else:
            self.kernel = tf.Variable(tf.eye(2))
        self.serve = tf.function(self._serve, input_signature=[SPEC], **options)

    def _serve(self, token_ids):
        x = tf.cast(token_ids, tf.float32)
        logits = self.dense(x) if hasattr(self, "dense") else x @ self.kernel
        probabilities = tf.nn.softmax(logits)
        label_id = tf.argmax(probabilities, -1, output_type=tf.int32)
        return {
            "label": tf.gather(tf.constant(["no", "yes"]), label_id),
            "label_id": label_id,
            "probabilities": probabilities,
            "score": tf.reduce_max(probabilities, -1),
        }


def save(module, folder, *, weights=1, **changes):
    """A version folder with everything that `verify` reads."""
    tf.saved_model.save(module, str(folder), signatures={"ids": module.serve})
    outputs = {key: value.numpy() for key, value in Classifier().serve(tf.constant(ROWS)).items()}
    outputs["label"] = outputs["label"].astype(str)
    expected = {
        "format_version": 2,
        "decisions": ["label_id"],
        "measure": "probabilities",
        "tolerance": 1e-5,
        "weights": {"count": weights, "bytes": weights * 16},
        "signatures": {
            "ids": {
                "inputs": {"token_ids": ROWS},
                "outputs": {key: value.tolist() for key, value in outputs.items()},
            }
        },
    }
    (folder / EXPECTED_FILE).parent.mkdir()
    (folder / EXPECTED_FILE).write_text(json.dumps({**expected, **changes}), "utf-8")
    request = Request("ids", {"token_ids": np.array(ROWS, np.int32)})
    write_requests(folder / WARMUP_FILE, [request], model_name="m")
    return folder


@pytest.fixture
def good(tmp_path):
    return save(Classifier(), tmp_path / "1")


def problem(folder) -> str:
    report = verify(folder)
    assert not report.ok
    return "\n".join(report.problems)


def test_a_good_export(good, capsys):
    report = verify(good)
    assert report.problems == []
    assert report.ok
    assert (report.weights, report.weight_bytes, report.warmup_requests) == (1, 16, 1)
    assert report.signatures == {
        "ids": ["token_ids", "label", "label_id", "probabilities", "score"]
    }
    assert VerifyReport.from_json(report.to_json()) == report
    assert main([str(good)]) == 0
    assert "verified" in capsys.readouterr().out


def test_weights_that_only_python_finds(tmp_path):
    folder = save(Classifier(in_keras=True), tmp_path / "1")
    assert tf.saved_model.load(str(folder)).signatures["ids"](tf.constant(ROWS))
    assert "the server's loader" in problem(folder)
    assert "Could not find variable" in problem(folder)


def test_weights_stored_twice(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.export(tmp_path / "1", verbose=False)
    checkpoint = contents.check_checkpoint(tmp_path / "1/variables", {"count": 2, "bytes": 24})
    assert checkpoint.problems == [
        "expected the 2 weights of the model once (24 bytes), found 4 (48 bytes)"
    ]


def test_weights_that_are_gone(good):
    for file in (good / "variables").iterdir():
        file.unlink()
    assert "the weights cannot be read" in problem(good)


def test_other_probabilities_than_pythons(tmp_path, capsys):
    module = Classifier()
    module.kernel.assign([[1.0, 0.01], [0.0, 1.0]])
    folder = save(module, tmp_path / "1")
    assert "probabilities differ from Python's by" in problem(folder)
    assert "score differ from Python's by" in problem(folder)
    assert main([str(folder)]) == 1
    assert "NOT fit to be served" in capsys.readouterr().out


def test_other_labels(tmp_path):
    class Swapped(Classifier):
        def _serve(self, token_ids):
            outputs = super()._serve(token_ids)
            names = tf.gather(tf.constant(["yes", "no"]), outputs["label_id"])
            return {**outputs, "label": names}

    found = problem(save(Swapped(), tmp_path / "1"))
    assert "label differ from Python's in row 0: expected [b'yes'], got [b'no']" in found


def test_an_operation_that_servers_lack(tmp_path):
    class Lower(Classifier):
        def _serve(self, token_ids):
            text = tf_text.normalize_utf8(tf.strings.as_string(token_ids))
            return super()._serve(tf.strings.to_number(text, tf.int32))

    assert "may lack: NormalizeUTF8" in problem(save(Lower(), tmp_path / "1"))


def test_xla(tmp_path):
    folder = save(Classifier(jit_compile=True), tmp_path / "1")
    assert "jit_compile=True" in problem(folder)


def test_an_absolute_path_in_the_graph(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_text("2", "utf-8")

    class Reader(Classifier):
        def _serve(self, token_ids):
            size = tf.strings.to_number(tf.io.read_file(str(file)), tf.int32)
            return super()._serve(token_ids + size - size)

    found = problem(save(Reader(), tmp_path / "1"))
    assert f"absolute paths inside saved_model.pb: {file}" in found


def test_warm_up_that_is_absent_or_fails(good):
    write_requests(good / WARMUP_FILE, [], model_name="m")
    assert "has no request for ids" in problem(good)
    request = Request("ids", {"token_ids": np.array([b"a"], object)})
    write_requests(good / WARMUP_FILE, [request], model_name="m")
    assert "does not replay" in problem(good)
    (good / WARMUP_FILE).unlink()
    assert "does not replay" in problem(good)


def test_a_signature_that_is_missing(tmp_path):
    signatures = {"text": {"inputs": {"text": ["a"]}, "outputs": {"score": [0.5]}}}
    found = problem(save(Classifier(), tmp_path / "1", signatures=signatures))
    assert "the server's loader: signature text fails: ValueError: there is no such" in found


def test_a_signature_of_other_inputs(tmp_path):
    signatures = {"ids": {"inputs": {"ids": ROWS}, "outputs": {"score": [0.5] * 3}}}
    found = problem(save(Classifier(), tmp_path / "1", signatures=signatures))
    assert "signature ids fails: ValueError: it takes token_ids, got ids" in found


def test_files_that_cannot_be_read(good, tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match=r"nowhere.saved_model.pb: no such file"):
        verify(tmp_path / "nowhere")
    assert main([str(tmp_path / "nowhere")]) == 1
    assert "no such file" in capsys.readouterr().err
    (good / "saved_model.pb").write_bytes(b"\xff\xff half")
    with pytest.raises(ValueError, match="not a SavedModel"):
        verify(good)
    (good / EXPECTED_FILE).write_text('{"format_version": 1}', "utf-8")
    with pytest.raises(ValueError, match=r"format_version 1 is not known, expected 2.*export aga"):
        verify(good)
    (good / EXPECTED_FILE).write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"expected.json: not JSON"):
        verify(good)
