"""Parts of a batch, one after the other, make the step of the whole batch."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.trainer import Trainer
from keras_bert_impl.training import AdamW

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tests the TensorFlow trainer"
)
if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

ROWS, POSITIONS = 20, 3
RANDOM = np.random.default_rng(0)
X = {"token_ids": RANDOM.integers(1, 30, (ROWS, 5)).astype("int32")}
Y = {
    "tokens": RANDOM.integers(0, 4, (ROWS, POSITIONS)).astype("int32"),
    "row": RANDOM.integers(0, 2, ROWS).astype("int32"),
}
W = {
    "tokens": (RANDOM.uniform(0, 3, (ROWS, POSITIONS)) ** 3).astype("float32"),
    "row": RANDOM.uniform(0, 1, ROWS).astype("float32"),
}
W["tokens"][:5] = 0.0
W["row"][10:12] = 0.0


class TwoLosses(Trainer):
    """One output a token slot and one a row, and a loss of a layer."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(30, 4)
        self.tokens = keras.layers.Dense(POSITIONS * 4, kernel_regularizer="l2")
        self.row = keras.layers.Dense(2)
        self.table.build((None, None))
        self.tokens.build((None, 4))
        self.row.build((None, 4))

    def call(self, inputs, training=False):
        pooled = ops.mean(self.table(inputs["token_ids"]), axis=1)
        tokens = ops.reshape(self.tokens(pooled), (-1, POSITIONS, 4))
        return {"tokens": tokens, "row": self.row(pooled)}


def train(weights, micro_batches, batch_size=8):
    keras.utils.set_random_seed(1)
    model = TwoLosses()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        AdamW(1e-2, global_clipnorm=0.5),
        loss={"tokens": loss, "row": loss},
        weighted_metrics={"tokens": ["accuracy"], "row": ["accuracy"]},
        micro_batches=micro_batches,
    )
    data = tf.data.Dataset.from_tensor_slices((X, Y, weights) if weights else (X, Y))
    history = model.fit(data.batch(batch_size), epochs=2, verbose=0).history
    return np.concatenate([w.ravel() for w in model.get_weights()]), history


@pytest.mark.parametrize("micro_batches", [2, 4])
@pytest.mark.parametrize("weights", [None, W], ids=["unweighted", "weighted"])
def test_the_step_is_that_of_the_whole_batch(weights, micro_batches):
    # Of 20 rows the last batch has 4.
    expected, history = train(weights, 1)
    ours, our_history = train(weights, micro_batches)
    np.testing.assert_allclose(ours, expected, atol=1e-6)
    for name in ("loss", "tokens_accuracy", "row_accuracy"):
        np.testing.assert_allclose(our_history[name], history[name], atol=1e-6)


def test_a_static_batch_must_divide():
    keras.utils.set_random_seed(1)
    model = TwoLosses()
    model.compile("sgd", loss={"tokens": "mse", "row": "mse"}, micro_batches=3)
    data = tf.data.Dataset.from_tensor_slices(
        (X, {"tokens": np.zeros((ROWS, 3, 4)), "row": np.zeros((ROWS, 2))})
    )
    with pytest.raises(ValueError, match="8 rows a replica cannot be cut into micro_batches=3"):
        model.fit(data.batch(8, drop_remainder=True), verbose=0)


def test_less_than_one_part_is_refused():
    with pytest.raises(ValueError, match="micro_batches must be at least 1, got 0"):
        TwoLosses().compile("sgd", micro_batches=0)
