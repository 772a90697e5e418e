"""Fine-tuning on SST-2, beside transformers + torch with the same recipe.

    python benchmarks/finetuning.py epoch --data FOLDER/SST-2 --contender ours
    python benchmarks/finetuning.py epoch --data FOLDER/SST-2 --contender torch --batches random
    python benchmarks/finetuning.py epoch --data FOLDER/SST-2 --contender torch
    python benchmarks/finetuning.py padding --data FOLDER/SST-2

`epoch` trains once over the training set and prints the accuracy on the dev set and the wall time
of training. Batches are `random`, each padded to its longest row as the Trainer of transformers
does, or `bucketed` by length as ours are. `padding` times the same rows bucketed by length and
padded to 128, in interleaved rounds on a sample of the batches. Recipe: batch 32, peak rate 5e-5,
warm-up over a tenth of the steps, AdamW with weight decay 0.01 and epsilon 1e-6, global-norm clip
1.0, at most 64 tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

BATCH = 32
RATE = 5e-5
MAX_LENGTH = 64
PADDED = 128


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("epoch", "padding"))
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


def our_model(arguments, steps, **options):
    import keras

    from keras_bert_impl import AdamW, BertClassifier, WarmupLinearDecay

    keras.utils.set_random_seed(arguments.seed)
    model = BertClassifier.from_pretrained(arguments.weights, num_classes=2, dtype=arguments.dtype)
    model.compile(AdamW(WarmupLinearDecay(RATE, steps)), jit_compile=False, **options)
    return model


def train_ours(arguments, train, dev):
    model = our_model(arguments, int(train.cardinality()), steps_per_execution=8)
    start = time.perf_counter()
    model.fit(train, verbose=2)
    seconds = time.perf_counter() - start
    return seconds, model.evaluate(dev, verbose=0, return_dict=True)["accuracy"]


def train_torch(arguments, train, dev):
    import torch
    from task_scores import TorchModel, torch_step

    torch.manual_seed(arguments.seed)
    model = TorchModel(arguments, "classification", 2)
    steps = int(train.cardinality())
    step = torch_step(model, RATE, steps, steps // 10)
    model.train()
    start = time.perf_counter()
    for number, batch in enumerate(train.as_numpy_iterator()):
        loss = step(batch)
        if number % 500 == 0:
            print(f"step {number}: loss {loss:.3f}", flush=True)
    seconds = time.perf_counter() - start
    model.eval()
    right = total = 0
    for features, labels in dev.as_numpy_iterator():
        right += int((model.predict_on_batch(features).argmax(-1) == labels).sum())
        total += len(labels)
    return seconds, right / total


def epoch(arguments):
    train, dev = datasets(arguments)
    run = {"ours": train_ours, "torch": train_torch}[arguments.contender]
    seconds, accuracy = run(arguments, train, dev)
    return {"seconds": round(seconds, 1), "dev_accuracy": round(accuracy, 4)}


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
    result = {"epoch": epoch, "padding": padding}[arguments.what](arguments)
    print(json.dumps(result))
    if arguments.output:
        settings = {key: str(value) for key, value in vars(arguments).items()}
        content = {"format_version": 1, "settings": settings, "result": result}
        arguments.output.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
