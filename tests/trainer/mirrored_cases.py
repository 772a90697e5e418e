"""Run by test_mirrored.py in a process with that many CPU devices; prints JSON."""

from __future__ import annotations

import json
import sys

import keras
import tensorflow as tf

from keras_bert_impl.training.strategies import distribute, make_strategy
from tests.trainer.cases import EVERYTHING, STEPS, Case, batches, flat_weights, make_model

CASES = {
    "pretrainer: adamw": Case(),
    "pretrainer: lamb": Case(optimizer="lamb"),
    "pretrainer: bfloat16": Case(dtype="mixed_bfloat16"),
    "pretrainer: clip, ema": Case(global_clipnorm=0.1, ema=True),
    "pretrainer: everything": Case(**EVERYTHING),
    "classifier: clip, ema": Case("classifier", global_clipnorm=0.1, ema=True, adversarial=0.3),
    "classifier: everything": Case("classifier", **EVERYTHING, adversarial=0.3),
    # Without dropout, which would differ, the divergence is 0.
    "classifier: r_drop": Case("classifier", r_drop=1.0),
}
# What must give the same as another case on one device: whole batches, one step at a time.
ALIKE = {name: name.replace("everything", "clip, ema") for name in CASES if "everything" in name}
# What runs on how many replicas; micro-batches on four take long to trace.
# One process has one strategy: its collectives are counted.
RUNS = {
    1: [name for name in CASES if name not in ALIKE],
    2: [name for name in CASES if "clip, ema" not in name],
    4: [*ALIKE.values(), "classifier: r_drop"],
}


def dataset(kind: str) -> tf.data.Dataset:
    steps = list(batches(kind))
    stacked = keras.tree.map_structure(lambda *values: tf.stack(values), *steps)
    return tf.data.Dataset.from_tensor_slices(stacked).repeat()


def train(case: Case, strategy) -> dict:
    with strategy.scope():
        model = make_model(case)
    before = flat_weights(model)
    data = distribute(strategy, lambda rank, world: dataset(case.kind))
    log = model.fit(data, steps_per_epoch=STEPS, epochs=1, verbose=0).history
    return {
        "before": before,
        "weights": flat_weights(model),
        "iterations": int(keras.ops.convert_to_numpy(model.optimizer.iterations)),
        "log": {name: values[0] for name, values in log.items()},
    }


def main() -> None:
    replicas = int(sys.argv[1])
    devices = [tf.config.LogicalDeviceConfiguration()] * replicas
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    strategy = make_strategy("none" if replicas == 1 else "mirrored")
    json.dump({name: train(CASES[name], strategy) for name in RUNS[replicas]}, sys.stdout)


if __name__ == "__main__":
    main()
