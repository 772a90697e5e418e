"""The pretrainer: logits against NumPy, losses that no padding changes, training."""

from __future__ import annotations

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.losses import as_weighted_mean
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.training import AdamW, Lamb, WarmupLinearDecay
from tests.checks import CONFIG, MASKED
from tests.reference_bert import ACTIVATIONS, bert, randomise, weights_of

V = CONFIG.vocab_size
QUIET = CONFIG.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
LONG = QUIET.replace(max_position_embeddings=90)


def arrays(outputs) -> dict[str, np.ndarray]:
    return {name: ops.convert_to_numpy(x) for name, x in outputs.items()}


def examples(rows: int, slots: int, length: int = 85, most: int = 15, seed: int = 0):
    """(inputs, targets, weights) with up to `most` masks a row, in `slots` slots."""
    random = np.random.default_rng(seed)
    x = {
        "token_ids": random.integers(5, V, (rows, length)).astype("int32"),
        "segment_ids": random.integers(0, 2, (rows, length)).astype("int32"),
        "padding_mask": np.ones((rows, length), "int32"),
    }
    positions, ids = (np.zeros((rows, slots), "int32") for _ in range(2))
    weights = np.zeros((rows, slots), "float32")
    for row in range(rows):
        count = random.integers(1, most + 1)
        positions[row, :count] = np.sort(random.permutation(length)[:count])
        ids[row, :count] = random.integers(5, V, count)
        weights[row, :count] = 1
    next_sentence = random.integers(0, 2, rows).astype("int32")
    y = {"masked_lm": ids, "next_sentence": next_sentence}
    w = {"masked_lm": weights, "next_sentence": np.ones(rows, "float32")}
    return {**x, "masked_positions": positions}, y, w


def crossentropy(logits, ids) -> np.ndarray:
    logits = np.array(logits, "float64")
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities = exp / exp.sum(-1, keepdims=True)
    return -np.log(np.take_along_axis(probabilities, ids[..., None], -1)[..., 0])


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_erf", "relu"])
def test_logits_equal_numpy(activation):
    config = CONFIG.replace(hidden_act=activation, layer_norm_eps=1e-3)
    model = BertPretrainer(config)
    randomise(model, seed=1)
    model.masked_lm_head.bias.assign(np.linspace(-1, 1, V))
    weights = weights_of(model.encoder)
    body = {name.removeprefix("encoder/"): value for name, value in weights.items()}
    rows = (MASKED[name][:2] for name in ("token_ids", "segment_ids", "padding_mask"))
    expected = bert(config, body, *rows)

    def dense(layer, x):
        kernel, bias = (np.array(w, "float64") for w in layer.get_weights())
        return x @ kernel + bias

    head = model.masked_lm_head
    x = ACTIVATIONS[activation](dense(head.dense, expected["sequence_output"]))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    gamma, beta = (np.array(w, "float64") for w in head.norm.get_weights())
    x = (x * gamma + beta) @ body["embeddings/token/embeddings"].T + np.linspace(-1, 1, V)
    nsp = dense(model.next_sentence_head.dense, expected["pooled_output"])

    outputs = arrays(model({name: value[:2] for name, value in MASKED.items()}))
    picked = np.take_along_axis(x, MASKED["masked_positions"][:2, :, None], axis=1)
    np.testing.assert_allclose(outputs["masked_lm"], picked, atol=2e-5)
    np.testing.assert_allclose(outputs["next_sentence"], nsp, atol=2e-5)
    everywhere = {n: v[:2] for n, v in MASKED.items() if n != "masked_positions"}
    real = MASKED["padding_mask"][:2] == 1
    ours = arrays(model(everywhere))["masked_lm"]
    np.testing.assert_allclose(ours[real], x[real], atol=2e-5)


def test_the_decoder_is_the_token_embeddings():
    model = BertPretrainer(QUIET)
    before = arrays(model(MASKED))["masked_lm"]
    table = model.encoder.embeddings.token.embeddings
    assert sum(tuple(v.shape) == tuple(table.shape) for v in model.weights) == 1
    values = np.array(ops.convert_to_numpy(table))
    values[20, 0] += 1.0  # no text of MASKED has the token 20
    table.assign(values)
    after = arrays(model(MASKED))["masked_lm"]
    assert set(np.flatnonzero(np.abs(after - before).max((0, 1)) > 1e-6)) == {20}


@pytest.mark.parametrize("next_sentence", [True, False])
def test_no_slot_changes_loss_or_gradients(next_sentence):
    model = BertPretrainer(LONG, next_sentence=next_sentence)
    randomise(model, seed=2)
    model.compile("sgd")
    results = []
    for slots in (20, 80):
        x, y, w = examples(6, slots)
        x["masked_positions"][w["masked_lm"] == 0] = slots  # any position at all
        y["masked_lm"][w["masked_lm"] == 0] = slots % V
        if not next_sentence:
            y, w = {"masked_lm": y["masked_lm"]}, {"masked_lm": w["masked_lm"]}
        results.append(loss_and_gradients(model, x, y, w))
    logits = arrays(model(x))
    expected = np.average(crossentropy(logits["masked_lm"], y["masked_lm"]), weights=w["masked_lm"])
    if next_sentence:
        expected += crossentropy(logits["next_sentence"], y["next_sentence"]).mean()
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-6)
    assert results[0][0] == pytest.approx(expected, abs=1e-5)
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-5)


def loss_and_gradients(model, x, y, w):
    """The loss of the compiled model, and its dense gradients."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True), w)
        found = tape.gradient(loss, [v.value for v in model.trainable_weights])
        return float(loss), [tf.convert_to_tensor(g).numpy() for g in found]
    import jax

    def compute(values):
        fixed = [v.value for v in model.non_trainable_variables]
        outputs, _ = model.stateless_call(values, fixed, x, training=True)
        losses = as_weighted_mean(
            {name: keras.losses.SparseCategoricalCrossentropy(from_logits=True) for name in y}
        )
        return sum(loss(y[name], outputs[name], w[name]) for name, loss in losses.items())

    loss, found = jax.value_and_grad(compute)([v.value for v in model.trainable_weights])
    return float(loss), [np.array(g) for g in found]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="needs TensorFlow")
def test_loss_equals_tf_models_official():
    tasks = pytest.importorskip("official.nlp.tasks.masked_lm")
    model = BertPretrainer(LONG)
    randomise(model, seed=2)
    x, y, w = examples(4, 20)
    model.compile("sgd")
    outputs = model(x)
    ours = float(model.compute_loss(x, y, outputs, w))

    names = ("lm_example_loss", "next_sentence_loss")
    metrics = [SimpleNamespace(name=name, update_state=lambda value: None) for name in names]
    labels = {
        "masked_lm_ids": y["masked_lm"],
        "masked_lm_weights": w["masked_lm"],
        "next_sentence_labels": y["next_sentence"][:, None],
    }
    theirs = tasks.MaskedLMTask(tasks.MaskedLMConfig()).build_losses(
        labels,
        {"mlm_logits": outputs["masked_lm"], "next_sentence": outputs["next_sentence"]},
        metrics,
    )
    assert ours == pytest.approx(float(theirs), abs=1e-6)


def test_nothing_masked_is_no_loss():
    model = BertPretrainer(LONG, next_sentence=False)
    randomise(model, seed=2)
    model.compile("sgd")
    x, y, w = examples(3, 20)
    loss, gradients = loss_and_gradients(
        model, x, {"masked_lm": y["masked_lm"]}, {"masked_lm": 0 * w["masked_lm"]}
    )
    assert loss == 0
    for gradient in gradients:
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


def test_an_epoch_is_one_large_batch():
    model = BertPretrainer(LONG)
    randomise(model, seed=2)
    model.compile("sgd", loss_weights={"masked_lm": 1.0, "next_sentence": 3.0})
    x, y, w = examples(11, 20, seed=4)
    w["masked_lm"][4:8] = 0  # a batch without a mask
    logits = arrays(model(x))
    masks, ids = w["masked_lm"], y["masked_lm"]
    masked_lm = np.average(crossentropy(logits["masked_lm"], ids), weights=masks)
    next_sentence = crossentropy(logits["next_sentence"], y["next_sentence"]).mean()
    right = logits["masked_lm"].argmax(-1) == ids
    nsp_right = logits["next_sentence"].argmax(-1) == y["next_sentence"]
    expected = {
        "loss": masked_lm + 3 * next_sentence,
        "masked_lm_loss": masked_lm,
        "masked_lm_accuracy": np.average(right, weights=masks),
        "next_sentence_loss": next_sentence,
        "next_sentence_accuracy": nsp_right.mean(),
    }
    for batch_size in (4, 11):
        scores = model.evaluate(
            x, y, sample_weight=w, batch_size=batch_size, verbose=0, return_dict=True
        )
        assert scores == pytest.approx(expected, abs=1e-5)


def test_masked_lm_alone_logs_the_same_names():
    model = BertPretrainer(LONG, next_sentence=False)
    model.compile("sgd")
    x, y, w = examples(3, 20)
    scores = model.evaluate(
        x,
        {"masked_lm": y["masked_lm"]},
        sample_weight={"masked_lm": w["masked_lm"]},
        verbose=0,
        return_dict=True,
    )
    assert set(scores) == {"loss", "masked_lm_loss", "masked_lm_accuracy"}
    assert scores["loss"] == scores["masked_lm_loss"]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX checks no values")
@pytest.mark.parametrize("bad", [-1, 5])
def test_positions_outside_a_row_are_refused(bad):
    model = BertPretrainer(QUIET)
    positions = np.array([[1, 2], [bad, 0], [0, 0]], "int32")
    batch = {**MASKED, "masked_positions": positions}
    message = "masked_positions must be less than the number of tokens in a row"
    with pytest.raises(ValueError, match=message):
        model(batch)
    model.compile("sgd")
    with pytest.raises(ValueError, match=message):
        model.predict(batch, verbose=0)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX checks no values")
def test_targets_outside_the_vocabulary_are_refused():
    model = BertPretrainer(LONG)
    model.compile("sgd")
    x, y, w = examples(3, 20)
    y["masked_lm"][1, 0] = V
    with pytest.raises(ValueError, match=r"targets must be in \[0, 30\), got values from 0 to 30"):
        model.fit(x, y, sample_weight=w, verbose=0)


def test_shapes_stay_static():
    specs = {
        name: keras.KerasTensor((4, 2 if name == "masked_positions" else 5), "int32")
        for name in MASKED
    }
    outputs = BertPretrainer(QUIET)(specs)
    assert outputs["masked_lm"].shape == (4, 2, V)
    assert outputs["next_sentence"].shape == (4, 2)


@pytest.mark.parametrize(
    "make", [lambda: AdamW(1e-2), lambda: Lamb(WarmupLinearDecay(3e-2, 160))], ids=["AdamW", "LAMB"]
)
def test_it_learns_a_few_batches_by_heart(make):
    keras.utils.set_random_seed(1)
    config = QUIET.replace(hidden_size=32, intermediate_size=64)
    model = BertPretrainer(config)
    x, y, w = examples(16, 4, length=12, most=3, seed=5)
    y["masked_lm"] = np.where(
        w["masked_lm"] > 0, np.take_along_axis(x["token_ids"], x["masked_positions"], 1), 0
    )
    np.put_along_axis(x["token_ids"], x["masked_positions"], 4, 1)
    model.compile(make())
    model.fit(x, y, sample_weight=w, batch_size=8, epochs=80, verbose=0)
    scores = model.evaluate(x, y, sample_weight=w, verbose=0, return_dict=True)
    assert scores["masked_lm_accuracy"] >= 0.98
    assert scores["next_sentence_accuracy"] == 1.0


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_stays_finite(policy):
    keras.utils.set_random_seed(1)
    model = BertPretrainer(CONFIG, dtype=policy)
    x, y, w = examples(16, 4, length=12, most=3)
    w["masked_lm"][:4] = 0  # one batch without a mask
    model.compile(AdamW(1e-2))
    history = model.fit(x, y, sample_weight=w, batch_size=4, epochs=10, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert all(np.isfinite(value).all() for value in model.get_weights())
    assert history.history["masked_lm_loss"][-1] < history.history["masked_lm_loss"][0]
