"""Fine-tuning on SST-2, beside transformers + torch with the same recipe.

    python benchmarks/finetuning.py epoch --data FOLDER/SST-2 --contender ours
    python benchmarks/finetuning.py epoch --data FOLDER/SST-2 --contender torch --batches random
    python benchmarks/finetuning.py epoch --data FOLDER/SST-2 --contender torch
    python benchmarks/finetuning.py race --data FOLDER/SST-2
    python benchmarks/finetuning.py padding --data FOLDER/SST-2

`epoch` trains once over the training set and prints the accuracy on the dev set and the wall time
of training. Batches are `random`, each padded to its longest row as the Trainer of transformers
does, or `bucketed` by length as ours are. `race` is an epoch of both, each in its own process,
which take turns of 20 seconds: a machine that is slow at times is so for both. `padding` times the
same rows bucketed by length and padded to 128, in interleaved rounds on a sample of the batches.
Recipe: batch 32, peak rate 5e-5, warm-up over a tenth of the steps, AdamW with weight decay 0.01
and epsilon 1e-6, global-norm clip 1.0, at most 64 tokens.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

BATCH = 32
RATE = 5e-5
MAX_LENGTH = 64
PADDED = 128
TURN = 20  # seconds


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("epoch", "race", "padding"))
    parser.add_argument("--data", type=Path, required=True, help="folder of train.tsv, dev.tsv")
    parser.add_argument("--weights", default="minilm")
    parser.add_argument("--contender", choices=("ours", "torch"), default="ours")
    parser.add_argument("--batches", choices=("bucketed", "random"), default="bucketed")
    parser.add_argument("--dtype", default="float32", choices=("float32", "mixed_bfloat16"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=24, help="batches of `padding`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser.parse_args()


def read(arguments, tokenizer, name):
    """(encoded texts, int32 labels) of a file."""
    from keras_bert_impl.data.encoding import encode_texts
    from keras_bert_impl.data.labels import encode_labels
    from keras_bert_impl.data.readers import read_labelled

    examples = read_labelled(arguments.data / name)
    texts = encode_texts(tokenizer, examples.texts, max_length=MAX_LENGTH)
    return texts, encode_labels(examples, ("0", "1"))


def datasets(arguments):
    """Shuffled training batches, and dev batches sorted by length."""
    from keras_bert_impl import BertTokenizer
    from keras_bert_impl.data.batches import bucketed_batches, length_sorted_batches

    tokenizer = BertTokenizer.from_pretrained(arguments.weights)
    texts, labels = read(arguments, tokenizer, "train.tsv")
    train = bucketed_batches(
        None,
        texts,
        labels=labels,
        batch_size=BATCH,
        shuffle=True,
        seed=arguments.seed,
        pool_batches=1 if arguments.batches == "random" else 100,
    )
    texts, labels = read(arguments, tokenizer, "dev.tsv")
    dev, _ = length_sorted_batches(None, texts, labels=labels, batch_size=BATCH)
    return train, dev


def our_model(arguments, steps):
    import keras

    from keras_bert_impl import AdamW, BertClassifier, WarmupLinearDecay

    keras.utils.set_random_seed(arguments.seed)
    model = BertClassifier.from_pretrained(arguments.weights, num_classes=2, dtype=arguments.dtype)
    model.compile(AdamW(WarmupLinearDecay(RATE, steps)), jit_compile=False)
    return model


def train_ours(arguments, train, dev):
    model = our_model(arguments, int(train.cardinality()))
    start = time.monotonic()
    model.fit(train, verbose=2)
    span = start, time.monotonic()
    return span, model.evaluate(dev, verbose=0, return_dict=True)["accuracy"]


def train_torch(arguments, train, dev):
    import torch
    from task_scores import TorchModel, torch_step

    torch.manual_seed(arguments.seed)
    model = TorchModel(arguments, "classification", 2)
    steps = int(train.cardinality())
    step = torch_step(model, RATE, steps, steps // 10)
    model.train()
    start = time.monotonic()
    for number, batch in enumerate(train.as_numpy_iterator()):
        loss = step(batch)
        if number % 500 == 0:
            print(f"step {number}: loss {loss:.3f}", flush=True)
    span = start, time.monotonic()
    model.eval()
    right = total = 0
    for features, labels in dev.as_numpy_iterator():
        right += int((model.predict_on_batch(features).argmax(-1) == labels).sum())
        total += len(labels)
    return span, right / total


def epoch(arguments):
    train, dev = datasets(arguments)
    run = {"ours": train_ours, "torch": train_torch}[arguments.contender]
    (start, end), accuracy = run(arguments, train, dev)
    seconds = round(end - start, 1)
    return {"seconds": seconds, "dev_accuracy": round(accuracy, 4), "span": (start, end)}


def race(arguments):
    """Seconds of training of each contender while it had the machine, and its accuracy."""
    names = ("ours", "torch")
    with tempfile.TemporaryDirectory() as folder:
        results = {name: Path(folder, f"{name}.json") for name in names}
        runs = {name: start_epoch(arguments, name, path) for name, path in results.items()}
        turns = take_turns(runs)
        found = {name: json.loads(path.read_text())["result"] for name, path in results.items()}
    for name, result in found.items():
        start, end = result.pop("span")
        held = [min(t, end) - max(s, start) for s, t in turns[name]]
        result["seconds"] = round(sum(seconds for seconds in held if seconds > 0), 1)
    return {**found, "torch/ours": round(found["torch"]["seconds"] / found["ours"]["seconds"], 3)}


def start_epoch(arguments, name: str, output: Path) -> subprocess.Popen:
    shared = ("data", "weights", "batches", "dtype", "seed")
    options = {key: getattr(arguments, key) for key in shared}
    options |= {"contender": name, "output": output}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    return subprocess.Popen([sys.executable, __file__, "epoch", *words])


def take_turns(runs: dict) -> dict:
    """Lets one process run at a time until all have ended; (start, end) of each one's turns."""
    turns = {name: [] for name in runs}
    for run in runs.values():
        run.send_signal(signal.SIGSTOP)
    while any(run.poll() is None for run in runs.values()):
        for name, run in runs.items():
            if run.poll() is not None:
                continue
            start = time.monotonic()
            run.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(TURN)
            run.send_signal(signal.SIGSTOP)
            turns[name].append((start, time.monotonic()))
    return turns


def padding(arguments):
    """Seconds of the same sampled rows, bucketed and padded to 128, and their ratio."""
    import numpy as np
    import tensorflow as tf

    train, _ = datasets(arguments)
    steps = int(train.cardinality())
    model = our_model(arguments, steps)
    sample = list(train.shard(max(steps // arguments.sample, 1), 0).take(arguments.sample))

    def padded(features, labels):
        width = PADDED - features["token_ids"].shape[1]
        return {k: tf.pad(v, [[0, 0], [0, width]]) for k, v in features.items()}, labels

    kinds = {"bucketed": sample, "padded": [padded(*batch) for batch in sample]}
    model.make_train_function()

    def run(batches):
        start = time.perf_counter()
        for features, labels in batches:
            model.train_function(iter([(features, labels)]))
        return time.perf_counter() - start

    for batches in kinds.values():
        run(batches[:3])
    times = {name: [] for name in kinds}
    for _ in range(arguments.rounds):
        for name, batches in kinds.items():
            times[name].append(run(batches))
    medians = {name: statistics.median(values) for name, values in times.items()}
    tokens = float(np.mean([b[0]["padding_mask"].numpy().sum() for b in sample]))
    ratio = medians["padded"] / medians["bucketed"]
    return {**medians, "padded/bucketed": round(ratio, 2), "tokens_a_batch": tokens}


def main():
    arguments = parse_arguments()
    result = {"epoch": epoch, "race": race, "padding": padding}[arguments.what](arguments)
    print(json.dumps(result))
    if arguments.output:
        settings = {key: str(value) for key, value in vars(arguments).items()}
        content = {"format_version": 1, "settings": settings, "result": result}
        arguments.output.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
