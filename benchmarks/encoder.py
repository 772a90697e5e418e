"""Forward pass and full train step of the encoder, beside KerasHub and transformers + torch.

    taskset -c 0 python benchmarks/encoder.py --threads 1 --output encoder.json

Every contender has the same shapes, data type, dropout and optimizer (AdamW, weight decay 0.01,
global-norm clip 1.0), classifies with 2 classes, and runs as its users run it: Keras models
through the function that `fit` calls, torch in eager mode. Rounds are interleaved; the table
holds medians and the ratio peer / ours (above 1: ours is faster).
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import time
from pathlib import Path

VOCABULARY = 30522


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="base,small", help="names in keras_bert_impl.SIZES")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--what", default="forward,train")
    parser.add_argument("--peers", default="keras_hub,torch")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser.parse_args()


def batch_of(arguments):
    import numpy as np

    rng = np.random.default_rng(0)
    shape = (arguments.batch, arguments.length)
    return rng.integers(1000, VOCABULARY, shape, dtype="int32"), np.arange(shape[0]) % 2


def keras_steps(model, inputs, labels, optimizer, loss):
    """(forward, train step) of a Keras classifier, as `predict` and `fit` run them."""
    import tensorflow as tf

    model.compile(optimizer=optimizer, loss=loss)
    dataset = tf.data.Dataset.from_tensors((inputs, labels)).cache().repeat()
    iterator = iter(dataset)
    model.make_train_function()
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    any_length = {name: tf.TensorSpec([None, None], tf.int32) for name in inputs}
    forward = tf.function(lambda x: model(x, training=False), input_signature=[any_length])
    return lambda: forward(tensors), lambda: model.train_function(iterator)


def ours(config, dtype, ids, labels):
    import numpy as np

    from keras_bert_impl.models import BertClassifier
    from keras_bert_impl.training import AdamW

    model = BertClassifier(config, 2, dtype=_policy(dtype))
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    return keras_steps(model, inputs, labels, AdamW(5e-5), "auto")


def keras_hub(config, dtype, ids, labels):
    import keras
    import keras_hub as hub
    import numpy as np

    backbone = hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        max_sequence_length=config.max_position_embeddings,
        dtype=_policy(dtype),
    )
    model = hub.models.BertTextClassifier(
        backbone, num_classes=2, preprocessor=None, dtype=_policy(dtype)
    )
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    optimizer = keras.optimizers.AdamW(5e-5, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return keras_steps(model, inputs, labels, optimizer, loss)


def torch(config, dtype, ids, labels):
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    values = config.to_family("huggingface")
    model = BertForSequenceClassification(BertConfig(**values, num_labels=2))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-5, weight_decay=0.01, fused=True)
    ids, labels = torch.from_numpy(ids).long(), torch.from_numpy(labels)
    mask = torch.ones_like(ids)
    cast = torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16")

    def forward():
        model.eval()
        with torch.inference_mode(), cast:
            model(ids, attention_mask=mask)

    def train():
        model.train()
        with cast:
            loss = model(ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return forward, train


PEERS = {"keras_hub": keras_hub, "torch": torch}


def _policy(dtype):
    return "mixed_bfloat16" if dtype == "bfloat16" else dtype


def set_threads(count):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(count)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(count)


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(functions, rounds):
    """Median seconds of each function: two warm-up calls, then interleaved rounds."""
    for function in functions.values():
        function(), function()
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    arguments = parse_arguments()
    set_threads(arguments.threads)
    from keras_bert_impl.config import SIZES

    wanted = [name for name in arguments.peers.split(",") if name in PEERS]
    contenders = {"ours": ours}
    contenders |= {name: PEERS[name] for name in wanted if importlib.util.find_spec(name)}
    ids, labels = batch_of(arguments)
    rows = []
    for size in arguments.sizes.split(","):
        for dtype in arguments.dtypes.split(","):
            steps = {
                name: make(SIZES[size], dtype, ids, labels) for name, make in contenders.items()
            }
            for index, what in enumerate(("forward", "train")):
                if what in arguments.what.split(","):
                    functions = {name: pair[index] for name, pair in steps.items()}
                    rows.append((size, dtype, what, measure(functions, arguments.rounds)))
                    print_row(*rows[-1])
            del steps
            gc.collect()
    if arguments.output:
        write_json(arguments, rows)


def print_row(size, dtype, what, medians):
    cells = [f"{name} {value * 1e3:8.1f} ms" for name, value in medians.items()]
    ratios = [
        f"{name}/ours {value / medians['ours']:.2f}"
        for name, value in medians.items()
        if name != "ours"
    ]
    print(f"{size:>10} {dtype:>8} {what:>7} | " + " | ".join(cells + ratios), flush=True)


def write_json(arguments, rows):
    settings = {key: str(value) for key, value in vars(arguments).items()}
    results = [
        {"size": size, "dtype": dtype, "what": what, "seconds": medians}
        for size, dtype, what, medians in rows
    ]
    content = {"format_version": 1, "settings": settings, "results": results}
    arguments.output.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
