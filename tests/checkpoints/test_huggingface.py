"""Hugging Face folders: both eras of names, shards, float types, what does not fit."""

from __future__ import annotations

import json
import logging
import struct

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_bert_impl.checkpoints import open_checkpoint
from keras_bert_impl.models import BertClassifier, BertEncoder
from tests.checks import BATCH, CONFIG

CONFIG = CONFIG.replace(hidden_act="gelu_erf")
H, F = CONFIG.hidden_size, CONFIG.intermediate_size


def tensors_of_a_bert() -> dict[str, np.ndarray]:
    """Random tensors by the names and shapes of transformers' BertModel."""
    shapes = {
        "embeddings.word_embeddings.weight": (CONFIG.vocab_size, H),
        "embeddings.position_embeddings.weight": (CONFIG.max_position_embeddings, H),
        "embeddings.token_type_embeddings.weight": (CONFIG.type_vocab_size, H),
        "embeddings.LayerNorm.weight": (H,),
        "embeddings.LayerNorm.bias": (H,),
        "pooler.dense.weight": (H, H),
        "pooler.dense.bias": (H,),
    }
    for layer in range(CONFIG.num_hidden_layers):
        for name, shape in (
            ("attention.self.query", (H, H)),
            ("attention.self.key", (H, H)),
            ("attention.self.value", (H, H)),
            ("attention.output.dense", (H, H)),
            ("attention.output.LayerNorm", (H,)),
            ("intermediate.dense", (F, H)),
            ("output.dense", (H, F)),
            ("output.LayerNorm", (H,)),
        ):
            shapes[f"encoder.layer.{layer}.{name}.weight"] = shape
            shapes[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
    random = np.random.default_rng(0)
    return {name: random.normal(size=s).astype("float32") for name, s in shapes.items()}


TENSORS = tensors_of_a_bert()
HEAD = {
    "classifier.weight": np.full((3, H), 0.5, "float32"),
    "classifier.bias": np.arange(3).astype("float32"),
}


def write(folder, tensors=TENSORS, file="model.safetensors", **values):
    folder.mkdir(exist_ok=True)
    config = {**CONFIG.to_family("huggingface"), **values}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / file)
    return folder


def write_shards(folder):
    names = sorted(TENSORS)
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
    for file in sorted(set(files.values())):
        write(folder, {name: TENSORS[name] for name in names if files[name] == file}, file)
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def pooled(folder) -> np.ndarray:
    return np.array(BertEncoder.from_pretrained(folder)(BATCH)["pooled_output"])


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return pooled(write(tmp_path_factory.mktemp("plain")))


def old_names(tensors):
    return {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in tensors.items()
    }


def prefixed(tensors):
    return {f"bert.{name}": value for name, value in tensors.items()}


@pytest.mark.parametrize(
    "renamed",
    [old_names(TENSORS), prefixed(TENSORS), prefixed(old_names(TENSORS))],
    ids=["gamma and beta", "prefix", "both"],
)
def test_every_era_of_names(tmp_path, expected, renamed):
    buffers = {"embeddings.position_ids": np.arange(16)[None]}
    np.testing.assert_array_equal(pooled(write(tmp_path, {**renamed, **buffers})), expected)


def test_shards(tmp_path, expected):
    np.testing.assert_array_equal(pooled(write_shards(tmp_path)), expected)


def test_a_missing_shard_is_named(tmp_path):
    (write_shards(tmp_path) / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model-00002-of-00002\.safetensors: no such file"):
        BertEncoder.from_pretrained(tmp_path)


@pytest.mark.parametrize("content", ["{", "{}", "[1]"])
def test_a_damaged_index_is_named(tmp_path, content):
    (write_shards(tmp_path) / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match=r"index\.json: expected an object 'weight_map'"):
        BertEncoder.from_pretrained(tmp_path)


def test_float16(tmp_path, expected):
    half = {name: value.astype("float16") for name, value in TENSORS.items()}
    encoder = BertEncoder.from_pretrained(write(tmp_path, half))
    assert {variable.dtype for variable in encoder.trainable_weights} == {"float32"}
    np.testing.assert_allclose(np.array(encoder(BATCH)["pooled_output"]), expected, atol=0.05)


def test_bfloat16(tmp_path):
    """The upper two bytes of a float32, in the layout of the safetensors format."""
    write(tmp_path)
    header, body = {}, b""
    for name, value in TENSORS.items():
        data = (value.view("uint32") >> 16).astype("<u2").tobytes()
        offsets = [len(body), len(body) + len(data)]
        header[name] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": offsets}
        body += data
    head = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + body)
    encoder = BertEncoder.from_pretrained(tmp_path)
    words = TENSORS["embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(
        encoder.embeddings.token.get_weights()[0],
        ((words.view("uint32") >> 16) << 16).view("float32"),
    )


def test_everything_that_does_not_fit_is_listed_and_nothing_assigned(tmp_path):
    tensors = dict(TENSORS)
    del tensors["encoder.layer.0.output.dense.bias"]
    tensors["encoder.layer.9.output.dense.bias"] = np.zeros(8, "float32")
    tensors["embeddings.word_embeddings.weight"] = np.zeros((31, 8), "float32")
    checkpoint = open_checkpoint(write(tmp_path, tensors))
    encoder = BertEncoder(checkpoint.config)
    before = encoder.get_weights()
    with pytest.raises(ValueError, match="the weights do not fit the config") as caught:
        checkpoint.load_into(encoder)
    message = str(caught.value)
    assert "missing in the file (1): ['encoder.layer.0.output.dense.bias']" in message
    assert "unknown in the file (1): ['encoder.layer.9.output.dense.bias']" in message
    assert "word_embeddings.weight: file (31, 8), model (30, 8)" in message
    for a, b in zip(before, encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_weight_that_is_there_twice(tmp_path):
    doubled = {**TENSORS, **prefixed({"pooler.dense.bias": np.zeros(8, "float32")})}
    with pytest.raises(ValueError, match=r"pooler\.dense\.bias .*are the same weight"):
        BertEncoder.from_pretrained(write(tmp_path, doubled))


def test_a_damaged_file_is_named(tmp_path):
    file = write(tmp_path) / "model.safetensors"
    for content in (file.read_bytes()[:200], b"", b"<!DOCTYPE html>"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.safetensors: not a readable safetensors"):
            BertEncoder.from_pretrained(tmp_path)


def without_pooler():
    return {name: value for name, value in TENSORS.items() if not name.startswith("pooler")}


def test_a_missing_pooler_is_newly_initialised_and_said(tmp_path, caplog):
    folder = write(tmp_path, without_pooler(), architectures=["BertForMaskedLM"])
    checkpoint = open_checkpoint(folder)
    encoder = BertEncoder(checkpoint.config)
    with caplog.at_level(logging.INFO):
        report = checkpoint.load_into(encoder)
    pooler = {variable.path for variable in encoder.pooler.weights}
    assert set(report.initialised) == pooler
    assert f"newly initialised, since {folder} has no such weights" in caplog.text
    assert all(path in caplog.text for path in pooler)


def test_part_of_a_pooler_is_an_error(tmp_path):
    part = {**without_pooler(), "pooler.dense.weight": TENSORS["pooler.dense.weight"]}
    with pytest.raises(ValueError, match=r"missing in the file \(1\): \['pooler.dense.bias'\]"):
        BertEncoder.from_pretrained(write(tmp_path, part))


def test_heads_are_listed_as_unused(tmp_path, caplog):
    heads = {
        "cls.seq_relationship.weight": np.zeros((2, 8), "float32"),
        "cls.predictions.bias": np.zeros(30, "float32"),
        "qa_outputs.weight": np.zeros((2, 8), "float32"),
    }
    checkpoint = open_checkpoint(write(tmp_path, {**prefixed(TENSORS), **heads}))
    with caplog.at_level(logging.INFO, logger="keras_bert_impl"):
        report = checkpoint.load_into(BertEncoder(checkpoint.config))
    assert set(report.unused) == set(heads)
    assert set(report.loaded) == set(prefixed(TENSORS))
    assert "not used by this model: cls.predictions.bias" in caplog.text


def test_a_classifier_with_its_head_and_labels(tmp_path):
    names = {"2": "c", "0": "a", "1": "b"}
    kind = ["BertForSequenceClassification"]
    write(tmp_path, {**prefixed(TENSORS), **HEAD}, architectures=kind, id2label=names)
    model = BertClassifier.from_pretrained(tmp_path)
    assert model.labels == ("a", "b", "c")
    kernel, bias = model.head.dense.get_weights()
    np.testing.assert_array_equal(kernel, HEAD["classifier.weight"].T)
    np.testing.assert_array_equal(bias, HEAD["classifier.bias"])


def test_a_head_without_label_names_gives_the_number_of_classes(tmp_path):
    kind = ["BertForSequenceClassification"]
    write(tmp_path, {**prefixed(TENSORS), **HEAD}, architectures=kind)
    model = BertClassifier.from_pretrained(tmp_path)
    assert (model.num_classes, model.labels) == (3, None)


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_another_head_is_newly_initialised(tmp_path, caplog, kind):
    write(tmp_path, {**prefixed(TENSORS), **HEAD}, architectures=[kind])
    classes = 2 if kind == "BertForSequenceClassification" else 3
    model = BertClassifier.from_pretrained(tmp_path, num_classes=classes)
    assert "newly initialised" in caplog.text
    assert "head/dense/kernel" in caplog.text
    assert np.abs(model.head.dense.get_weights()[0]).max() < 0.1
    np.testing.assert_array_equal(
        model.encoder.embeddings.token.get_weights()[0],
        TENSORS["embeddings.word_embeddings.weight"],
    )


def test_an_encoder_needs_num_classes(tmp_path):
    with pytest.raises(ValueError, match="holds no BertClassifier: give num_classes"):
        BertClassifier.from_pretrained(write(tmp_path))


def test_no_config(tmp_path):
    (write(tmp_path) / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.json: no such config file"):
        BertEncoder.from_pretrained(tmp_path)


def test_folders_without_weights(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no weights .* found \[\]"):
        BertEncoder.from_pretrained(tmp_path)
    (tmp_path / "pytorch_model-00001-of-00002.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a pickle, which is not loaded .*Convert it once"):
        BertEncoder.from_pretrained(tmp_path)


def test_real_pretraining_folder_uses_or_names_every_tensor(shared):
    checkpoint = open_checkpoint(shared / "data/weights/tiny_random_hf/pretraining")
    report = checkpoint.load_into(BertEncoder(checkpoint.config))
    assert report.initialised == ()
    assert all(name.startswith("cls.") for name in report.unused)
    assert len(report.unused) == 7
    assert len(report.loaded) == 5 + 3 * 16 + 2
