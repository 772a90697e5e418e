"""BertEncoder against a NumPy BERT and real outputs; padding, masks, what goes on top; messages."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertEncoder
from tests import checks, reference_bert
from tests.checks import BATCH, CONFIG, PADDING_MASK, SEGMENT_IDS, TOKEN_IDS

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
SMALL = BertConfig(
    vocab_size=50,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=40,
)


def numpy(x) -> np.ndarray:
    return ops.convert_to_numpy(x)


def random_encoder(config=SMALL, seed=0) -> BertEncoder:
    encoder = BertEncoder(config)
    reference_bert.randomise(encoder, seed)
    return encoder


def random_batch(lengths, config=SMALL, seed=0, width=None) -> dict:
    random = np.random.default_rng(seed)
    shape = (len(lengths), width or max(lengths))
    return {
        "token_ids": random.integers(0, config.vocab_size, shape).astype("int32"),
        "segment_ids": random.integers(0, config.type_vocab_size, shape).astype("int32"),
        "padding_mask": (np.arange(shape[1]) < np.array(lengths)[:, None]).astype("int32"),
    }


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu"])
def test_equals_the_numpy_bert(activation, norm, positions):
    config = SMALL.replace(
        hidden_act=activation, norm_position=norm, position_embedding_type=positions
    )
    encoder, batch = random_encoder(config), random_batch([9, 4, 7])
    outputs = encoder(batch, return_hidden_states=True, return_attentions=True)
    expected = reference_bert.bert(config, reference_bert.weights_of(encoder), *batch.values())
    real = batch["padding_mask"] == 1
    np.testing.assert_allclose(
        numpy(outputs["pooled_output"]), expected["pooled_output"], atol=1e-5
    )
    pairs = [(outputs["sequence_output"], expected["sequence_output"])]
    pairs += zip(outputs["hidden_states"], expected["hidden_states"], strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(numpy(ours)[real], theirs[real], atol=1e-4)
    for ours, theirs in zip(outputs["attentions"], expected["attentions"], strict=True):
        for row in range(len(real)):
            np.testing.assert_allclose(
                numpy(ours)[row][:, real[row]], theirs[row][:, real[row]], atol=1e-5
            )


@pytest.mark.parametrize("pooled_only", [False, True])
@pytest.mark.parametrize(("activation", "norm"), [("gelu_erf", "post"), ("gelu_tanh", "pre")])
def test_gradients_are_the_slopes_of_the_numpy_bert(activation, norm, pooled_only):
    config = SMALL.replace(hidden_act=activation, norm_position=norm)
    encoder, batch = random_encoder(config), random_batch([9, 4, 7])
    case = checks.Case(lambda: encoder, (batch,), {"pooled_only": pooled_only})
    weights, random = reference_bert.weights_of(encoder), np.random.default_rng(0)

    def projection(changed):
        outputs = reference_bert.bert(config, {**weights, **changed}, *batch.values())
        outputs = (outputs["pooled_output"], outputs["sequence_output"])[: 2 - pooled_only]
        return sum((x * checks.vectors(*x.shape)).sum() for x in outputs)

    gradients = checks.gradients(encoder, case)
    for variable, gradient in zip(encoder.trainable_weights, gradients, strict=True):
        name = variable.path.split("/", 1)[1]
        way = 1e-5 * random.choice([-1.0, 1.0], variable.shape)
        slope = projection({name: weights[name] + way}) - projection({name: weights[name] - way})
        expected = (numpy(gradient) * way).sum() * 2
        assert slope == pytest.approx(expected, rel=2e-3, abs=1e-7), name


@pytest.mark.parametrize("name", ["gelu", "gelu_pytorch_tanh", "relu"])
def test_golden_outputs_of_transformers(shared, name):
    folder = shared / "data/weights/tiny_random_hf/pretraining"
    golden = json.loads((folder / "golden_outputs.json").read_text())
    encoder = BertEncoder.from_pretrained(folder)
    kinds = {"gelu": "gelu_erf", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
    other = BertEncoder(encoder.config.replace(hidden_act=kinds[name]))
    other.set_weights(encoder.get_weights())
    mask = np.array(golden["attention_mask"])
    inputs = {
        "token_ids": np.array(golden["input_ids"]),
        "segment_ids": np.array(golden["token_type_ids"]),
        "padding_mask": mask,
    }
    outputs, expected = other(inputs, return_hidden_states=True), golden["outputs"][name]
    np.testing.assert_allclose(
        numpy(outputs["pooled_output"]), expected["pooled_output"], atol=1e-4
    )
    for ours, theirs in (
        (outputs["hidden_states"][0], "embedding_output"),
        (outputs["hidden_states"][1], "hidden_1"),
        (outputs["sequence_output"], "sequence_output"),
    ):
        np.testing.assert_allclose(
            numpy(ours)[mask == 1], np.array(expected[theirs])[mask == 1], atol=1e-4
        )


def test_golden_outputs_of_minilm(shared, minilm):
    golden = np.load(shared / "data/weights/real_minilm_golden/golden.npz")
    mask = golden["attention_mask"]
    outputs = BertEncoder.from_pretrained(minilm)(
        {
            "token_ids": golden["input_ids"],
            "segment_ids": golden["token_type_ids"],
            "padding_mask": mask,
        },
        return_hidden_states=True,
    )
    hidden_states = [numpy(x) for x in outputs["hidden_states"]]
    for index, name in ((0, "hidden_0_embeddings"), (3, "hidden_3"), (6, "hidden_6_last")):
        np.testing.assert_allclose(
            hidden_states[index][mask == 1], golden[name][mask == 1], atol=1e-4
        )
    np.testing.assert_allclose(numpy(outputs["pooled_output"]), golden["pooler_output"], atol=1e-4)
    means = numpy(keras.layers.GlobalAveragePooling1D()(outputs["sequence_output"]))
    means /= np.linalg.norm(means, axis=-1, keepdims=True)
    np.testing.assert_allclose(means, golden["sentence_embeddings"], atol=1e-4)


def test_padding_changes_nothing():
    encoder, alone = random_encoder(), random_batch([7])
    expected = encoder(alone)
    for width in (8, 24, 40):
        padded = random_batch([7], seed=1, width=width)
        for name in ("token_ids", "segment_ids"):
            padded[name][:, :7] = alone[name]
        outputs = encoder(padded)
        np.testing.assert_allclose(
            numpy(outputs["sequence_output"])[:, :7], numpy(expected["sequence_output"]), atol=1e-5
        )
        np.testing.assert_allclose(
            numpy(outputs["pooled_output"]), numpy(expected["pooled_output"]), atol=1e-5
        )


def test_batched_equals_one_by_one():
    encoder, batch = random_encoder(), random_batch([5, 9, 1, 7])
    together = numpy(encoder(batch)["pooled_output"])
    for row in range(4):
        one = {name: value[row : row + 1] for name, value in batch.items()}
        np.testing.assert_allclose(
            numpy(encoder(one)["pooled_output"])[0], together[row], atol=1e-5
        )


def test_intermediates_are_part_of_the_answer():
    encoder, batch = random_encoder(), random_batch([4, 6])
    outputs = encoder(batch, return_hidden_states=True, return_attentions=True)
    assert [tuple(x.shape) for x in outputs["hidden_states"]] == [(2, 6, 12)] * 3
    assert [tuple(x.shape) for x in outputs["attentions"]] == [(2, 3, 6, 6)] * 2
    np.testing.assert_array_equal(
        numpy(outputs["hidden_states"][-1]), numpy(outputs["sequence_output"])
    )
    for weights in map(numpy, outputs["attentions"]):
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
        np.testing.assert_array_equal(weights[0, :, :, 4:], 0)
    plain = encoder(batch)
    assert set(plain) == {"sequence_output", "pooled_output"}
    np.testing.assert_allclose(
        numpy(plain["sequence_output"]), numpy(outputs["sequence_output"]), atol=1e-6
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_pooled_output_alone_is_that_beside_the_others(norm):
    encoder, batch = random_encoder(SMALL.replace(norm_position=norm)), random_batch([9, 4, 7])
    alone = encoder(batch, pooled_only=True)
    assert set(alone) == {"pooled_output"}
    np.testing.assert_allclose(
        numpy(alone["pooled_output"]), numpy(encoder(batch)["pooled_output"]), atol=1e-6
    )
    inputs = {name: keras.Input((None,), name=name, dtype="int32") for name in batch}
    symbolic = encoder(inputs, pooled_only=True)
    assert {name: x.shape for name, x in symbolic.items()} == {"pooled_output": (None, 12)}
    model = keras.Model(inputs, symbolic)
    np.testing.assert_array_equal(
        numpy(model(batch)["pooled_output"]), numpy(alone["pooled_output"])
    )


@pytest.mark.parametrize("other", ["return_hidden_states", "return_attentions"])
def test_the_pooled_output_alone_goes_with_no_other_output(other):
    with pytest.raises(ValueError, match="pooled_only=True computes no hidden_states"):
        random_encoder()(random_batch([4]), pooled_only=True, **{other: True})


def test_optional_inputs():
    encoder, ids = random_encoder(), random_batch([6])["token_ids"]
    full = encoder(
        {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    )
    for inputs in (
        {"token_ids": ids},
        {"token_ids": ids.astype("int64"), "segment_ids": None, "padding_mask": None},
        {"token_ids": ids, "padding_mask": np.ones(ids.shape, bool)},
    ):
        np.testing.assert_allclose(
            numpy(encoder(inputs)["sequence_output"]), numpy(full["sequence_output"]), atol=1e-6
        )


def test_every_number_but_0_in_a_mask_is_a_real_token():
    encoder, batch = random_encoder(), random_batch([3, 5])
    expected = numpy(encoder(batch)["pooled_output"])
    batch["padding_mask"] = batch["padding_mask"] * 7
    np.testing.assert_allclose(numpy(encoder(batch)["pooled_output"]), expected, atol=1e-6)


def test_dropout_acts_in_training_only():
    encoder = BertEncoder(CONFIG)
    one, two = (numpy(encoder(BATCH, training=True)["pooled_output"]) for _ in range(2))
    assert np.abs(one - two).max() > 1e-4
    one, two = (numpy(encoder(BATCH)["pooled_output"]) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_pooling_on_top_ignores_padding():
    encoder = random_encoder(CONFIG)
    pool = keras.layers.GlobalAveragePooling1D()
    outputs = encoder(BATCH, return_hidden_states=True, return_attentions=True)
    for states in (outputs["sequence_output"], *outputs["hidden_states"]):
        mask = PADDING_MASK[:2, :, None]
        expected = (numpy(states)[:2] * mask).sum(axis=1) / mask.sum(axis=1)
        np.testing.assert_allclose(numpy(pool(states))[:2], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Layer '.*does not support masking")
@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_keras_layers_stack_on_top(tmp_path):
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    states = BertEncoder(CONFIG)(inputs)["sequence_output"]
    branches = [
        keras.layers.GlobalMaxPooling1D()(keras.layers.Conv1D(4, 3, padding="same")(states)),
        keras.layers.LSTM(4)(states),
        keras.layers.Bidirectional(keras.layers.GRU(3))(states),
        keras.layers.GlobalAveragePooling1D()(states),
        keras.layers.GlobalMaxPooling1D()(states),
    ]
    outputs = keras.layers.Dense(1)(keras.layers.Concatenate()(branches))
    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse")
    batch = {name: value[:2] for name, value in BATCH.items()}
    history = model.fit(batch, np.array([0.0, 1.0]), epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numpy(model(batch)), numpy(loaded(batch)))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"input_ids": TOKEN_IDS}, r"expected the inputs .*token_ids.*, got \['input_ids'\]"),
        ({"segment_ids": SEGMENT_IDS}, r"expected the inputs .*, got \['segment_ids'\]"),
        ({**BATCH, "mask": PADDING_MASK}, r"got \['mask', 'padding_mask'"),
        (TOKEN_IDS, "expected a dict with the keys"),
        ({"token_ids": TOKEN_IDS.astype("float32")}, "token_ids must be integers, got float32"),
        ({"token_ids": TOKEN_IDS[0]}, r"token_ids must have the shape \[batch, sequence\]"),
        ({"token_ids": TOKEN_IDS, "padding_mask": PADDING_MASK[:, 1:]}, r"got \(3, 4\)"),
        ({"token_ids": np.zeros((2, 17), int)}, r"17 tokens .* max_position_embeddings \(16\)"),
    ],
)
def test_bad_inputs(inputs, message):
    with pytest.raises(ValueError, match=message):
        BertEncoder(CONFIG)(inputs)


def test_bad_symbolic_inputs():
    with pytest.raises(ValueError, match="token_ids must be integers, got float32"):
        BertEncoder(CONFIG)({"token_ids": keras.Input((None,))})


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX cannot check values inside a compiled step")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("token_ids", 30, r"token_ids .*must be in \[0, 30\), got values from 0 to 30"),
        ("token_ids", -1, r"token_ids .*must be in \[0, 30\), got values from -1 to 0"),
        ("segment_ids", 3, r"segment_ids must be in \[0, 3\), got values from 0 to 3"),
    ],
)
def test_ids_out_of_range(name, value, message):
    ids = {"token_ids": np.zeros((2, 4), int), name: np.array([[0, 0, value, 0]] * 2)}
    with pytest.raises(ValueError, match=message):
        BertEncoder(CONFIG)(ids)


def test_pretrained_pickle_is_refused_with_the_way_out(shared):
    with pytest.raises(ValueError, match=r"only pytorch_model\.bin, a pickle.*save_file"):
        BertEncoder.from_pretrained(shared / "data/weights/tiny_random_hf/pretraining_legacy_bin")
