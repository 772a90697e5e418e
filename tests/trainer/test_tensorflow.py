"""The trainer on one TensorFlow device: gradients, weighted losses, and what Keras users do."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.models import BertClassifier
from keras_bert_impl.trainer import ClipAfterReduction, Trainer
from keras_bert_impl.training import AdamW, load_model
from tests.checks import CONFIG

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tests the TensorFlow trainer"
)
if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    from keras_bert_impl.trainer.tensorflow import PRIVATE_KERAS_NAMES
    from keras_bert_impl.trainer.tensorflow_optimizer import check_optimizer, optimizer_gaps

SHALLOW = CONFIG.replace(num_hidden_layers=1)
CALM = SHALLOW.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
X = {"token_ids": np.random.default_rng(0).integers(1, 30, (14, 5)).astype("int32")}
Y = np.array([0, 1] * 7, "int32")
W = np.array([0, 3, 0.5, 0, 1, 7, 0.1, 2, 0, 1, 1, 4, 0, 0.3], "float32")


@keras.saving.register_keras_serializable("tests")
class Tiny(Trainer):
    """A classifier that is quick to trace."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.table = keras.layers.Embedding(30, 4)
        self.head = keras.layers.Dense(2)
        self.table.build((None, None))
        self.head.build((None, 4))

    def call(self, inputs, training=False):
        return self.head(ops.mean(self.table(inputs["token_ids"]), axis=1))


CROSSENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def tiny(optimizer="sgd", **kwargs) -> Tiny:
    keras.utils.set_random_seed(1)
    model = Tiny()
    model.compile(optimizer, loss=CROSSENTROPY, metrics=["accuracy"], **kwargs)
    return model


def classifier(optimizer, config=CALM, dtype=None, **kwargs) -> BertClassifier:
    keras.utils.set_random_seed(1)
    model = BertClassifier(config, 2, dtype=dtype)
    model.compile(optimizer, **kwargs)
    return model


def row_losses(model, x=X, y=Y) -> np.ndarray:
    logits = ops.convert_to_numpy(model(x)).astype("float64")
    return np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(len(y)), y]


@pytest.mark.parametrize("private", ["model", "optimizer"])
def test_private_names_of_keras_are_still_there(private):
    kind = {"model": keras.Model, "optimizer": keras.optimizers.Optimizer}[private]
    gone = [name for name in PRIVATE_KERAS_NAMES[kind] if not hasattr(kind, name)]
    instance = {"model": Trainer, "optimizer": keras.optimizers.SGD}[private]()
    gone = [name for name in gone if not hasattr(instance, name)]
    assert not gone, (
        f"keras {keras.__version__} has no {kind.__name__}.{gone}: see what it became, adapt "
        " keras_bert_impl/trainer/tensorflow*.py, then the bound on keras in pyproject.toml"
    )


class Sums(Trainer):
    """The sum of the vectors of all tokens of a row; its gradients can be written by hand."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(6, 3)
        self.table.build((None, None))
        self.table.set_weights([np.random.default_rng(0).normal(size=(6, 3))])

    def call(self, token_ids, training=False):
        return ops.sum(self.table(token_ids), axis=1)


IDS = np.array([[1, 1, 2], [2, 5, 5], [1, 1, 1]], "int32")
TARGETS = np.random.default_rng(1).normal(size=(3, 3)).astype("float32")


def adamw_by_hand(steps, rate, decay, clip, stock) -> np.ndarray:
    """AdamW on dense gradients of the mean squared error of `Sums`, in float64."""
    table = np.random.default_rng(0).normal(size=(6, 3)).astype("float32").astype("float64")
    m, v = np.zeros_like(table), np.zeros_like(table)
    for step in range(1, steps + 1):
        gradient = np.zeros_like(table)
        for ids, target in zip(IDS, TARGETS, strict=True):
            for token in ids:
                gradient[token] += 2 * (table[ids].sum(axis=0) - target) / TARGETS.size
        if clip is not None:
            gradient *= min(1, clip / np.sqrt((gradient**2).sum()))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        # Keras' own form adds epsilon to the root before it is corrected.
        epsilon = 1e-6 / np.sqrt(1 - 0.999**step) if stock else 1e-6
        table -= rate * decay * table
        table -= rate * m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + epsilon)
    return table


@pytest.mark.parametrize("kind", ["ours", "eager", "XLA", "accumulating", "stock", "functional"])
def test_repeated_token_ids_have_one_dense_gradient(kind):
    stock = kind == "stock"
    model = Sums()
    table = model.table
    if kind == "functional":
        inputs = keras.Input((3,), dtype="int32")
        model = keras.Model(inputs, ops.sum(table(inputs), axis=1))
    if stock:
        optimizer = keras.optimizers.AdamW(
            0.1, weight_decay=0.01, epsilon=1e-6, global_clipnorm=0.5
        )
    else:
        every = 2 if kind == "accumulating" else None
        optimizer = AdamW(0.1, global_clipnorm=0.5, gradient_accumulation_steps=every)
    model.compile(optimizer, loss="mse", run_eagerly=kind == "eager", jit_compile=kind == "XLA")
    epochs = 10 if kind == "accumulating" else 5
    model.fit(IDS, TARGETS, epochs=epochs, batch_size=3, shuffle=False, verbose=0)
    # Keras' own AdamW rounds 1 - 0.999^t to six digits.
    expected = adamw_by_hand(5, 0.1, 0.01, 0.5, stock)
    np.testing.assert_allclose(table.get_weights()[0], expected, atol=1e-5 if stock else 1e-6)


def test_what_a_stock_optimizer_lacks_is_logged(caplog):
    tiny(keras.optimizers.AdamW(1e-3))
    assert "AdamW: decays LayerNorm weights and biases too" in caplog.text
    caplog.clear()
    tiny(AdamW(1e-3))
    tiny("adam")
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


class TwoReplicas:
    num_replicas_in_sync = 2


def test_what_fails_under_a_strategy_is_logged():
    gaps = optimizer_gaps(keras.optimizers.Adam(clipnorm=1.0), TwoReplicas)
    assert gaps == ["clips each replica's gradient before the reduction, not the global gradient"]
    averaging = {"use_ema": True, "ema_overwrite_frequency": 2}
    gaps = optimizer_gaps(keras.optimizers.Adam(**averaging), TwoReplicas)
    assert gaps == ["Keras' ema_overwrite_frequency fails under a strategy"]
    assert not optimizer_gaps(keras.optimizers.Adam(use_ema=True), TwoReplicas)
    assert not optimizer_gaps(AdamW(**averaging), TwoReplicas)
    assert issubclass(AdamW, ClipAfterReduction)


@pytest.mark.parametrize("optimizer", [keras.optimizers.Adam, AdamW])
def test_accumulation_by_keras_is_refused_under_a_strategy(optimizer):
    accumulating = optimizer(gradient_accumulation_steps=2)
    with pytest.raises(ValueError, match=r"give compile\(\.\.\., micro_batches=2\)"):
        check_optimizer(accumulating, TwoReplicas)
    for fine in (None, optimizer(), keras.optimizers.LossScaleOptimizer(optimizer())):
        check_optimizer(fine, TwoReplicas)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_averages_of_weights_with_accumulation_by_keras(run_eagerly):
    options = {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 1}
    model = tiny(AdamW(1e-2, gradient_accumulation_steps=2, **options), run_eagerly=run_eagerly)
    before = model.get_weights()
    model.fit(X, Y, batch_size=2, verbose=0)
    change = [np.abs(a - b).max() for a, b in zip(before, model.get_weights(), strict=True)]
    assert 0 < max(change) < 0.1


def test_uneven_micro_batches_eagerly():
    weights = []
    for run_eagerly in (False, True):
        model = tiny(AdamW(1e-2), micro_batches=3, run_eagerly=run_eagerly)
        model.fit(X, Y, batch_size=len(Y) - 1, shuffle=False, verbose=0)
        weights.append(model.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_the_loss_is_the_weighted_mean():
    model = tiny(keras.optimizers.SGD(0.0))
    losses = row_losses(model)
    history = model.fit(X, Y, sample_weight=W, batch_size=4, verbose=0).history
    assert history["loss"][0] == pytest.approx((W * losses).sum() / W.sum(), abs=1e-6)
    history = model.fit(X, Y, class_weight={0: 3.0, 1: 0.25}, batch_size=4, verbose=0).history
    weights = np.where(Y == 0, 3.0, 0.25)
    expected = (weights * losses).sum() / weights.sum()
    assert history["loss"][0] == pytest.approx(expected, abs=1e-6)


def test_evaluation_is_exact_over_an_uneven_last_batch():
    model = tiny()
    losses = row_losses(model)
    loss, accuracy = model.evaluate(X, Y, batch_size=4, verbose=0)
    logits = model.predict(X, batch_size=4, verbose=0)
    assert logits.shape == (14, 2)
    assert loss == pytest.approx(losses.mean(), abs=1e-6)
    assert accuracy == pytest.approx((logits.argmax(axis=-1) == Y).mean())
    loss, _ = model.evaluate(X, Y, sample_weight=W, batch_size=4, verbose=0)
    assert loss == pytest.approx((W * losses).sum() / W.sum(), abs=1e-6)


def test_rows_of_weight_0_change_nothing():
    real = np.flatnonzero(W)
    all_rows, only_real = tiny(), tiny()
    all_rows.train_on_batch(X, Y, sample_weight=W)
    only_real.train_on_batch({"token_ids": X["token_ids"][real]}, Y[real], sample_weight=W[real])
    for a, b in zip(all_rows.get_weights(), only_real.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    loss, _ = all_rows.test_on_batch(X, Y, sample_weight=W)
    expected = (W * row_losses(all_rows)).sum() / W.sum()
    assert float(loss) == pytest.approx(expected, abs=1e-6)
    before = all_rows.get_weights()
    logs = all_rows.train_on_batch(X, Y, sample_weight=np.zeros(14, "float32"))
    assert np.isfinite(np.array(logs)).all()
    for a, b in zip(before, all_rows.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_callbacks(tmp_path):
    model = tiny(AdamW(1e-2))
    path = tmp_path / "best.keras"
    callbacks = [
        keras.callbacks.ModelCheckpoint(path, monitor="val_loss", save_best_only=True),
        keras.callbacks.EarlyStopping(
            monitor="loss", mode="max", patience=1, restore_best_weights=True
        ),
        keras.callbacks.TerminateOnNaN(),
    ]
    train = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    history = model.fit(
        train, validation_data=train.take(2), epochs=9, callbacks=callbacks, verbose=0
    ).history
    assert len(history["loss"]) < 9
    best = load_model(path)
    scores = best.evaluate(train.take(2), verbose=0)
    np.testing.assert_allclose(
        scores,
        [min(history["val_loss"]), history["val_accuracy"][np.argmin(history["val_loss"])]],
        atol=1e-6,
    )


def test_terminate_on_nan():
    model = tiny(keras.optimizers.SGD(float("nan")))
    callbacks = [keras.callbacks.TerminateOnNaN()]
    history = model.fit(X, Y, batch_size=4, epochs=3, callbacks=callbacks, verbose=0).history
    assert len(history["loss"]) == 1
    assert np.isnan(history["loss"][0])


def test_other_ways_to_run_give_the_same_weights():
    weights = []
    for options in ({}, {"run_eagerly": True}, {"jit_compile": True}):
        model = classifier(AdamW(1e-2), **options)
        model.fit(X, Y, sample_weight=W, batch_size=7, epochs=2, shuffle=False, verbose=0)
        weights.append(model.get_weights())
    for plain, eager, compiled in zip(*weights, strict=True):
        np.testing.assert_allclose(plain, eager, atol=1e-5)
        np.testing.assert_allclose(plain, compiled, atol=1e-5)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_several_steps_an_execution_end_with_the_data(run_eagerly):
    weights = []
    for steps in (1, 4):
        model = tiny(AdamW(1e-2), steps_per_execution=steps, run_eagerly=run_eagerly)
        # Seven batches: a whole execution, and one that is cut short.
        history = model.fit(X, Y, batch_size=2, epochs=2, shuffle=False, verbose=0).history
        assert int(model.optimizer.iterations) == 14
        weights.append([*model.get_weights(), history["loss"]])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_mixed_float16_scales_the_loss():
    model = classifier(AdamW(1e-3), config=SHALLOW, dtype="mixed_float16")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    before = model.get_weights()
    history = model.fit(X, Y, batch_size=7, epochs=3, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert any(np.abs(a - b).max() > 0 for a, b in zip(before, model.get_weights(), strict=True))


def test_a_seed_makes_two_runs_equal():
    runs = []
    for _ in range(2):
        model = classifier(AdamW(1e-2), config=SHALLOW)
        runs.append(model.fit(X, Y, batch_size=4, epochs=2, verbose=0).history["loss"])
    assert runs[0] == runs[1]


def test_fit_on_a_dataset_does_not_warn_of_shuffling(recwarn):
    tiny().fit(tf.data.Dataset.from_tensors((X, Y)), verbose=0)
    assert not [warning for warning in recwarn if "shuffle" in str(warning.message)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_step_is_traced_once(optimizer):
    traced = []

    class Counting(Tiny):
        def call(self, inputs, training=False):
            traced.append(training)
            return super().call(inputs, training=training)

        def compute_output_spec(self, inputs, training=False):
            return keras.KerasTensor((*inputs["token_ids"].shape[:1], 2), "float32")

    model = Counting()
    model.build(None)
    model.compile(optimizer, loss=CROSSENTROPY, metrics=["accuracy"], jit_compile=False)
    model.fit(X, Y, epochs=2, batch_size=7, validation_data=(X, Y), verbose=0)
    assert traced == [True, False]
