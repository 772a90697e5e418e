"""Run by test_jax.py with Keras' JAX backend and four CPU devices; prints JSON.

python -m tests.trainer.jax_cases DISTRIBUTION FOLDER: none, data or model; FOLDER gets the weights.
"""

from __future__ import annotations

import json
import sys

import keras
import numpy as np

from keras_bert_impl.training.layouts import layout_map
from tests.trainer.cases import Case, batches, flat_weights, make_model

CASES = {
    "pretrainer": Case(),
    "pretrainer: clip, ema, lamb": Case(optimizer="lamb", global_clipnorm=0.1, ema=True),
    "classifier": Case("classifier", global_clipnorm=0.1),
}


def distribute(kind: str) -> None:
    devices = keras.distribution.list_devices("cpu")
    assert len(devices) == 4
    if kind == "data":
        keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
    elif kind == "model":
        mesh = keras.distribution.DeviceMesh((2, 2), ("batch", "model"), devices)
        keras.distribution.set_distribution(
            keras.distribution.ModelParallel(layout_map=layout_map(mesh), batch_dim_name="batch")
        )


def spread(model) -> int:
    """How many weights are cut over devices."""
    shards = [v.value.addressable_shards[0].data.shape for v in model.weights]
    return sum(shard != v.shape for shard, v in zip(shards, model.weights, strict=True))


def train(case: Case) -> tuple[keras.Model, dict]:
    model = make_model(case)
    before = flat_weights(model)
    for inputs, targets, weights in batches(case.kind):
        model.train_on_batch(inputs, targets, sample_weight=weights)
    return model, {
        "before": before,
        "weights": flat_weights(model),
        "iterations": int(np.asarray(model.optimizer.iterations)),
        "cut": spread(model),
    }


def main() -> None:
    kind, folder = sys.argv[1:]
    distribute(kind)
    found = {}
    for name, case in CASES.items():
        model, found[name] = train(case)
        if name == "pretrainer":
            model.save_weights(f"{folder}/{kind}.weights.h5")
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
