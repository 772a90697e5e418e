"""Run by test_strategies.py in a process with two logical CPU devices; prints JSON."""

from __future__ import annotations

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import Dropout
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.trainer import Trainer
from keras_bert_impl.training import AdamW

CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=6,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
ROWS, BATCH = 44, 4  # eleven batches: three executions of four steps, the last one short


def bert():
    return BertClassifier(CONFIG, 2)


def rows():
    random = np.random.default_rng(0)
    x = {"token_ids": random.integers(0, 20, (ROWS, 6)).astype("int32")}
    y = random.integers(0, 2, ROWS).astype("int32")
    w = random.uniform(0.0, 5.0, ROWS).astype("float32") ** 3
    w[2:4] = 0.0  # the second replica has nothing to learn from in the first batch
    w[8:12] = 0.0  # and nobody has in the third
    return x, y, w


def data(last=ROWS):
    dataset = tf.data.Dataset.from_tensor_slices(
        keras.tree.map_structure(lambda a: a[:last], rows())
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.batch(BATCH).with_options(options)


class Tiny(Trainer):
    """A classifier that is quick to trace."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(20, 4)
        self.head = keras.layers.Dense(2)
        self.table.build((None, None))
        self.head.build((None, 4))

    def call(self, inputs, training=False):
        return self.head(keras.ops.mean(self.table(inputs["token_ids"]), axis=1))


def train(strategy, make, steps_per_execution, micro_batches=1) -> dict:
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = make()
        model.compile(
            AdamW(1e-2, global_clipnorm=0.05),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=["accuracy"],
            steps_per_execution=steps_per_execution,
            micro_batches=micro_batches,
        )
    history = model.fit(data(), epochs=2, shuffle=False, verbose=0).history
    result = {
        "weights": np.concatenate([w.ravel() for w in model.get_weights()]).tolist(),
        "loss": history["loss"],
        "accuracy": history["accuracy"],
        "iterations": int(keras.ops.convert_to_numpy(model.optimizer.iterations)),
    }
    if make is Tiny:
        # Seven rows: a last batch of three, two of them on the first replica.
        result["scores"] = model.evaluate(data(7), verbose=0)
        result["predictions"] = model.predict(rows()[0], batch_size=BATCH, verbose=0).tolist()
    return result


class Pair(Trainer):
    """Two outputs, one with a target a row and one with three."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(20, 4)
        self.slots = keras.layers.Dense(6, kernel_regularizer="l2")
        self.row = keras.layers.Dense(2)
        self.table.build((None, None))
        self.slots.build((None, 4))
        self.row.build((None, 4))

    def call(self, inputs, training=False):
        x = keras.ops.mean(self.table(inputs["token_ids"]), axis=1)
        return {"slots": keras.ops.reshape(self.slots(x), (-1, 3, 2)), "row": self.row(x)}


def train_pair(strategy, steps_per_execution=1, micro_batches=1) -> dict:
    """The log of two epochs, and scores of seven rows: sums of weights differ between batches."""
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = Pair()
        crossentropy = keras.losses.SparseCategoricalCrossentropy
        model.compile(
            AdamW(1e-2),
            loss={name: crossentropy(from_logits=True) for name in ("slots", "row")},
            loss_weights={"slots": 1.0, "row": 2.0},
            weighted_metrics={"slots": ["accuracy"], "row": ["accuracy"]},
            steps_per_execution=steps_per_execution,
            micro_batches=micro_batches,
        )
    x, y, w = rows()
    slots = np.random.default_rng(1).integers(0, 2, (ROWS, 3)).astype("int32")
    weights = {"slots": (w[:, None] * [1, 0, 2]).astype("float32"), "row": np.ones(ROWS, "float32")}
    given = (x, {"slots": slots, "row": y}, weights)

    def batches(last):
        arrays = keras.tree.map_structure(lambda a: a[:last], given)
        options = tf.data.Options()
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        return tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH).with_options(options)

    log = model.fit(batches(ROWS), epochs=2, verbose=0).history
    return {"log": log, "scores": model.evaluate(batches(7), verbose=0, return_dict=True)}


def replica_masks(strategy) -> list:
    with strategy.scope():
        layer = Dropout(0.5, seed=3)
    run = tf.function(lambda: strategy.run(lambda: layer(tf.ones((8, 8)), training=True)))
    return [
        x.numpy().tolist() for _ in range(2) for x in strategy.experimental_local_results(run())
    ]


def refusal(strategy) -> str:
    with strategy.scope():
        model = BertClassifier(CONFIG, 2)
        try:
            model.compile("sgd", jit_compile=True)
        except ValueError as error:
            return str(error)
    return ""


def main() -> None:
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    result = {
        f"{make.__name__}, {replicas} replicas, {steps} steps": train(strategy, make, steps)
        for make, runs in ((Tiny, (1, 4)), (bert, (4,)))
        for replicas, strategy in ((1, one), (2, two))
        for steps in runs
    }
    result["Tiny, 2 replicas, 2 micro-batches"] = train(two, Tiny, 4, micro_batches=2)
    result["pairs"] = {
        "1 replica": train_pair(one),
        "2 replicas": train_pair(two),
        "2 replicas, 4 steps": train_pair(two, 4),
        "2 replicas, 2 micro-batches": train_pair(two, micro_batches=2),
    }
    result |= {"masks": replica_masks(two), "refusal": refusal(two)}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
