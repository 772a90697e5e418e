"""Time of a step of our `fit` beside that of a plain `keras.Model` with the same layers.

    python benchmarks/fit_step.py [--size mini] [--rounds 7]

Both classify the same padded batches of random tokens on one device. The plain model is
functional: our encoder and head in a `keras.Model`, with `keras.optimizers.AdamW`, clipping by the
global norm and no XLA. Rounds are interleaved; the median of the ratios counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

RATE, DECAY, CLIP = 5e-5, 0.01, 1.0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="mini", help="a key of keras_bert_impl.config.SIZES")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=12, help="steps a round")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def batches(arguments, vocab_size: int):
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    rows = arguments.batch * arguments.steps
    shape = (rows, arguments.length)
    lengths = rng.integers(arguments.length // 2, arguments.length + 1, (rows, 1))
    mask = (np.arange(arguments.length) < lengths).astype("int32")
    features = {
        "token_ids": rng.integers(1000, vocab_size, shape).astype("int32") * mask,
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": mask,
    }
    labels = rng.integers(0, 2, rows).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    return dataset.batch(arguments.batch, drop_remainder=True).cache()


def our_model(config):
    from keras_bert_impl import AdamW, BertClassifier

    model = BertClassifier(config, num_classes=2)
    model.compile(AdamW(RATE, weight_decay=DECAY, global_clipnorm=CLIP), jit_compile=False)
    return model


def plain_model(config):
    import keras

    from keras_bert_impl import BertEncoder

    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    pooled = BertEncoder(config)(inputs)["pooled_output"]
    logits = keras.layers.Dense(2)(keras.layers.Dropout(config.hidden_dropout_prob)(pooled))
    model = keras.Model(inputs, logits)
    model.compile(
        keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=1e-6, global_clipnorm=CLIP),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


def main():
    arguments = parse_arguments()
    import keras

    from keras_bert_impl.config import SIZES

    config = SIZES[arguments.size]
    keras.utils.set_random_seed(0)
    data = batches(arguments, config.vocab_size)
    models = {"ours": our_model(config), "plain": plain_model(config)}
    for model in models.values():
        model.fit(data, verbose=0)
    seconds = {name: [] for name in models}
    for _ in range(arguments.rounds):
        for name, model in models.items():
            start = time.perf_counter()
            model.fit(data, verbose=0)
            seconds[name].append((time.perf_counter() - start) / arguments.steps)
    ratios = [ours / plain for ours, plain in zip(*seconds.values(), strict=True)]
    print(
        json.dumps(
            {
                "size": arguments.size,
                "ms_a_step": {n: round(1e3 * statistics.median(s), 1) for n, s in seconds.items()},
                "ours/plain": round(statistics.median(ratios), 3),
                "ratios": [round(ratio, 3) for ratio in ratios],
            }
        )
    )


if __name__ == "__main__":
    main()
