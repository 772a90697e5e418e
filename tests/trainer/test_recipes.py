"""R-Drop against NumPy, adversarial training against its definition."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from keras_bert_impl.models import BertClassifier
from keras_bert_impl.trainer import Trainer
from keras_bert_impl.trainer.recipes import check_recipe
from tests.checks import CONFIG

if keras.backend.backend() != "tensorflow":
    pytest.skip("tests the TensorFlow trainer", allow_module_level=True)

import tensorflow as tf

from keras_bert_impl.trainer import tensorflow_recipes as recipes

SHALLOW = CONFIG.replace(num_hidden_layers=1)
CALM = SHALLOW.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
RANDOM = np.random.default_rng(0)
X = {"token_ids": RANDOM.integers(1, 30, (8, 5)).astype("int32")}
Y = np.array([0, 1] * 4, "int32")
W = np.array([0, 3, 0.5, 0, 1, 7, 0.1, 2], "float32")
CROSSENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def divergence(one, other):
    p, q = softmax(one), softmax(other)
    return ((p * np.log(p / q)).sum(axis=-1) + (q * np.log(q / p)).sum(axis=-1)) / 2


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 7)])
def test_divergence_is_that_of_numpy(shape):
    one, other = RANDOM.normal(0, 3, (2, *shape)).astype("float32")
    found = recipes.symmetric_divergence(one, other).numpy()
    np.testing.assert_allclose(found, divergence(one, other), rtol=1e-4, atol=1e-6)
    masked = np.concatenate([one, np.full_like(one[..., :1], -1e9)], axis=-1)
    again = np.concatenate([other, np.full_like(other[..., :1], -1e9)], axis=-1)
    np.testing.assert_allclose(recipes.symmetric_divergence(masked, again), found, rtol=1e-5)


class TwoFaced(Trainer):
    """Gives one table of logits in the first pass over a batch and another in the second."""

    def __init__(self, names, tables):
        super().__init__()
        self.names, self.passes = names, 0
        self.tables = [
            self.add_weight(
                name=f"t{i}", shape=table.shape, initializer=lambda s, dtype, t=table: t
            )
            for i, table in enumerate(tables)
        ]

    def call(self, inputs, training=False):
        table = self.tables[self.passes % len(self.tables)]
        self.passes += 1
        logits = tf.gather(tf.convert_to_tensor(table), inputs["row"])
        return {name: logits[:, i] for i, name in enumerate(self.names)} if self.names else logits


def crossentropy(logits):
    return -np.log(softmax(logits)[np.arange(len(Y)), Y])


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("weights", [None, W], ids=["unweighted", "weighted"])
def test_r_drop_is_that_of_numpy(weights, micro_batches):
    one, other = RANDOM.normal(0, 2, (2, 8, 3)).astype("float32")
    model = TwoFaced((), [one, other])
    model.compile("sgd", CROSSENTROPY, r_drop=0.7, micro_batches=micro_batches, run_eagerly=True)
    loss = model.train_on_batch({"row": np.arange(8)}, Y, sample_weight=weights)
    rows = (crossentropy(one) + crossentropy(other)) / 2 + 0.7 * divergence(one, other)
    assert loss == pytest.approx(np.average(rows, weights=weights), rel=1e-5)


def test_r_drop_of_several_outputs():
    names, share = ("start", "end"), {"start": 0.5, "end": 0.25}
    tables = RANDOM.normal(0, 2, (2, 8, 2, 3)).astype("float32")
    model = TwoFaced(names, list(tables))
    losses = dict.fromkeys(names, CROSSENTROPY)
    model.compile("sgd", losses, loss_weights=share, r_drop=0.7, run_eagerly=True)
    data = tf.data.Dataset.from_tensors(({"row": np.arange(8)}, dict.fromkeys(names, Y)))
    log = model.fit(data, verbose=0).history
    wanted = 0.0
    for i, name in enumerate(names):
        one, other = tables[:, :, i]
        mean = (crossentropy(one).mean() + crossentropy(other).mean()) / 2
        assert log[f"{name}_loss"][0] == pytest.approx(mean, rel=1e-5)
        wanted += share[name] * (mean + 0.7 * divergence(one, other).mean())
    assert log["loss"][0] == pytest.approx(wanted, rel=1e-5)


def trained(config, epochs=2, **recipe):
    keras.utils.set_random_seed(1)
    model = BertClassifier(config, 2)
    model.compile(keras.optimizers.SGD(0.1), jit_compile=False, **recipe)
    data = tf.data.Dataset.from_tensor_slices((X, Y, W)).batch(4)
    losses = model.fit(data, epochs=epochs, verbose=0).history["loss"]
    return np.concatenate([w.ravel() for w in model.get_weights()]), losses


def test_nothing_asked_for_is_plain_training_bit_for_bit():
    plain, losses = trained(SHALLOW)
    for recipe in ({"r_drop": 0.0, "adversarial": 0.0}, {"micro_batches": 1}):
        weights, found = trained(SHALLOW, **recipe)
        np.testing.assert_array_equal(weights, plain)
        assert found == losses


def test_a_perturbation_has_the_length_epsilon():
    gradient = RANDOM.normal(0, 1, (3, 4, 5)).astype("float32")
    gradient[1] = 0.0
    gradient[2] *= 1e-30
    moved = recipes.perturbation(tf.constant(gradient), 0.5).numpy()
    np.testing.assert_allclose(np.linalg.norm(moved.reshape(3, -1), axis=1), [0.5, 0, 0.5], 1e-5)
    cosine = (moved[0] * gradient[0]).sum() / 0.5 / np.linalg.norm(gradient[0])
    assert cosine == pytest.approx(1, rel=1e-5)


def test_adversarial_training_climbs_where_the_definition_says():
    _, (plain,) = trained(CALM, epochs=1)
    _, (ours,) = trained(CALM, epochs=1, adversarial=1.0)
    assert ours > plain + 1e-3
    keras.utils.set_random_seed(1)
    model = BertClassifier(CALM, 2)
    model.compile(keras.optimizers.SGD(0.0), adversarial=1.0, run_eagerly=True)
    before = model.get_weights()
    first = {"token_ids": X["token_ids"][:4]}
    loss = model.train_on_batch(first, Y[:4])[0]
    assert all(map(np.array_equal, model.get_weights(), before))
    layer = model.encoder.embeddings
    assert layer.change_tokens is None
    table = layer.token.embeddings.numpy()
    tokens = tf.Variable(table[first["token_ids"]])
    with tf.GradientTape() as tape, recipes.changed_embeddings(model, lambda _: tokens + 0.0):
        clean = tf.reduce_mean(CROSSENTROPY(Y[:4], model(first)))
    gradient = tape.gradient(clean, tokens).numpy()
    tokens.assign_add(gradient / np.linalg.norm(gradient.reshape(4, -1), axis=1)[:, None, None])
    with recipes.changed_embeddings(model, lambda _: tokens + 0.0):
        moved = tf.reduce_mean(CROSSENTROPY(Y[:4], model(first)))
    assert loss == pytest.approx((float(clean) + float(moved)) / 2, rel=1e-5)


def test_a_short_perturbation_is_plain_training():
    plain, losses = trained(CALM)
    weights, found = trained(CALM, adversarial=1e-7)
    np.testing.assert_allclose(weights, plain, atol=1e-6)
    np.testing.assert_allclose(found, losses, rtol=1e-5)


def test_what_is_refused():
    for values, message in [
        ((0, 0, 0), "micro_batches must be at least 1, got 0"),
        ((1, -1, 0), "r_drop must be at least 0 and finite, got -1"),
        ((1, 0, float("nan")), "adversarial must be at least 0 and finite, got nan"),
        ((1, 0.5, 1.0), r"expected r_drop or adversarial, got both \(0.5 and 1.0\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_recipe(*values)
    one = TwoFaced((), [np.zeros((8, 1), "float32")])
    one.compile("sgd", "mse", r_drop=1.0, run_eagerly=True)
    with pytest.raises(ValueError, match="there is one output"):
        one.train_on_batch({"row": np.arange(8)}, np.zeros((8, 1)))
    one.compile("sgd", "mse", adversarial=1.0, run_eagerly=True)
    with pytest.raises(ValueError, match="adversarial: TwoFaced has no BertEmbeddings"):
        one.train_on_batch({"row": np.arange(8)}, np.zeros((8, 1)))


def test_jax_refuses_with_a_message():
    from keras_bert_impl.trainer import jax

    for recipe in ({"r_drop": 0.5}, {"adversarial": 1.0}):
        with pytest.raises(ValueError, match="is for the TensorFlow backend, not for JAX"):
            jax.Trainer().compile("sgd", "mse", **recipe)
