"""One export of a tiny classifier, asked through both loaders."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.config import BertConfig
from keras_bert_impl.serving import export as export_module
from keras_bert_impl.serving.export import export_classifier
from keras_bert_impl.serving.verify import VerifyReport, verify
from keras_bert_impl.text.vocab import Vocab
from tests.serving.runs import run_fresh
from tests.serving.tiny import CONFIG, LABELS, MAX_LENGTH, classifier, tokenizer

TEXTS = [
    "A good film!",
    "",
    "中文很好看。",
    "Café 👍, the plot is thin.",
    "the plots is bad, " * 20,
    "[SEP] [PAD] bad",
    "\0 nul and \ufffd",
]


@pytest.fixture(scope="module")
def model():
    return classifier()


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    """The result and the version folder, which was moved elsewhere since."""
    folder = tmp_path_factory.mktemp("export")
    result = export_classifier(
        model, tokenizer(), LABELS, folder / "reviews", max_length=MAX_LENGTH
    )
    (folder / "reviews").rename(folder / "moved")
    return result, folder / "moved" / "1"


@pytest.fixture(scope="module")
def signatures(exported):
    loaded = tf.saved_model.load(str(exported[1]))
    yield loaded.signatures
    del loaded


def probabilities(model, texts, pairs=None):
    features = tokenizer()(texts, pairs, max_length=MAX_LENGTH)
    return tf.nn.softmax(model.predict(features, verbose=0)).numpy()


@pytest.fixture(scope="module")
def expected(model):
    return probabilities(model, TEXTS)


def ids_of(texts, pairs=None):
    return tokenizer()(texts, pairs, max_length=MAX_LENGTH, pad_to=MAX_LENGTH)


def test_the_export_passes_its_check(exported):
    result, _ = exported
    assert (result.version, result.model_name) == (1, "reviews")
    assert result.path.name == "1"
    assert result.report.ok
    assert result.report.path == result.path
    assert set(result.report.signatures) == {"serving_default", "ids"}
    assert result.report.custom_ops == ["FastWordpieceTokenizeWithOffsets"]
    assert result.report.warmup_requests == 6
    assert result.report.max_difference < 1e-5


def test_the_version_folder_holds_what_the_server_reads(exported, model):
    version = exported[1]
    assert {path.name for path in version.parent.iterdir()} == {
        "1",
        "README.md",
        "batching.txt",
        "labels.txt",
        "models.config",
        "request.json",
        "vocab.txt",
    }
    extra = {path.name for path in (version / "assets.extra").iterdir()}
    assert extra == {"expected.json", "tf_serving_warmup_requests"}
    size = sum(path.stat().st_size for path in (version / "variables").glob("variables.data-*"))
    assert size < 1.5 * 4 * model.count_params() + 20000


def test_signatures_have_names_and_types(signatures):
    specs = {spec.name: spec for spec in signatures["ids"].structured_input_signature[1].values()}
    assert set(specs) == {"token_ids", "segment_ids", "padding_mask"}
    assert {spec.dtype for spec in specs.values()} == {tf.int32}
    assert {tuple(spec.shape) for spec in specs.values()} == {(None, MAX_LENGTH)}
    for signature in signatures.values():
        outputs = {k: v.dtype for k, v in signature.structured_outputs.items()}
        assert outputs == {
            "label": tf.string,
            "label_id": tf.int32,
            "probabilities": tf.float32,
            "score": tf.float32,
        }


def test_probabilities_are_those_of_predict(signatures, expected):
    assert np.ptp(expected, axis=0).max() > 0.05  # the texts are told apart
    got = signatures["serving_default"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(got["probabilities"], expected, rtol=0, atol=1e-5)
    best = expected.argmax(-1)
    assert got["label_id"].numpy().tolist() == best.tolist()
    assert got["label"].numpy().tolist() == [LABELS[index].encode() for index in best]
    np.testing.assert_allclose(got["score"], expected.max(-1), rtol=0, atol=1e-5)


def test_ids_answer_as_text_does(signatures, expected):
    got = signatures["ids"](**ids_of(TEXTS))
    np.testing.assert_allclose(got["probabilities"], expected, rtol=0, atol=1e-5)


def test_batched_is_one_by_one(signatures):
    batch = signatures["serving_default"](text=tf.constant(TEXTS))["probabilities"].numpy()
    for row, text in enumerate(TEXTS):
        alone = signatures["serving_default"](text=tf.constant([text]))["probabilities"].numpy()
        np.testing.assert_allclose(alone[0], batch[row], rtol=0, atol=1e-6)


def test_a_mask_of_zeros_means_all_but_padding(signatures):
    ids = ids_of(["good", "the plot is thin."])
    expected = signatures["ids"](**ids)["probabilities"]
    mask = ids["padding_mask"] * [[0], [1]]
    got = signatures["ids"](**{**ids, "padding_mask": mask})["probabilities"]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


def test_a_mask_of_the_client_is_kept(signatures):
    ids = ids_of(["good film", "good film"])
    shorter = ids["padding_mask"] * tf.constant(
        [[1] * 2 + [0] * (MAX_LENGTH - 2), [1] * MAX_LENGTH]
    )
    got = signatures["ids"](**{**ids, "padding_mask": shorter})["probabilities"].numpy()
    assert np.abs(got[0] - got[1]).max() > 1e-3


def test_a_bfloat16_model_of_pairs(tmp_path):
    model, pairs = classifier(dtype="mixed_bfloat16"), TEXTS[::-1]
    result = export_classifier(
        model, tokenizer(), LABELS, tmp_path / "pairs", max_length=12, pairs=True, verify=False
    )
    assert result.report is None
    report = verify(result.path)
    assert report.problems == []
    assert report.signatures["serving_default"][:2] == ["pair", "text"]
    call = tf.saved_model.load(str(result.path)).signatures["serving_default"]
    got = call(text=tf.constant(TEXTS), pair=tf.constant(pairs))["probabilities"]
    assert got.dtype == tf.float32
    features = tokenizer()(TEXTS, pairs, max_length=12)
    expected = tf.nn.softmax(model.predict(features, verbose=0))
    np.testing.assert_allclose(got, expected, atol=0.02)
    with pytest.raises(tf.errors.InvalidArgumentError, match="text, pair must have as many rows"):
        call(text=tf.constant(["a", "b"]), pair=tf.constant(["a"]))


# Feeds of any rank and width, which Session.run would refuse; a server does not.
ASK = """
import json, sys
import numpy as np
import tensorflow as tf, tensorflow_text
from tensorflow.core.protobuf.config_pb2 import CallableOptions

session = tf.compat.v1.Session(graph=tf.Graph())
with session.graph.as_default():
    signatures = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1]).signature_def
width = int(sys.argv[2])

def callable_of(info):
    options = CallableOptions(feed=[one.name for _, one in sorted(info.inputs.items())],
                              fetch=[info.outputs["probabilities"].name])
    return session._make_callable_from_options(options)

callables = {name: callable_of(signatures[name]) for name in ("serving_default", "ids")}

def ask(signature, **inputs):
    try:
        return callables[signature](*(inputs[name] for name in sorted(inputs)))[0].tolist()
    except tf.errors.InvalidArgumentError as error:
        return error.message

def text(value):
    return ask("serving_default", text=np.array(value, object))

def ids(row, mask=None, segments=None, width=width):
    rows = np.zeros([1, width], np.int32) + np.array(row, np.int32)
    mask = np.ones([1, width], np.int32) if mask is None else mask
    return ask("ids", token_ids=rows, segment_ids=np.full_like(rows, segments or 0),
               padding_mask=mask)

word = b"a" * 1_000_000
answers = {
    "scalar": text(b"a"), "rank 2": text([[b"a"], [b"b"]]), "empty batch": text([]),
    "empty string": text([b""]), "NUL": text([b"\\0a\\0"]),
    "invalid UTF-8": text([b"\\xff\\xfea\\xc3"]),
    "1 MB word": text([word]), "1 MB text": text([b"good film " * 100_000]),
    "1 MB Chinese": text(["\u597d".encode() * 333_333, b"a"]),
    "ids": ids(4), "too narrow": ids(4, width=width - 1), "too wide": ids(4, width=width + 1),
    "negative": ids(-1), "too large": ids(10**6), "segment": ids(4, segments=2),
    "mask of 2": ids(4, mask=np.full([1, width], 2, np.int32)),
    "rows differ": ids(4, mask=np.ones([2, width], np.int32)),
    "hidden negative": ids([4] + [-1] * (width - 1), mask=np.eye(1, width, dtype=np.int32)),
    "no ids": ask("ids", **{name: np.zeros([0, width], np.int32) for name in
                            ("token_ids", "segment_ids", "padding_mask")}),
    "ids scalar": ask("ids", **{name: np.array(4, np.int32) for name in
                                ("token_ids", "segment_ids", "padding_mask")}),
    "after all": text([b"a good film!"]),
}
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(exported):
    return run_fresh(ASK, exported[1], MAX_LENGTH)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scalar", r"Shape of tensor .* \[\] is not compatible"),
        ("rank 2", r"\[2,1\] is not compatible"),
        ("too narrow", rf"\[1,{MAX_LENGTH - 1}\] is not compatible"),
        ("too wide", rf"\[1,{MAX_LENGTH + 1}\] is not compatible"),
        ("ids scalar", r"\[\] is not compatible"),
        ("negative", "token_ids must be in"),
        ("too large", "token_ids must be in"),
        ("hidden negative", "token_ids must be in"),
        ("segment", "segment_ids must be in"),
        ("mask of 2", "padding_mask must be in"),
        ("rows differ", "must have as many rows"),
    ],
)
def test_a_bad_request_is_an_error_and_the_server_lives(answers, name, message):
    assert isinstance(answers[name], str)
    assert re.search(message, answers[name]), answers[name]


# Name of the answer -> a short text with the same tokens.
ODD_TEXTS = {
    "empty string": "",
    "NUL": "a",
    "invalid UTF-8": "a",
    "1 MB word": "a" * 300,
    "1 MB text": "good film " * MAX_LENGTH,
    "1 MB Chinese": "好" * MAX_LENGTH,
    "after all": "a good film!",
}


def test_an_odd_text_gets_an_answer(answers, model):
    got = [answers[name][0] for name in ODD_TEXTS]
    expected = probabilities(model, list(ODD_TEXTS.values()))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["empty batch", "no ids"])
def test_an_empty_batch_gets_an_empty_answer(answers, name):
    assert answers[name] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ["a", "b"]}, "expected 3 labels, one a class of the model, got 2: a, b"),
        ({"max_length": 33}, r"max_length must be in \[2, 32\].*got 33"),
        ({"max_length": 2, "pairs": True}, r"max_length must be in \[3, 32\]"),
        ({"version": 0}, "version must be at least 1, got 0"),
    ],
)
def test_arguments_that_do_not_fit(model, tmp_path, changes, message):
    arguments = {"labels": LABELS, "max_length": MAX_LENGTH, **changes}
    labels = arguments.pop("labels")
    with pytest.raises(ValueError, match=message):
        export_classifier(model, tokenizer(), labels, tmp_path / "m", **arguments)
    assert not (tmp_path / "m").exists()


def test_a_larger_vocabulary_than_the_model_has_is_refused(model, tmp_path):
    larger = tokenizer()
    larger.vocab = Vocab([*larger.vocab.tokens, "more"])
    with pytest.raises(ValueError, match=f"has {CONFIG.vocab_size + 1} tokens, the model only"):
        export_classifier(model, larger, LABELS, tmp_path / "m", max_length=MAX_LENGTH)


def test_a_version_folder_as_output_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"output is the folder of the model.*version=7"):
        export_classifier(model, tokenizer(), LABELS, tmp_path / "m" / "7", max_length=MAX_LENGTH)


def test_a_version_is_never_overwritten(model, tmp_path):
    (tmp_path / "m" / "2").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="version 2 exists and is not overwritten"):
        export_classifier(
            model, tokenizer(), LABELS, tmp_path / "m", max_length=MAX_LENGTH, version=2
        )


def test_nothing_is_left_of_an_export_that_fails_its_check(model, tmp_path, monkeypatch):
    report = VerifyReport(tmp_path, {}, [], 0, 0, 0.0, 0, ["the weights cannot be read"])
    monkeypatch.setattr(export_module, "_write_saved_model", lambda signatures, folder: None)
    monkeypatch.setattr(export_module, "_verify_in_fresh_process", lambda folder: report)
    with pytest.raises(ValueError, match=r"(?s)nothing was written.*the weights cannot be read"):
        export_classifier(model, tokenizer(), LABELS, tmp_path / "m", max_length=MAX_LENGTH)
    assert list((tmp_path / "m").iterdir()) == []


def test_nothing_is_left_of_an_export_that_fills_the_disk(model, tmp_path, monkeypatch):
    def full(signatures, folder: Path):
        (folder / "saved_model.pb").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(export_module, "_write_saved_model", full)
    (tmp_path / "m" / "3").mkdir(parents=True)
    with pytest.raises(OSError, match=r"no disk space left to write .*4"):
        export_classifier(model, tokenizer(), LABELS, tmp_path / "m", max_length=MAX_LENGTH)
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["3"]


def test_pairs_need_two_segments(tmp_path):
    from keras_bert_impl.models import BertClassifier

    config = BertConfig(**{**CONFIG.to_dict(), "type_vocab_size": 1})
    with pytest.raises(ValueError, match="type_vocab_size is 1"):
        export_classifier(
            BertClassifier(config, 3), tokenizer(), LABELS, tmp_path, max_length=9, pairs=True
        )
