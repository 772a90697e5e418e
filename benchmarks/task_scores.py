"""Trained scores of the tasks beside transformers + torch: same batches, same recipe, same scorer.

    python benchmarks/task_scores.py rte --train RTE/train.tsv --dev RTE/dev.tsv --seeds 0 1 2
    python benchmarks/task_scores.py wnut17 --train train.conll --dev test.conll --contender torch

Each seed trains for the epochs of the table `RECIPES` and is scored once, after the last of them.
Recipe: AdamW (epsilon 1e-6, weight decay 0.01 but not for biases and LayerNorm), linear warm-up
over a tenth of the steps, then linear decay, global-norm clip 1.0. Seconds are CPU time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


class Recipe(NamedTuple):
    task: str
    epochs: int
    rate: float
    batch: int
    max_length: int
    metric: str


RECIPES = {
    "rte": Recipe("rte", 3, 1e-4, 32, 128, "accuracy"),
    "cola": Recipe("cola", 2, 1e-4, 32, 64, "matthews_correlation"),
    "sts-b": Recipe("sts-b", 2, 1e-4, 32, 128, "pearson"),
    "wnut17": Recipe("ner", 3, 2e-4, 32, 128, "f1"),
    "wikigold": Recipe("ner", 4, 2e-4, 32, 128, "f1"),
    "squad": Recipe("squad", 2, 2e-4, 32, 320, "f1"),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", choices=tuple(RECIPES))
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="files to score as well")
    parser.add_argument("--weights", default="minilm")
    parser.add_argument("--contender", choices=("ours", "torch"), default="ours")
    parser.add_argument("--epochs", type=int, help="other than those of the recipe")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--dtype", default="float32", choices=("float32", "mixed_bfloat16"))
    parser.add_argument("--output", type=Path, help="JSON lines to append to, one a seed")
    return parser.parse_args()


class Data(NamedTuple):
    recipe: Recipe
    task: object
    labels: list
    train: object
    tests: dict
    options: object


def read(arguments) -> Data:
    from keras_bert_impl import BertTokenizer
    from keras_bert_impl.tasks import InputOptions, TaskOptions, find_task

    recipe = RECIPES[arguments.recipe]
    task, layout = find_task(recipe.task)
    inputs = InputOptions(layout=layout)
    examples = task.read(arguments.train, inputs)
    labels = task.labels(examples, inputs)
    options = task.options_of(examples, TaskOptions(max_length=recipe.max_length))
    tokenizer = BertTokenizer.from_pretrained(arguments.weights)
    train = task.encode(tokenizer, examples, labels, options, training=True)
    tests = {}
    for path in (arguments.dev, *arguments.more):
        found = task.read(path, inputs, getattr(examples, "columns", None))
        tests[path.name] = found, task.encode(tokenizer, found, labels, options)
    return Data(recipe, task, labels, train, tests, options)


def training(data: Data, seed: int):
    """(batches of an epoch, steps of all epochs)."""
    batches = data.train.batches(batch_size=data.recipe.batch, shuffle=True, seed=seed)
    return batches, int(batches.cardinality()) * data.recipe.epochs


def our_optimizer(data: Data, steps: int):
    from keras_bert_impl import AdamW, WarmupLinearDecay

    return AdamW(WarmupLinearDecay(data.recipe.rate, steps, round(0.1 * steps)))


def train_ours(arguments, data: Data, seed: int):
    import keras

    keras.utils.set_random_seed(seed)
    model = data.task.model_class.from_pretrained(
        arguments.weights, dtype=arguments.dtype, **data.task.model_arguments(data.labels)
    )
    batches, steps = training(data, seed)
    model.compile(our_optimizer(data, steps), jit_compile=False)
    start = time.process_time()
    model.fit(batches, epochs=data.recipe.epochs, verbose=0)
    return time.process_time() - start, model


class TorchModel:
    """A model of transformers with the methods of Keras that inference here calls."""

    def __init__(self, arguments, kind: str, num_labels: int) -> None:
        import torch
        import transformers

        from keras_bert_impl import sources

        name = {
            "classification": "SequenceClassification",
            "regression": "SequenceClassification",
            "token-classification": "TokenClassification",
            "question-answering": "QuestionAnswering",
        }[kind]
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.torch, self.kind = torch, kind
        self.cast = torch.autocast(
            "cpu", torch.bfloat16, enabled=arguments.dtype == "mixed_bfloat16"
        )
        folder = sources.resolve(arguments.weights)
        self.model = getattr(transformers, f"AutoModelFor{name}").from_pretrained(
            folder, num_labels=num_labels
        )
        self.train, self.eval = self.model.train, self.model.eval

    def outputs(self, features):
        tensors = {name: self.torch.tensor(value).long() for name, value in features.items()}
        with self.cast:
            found = self.model(
                input_ids=tensors["token_ids"],
                attention_mask=tensors["padding_mask"],
                token_type_ids=tensors.get("segment_ids"),
            )
        if self.kind == "question-answering":
            mask = tensors["padding_mask"] == 0
            return {
                "start": found.start_logits.float().masked_fill(mask, -1e9),
                "end": found.end_logits.float().masked_fill(mask, -1e9),
            }
        return found.logits.float()

    def loss(self, features, targets, weights=None):
        functional, outputs = self.torch.nn.functional, self.outputs(features)
        as_tensor = self.torch.from_numpy
        if self.kind == "regression":
            return functional.mse_loss(outputs[:, 0], as_tensor(targets).float().reshape(-1))
        if self.kind == "question-answering":
            losses = (
                functional.cross_entropy(outputs[n], as_tensor(targets[n]).long()) for n in outputs
            )
            return sum(losses) / 2
        targets = self.torch.tensor(targets).long()
        if weights is None:
            return functional.cross_entropy(outputs, targets)
        losses = functional.cross_entropy(
            outputs.flatten(0, 1), targets.flatten(), reduction="none"
        )
        weights = as_tensor(weights).float().flatten()
        return (losses * weights).sum() / weights.sum()

    def predict_on_batch(self, features):
        with self.torch.inference_mode():
            found = self.outputs({name: _array(value) for name, value in features.items()})
        return (
            {n: x.numpy() for n, x in found.items()} if isinstance(found, dict) else found.numpy()
        )

    def predict(self, batches, verbose=0):
        import numpy as np

        return np.concatenate([self.predict_on_batch(x) for x in batches.as_numpy_iterator()])


def _array(value):
    return value.numpy() if hasattr(value, "numpy") else value


def torch_model(arguments, data: Data) -> TorchModel:
    return TorchModel(arguments, data.task.name, outputs_of(data))


def outputs_of(data: Data) -> int:
    """Columns of the head."""
    return len(data.labels or ()) or {"regression": 1, "question-answering": 2}[data.task.name]


def torch_step(wrapped: TorchModel, rate: float, steps: int, warm_up: int):
    """A function that takes one step of the recipe on a batch and returns its loss."""
    import torch

    model = wrapped.model
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.01},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, rate, eps=1e-6, fused=True)
    done = itertools.count()

    def step(batch) -> float:
        number = next(done)
        share = number / warm_up if number < warm_up else 1 - number / steps
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        loss = wrapped.loss(*batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def train_torch(arguments, data: Data, seed: int):
    import torch

    torch.manual_seed(seed)
    wrapped = torch_model(arguments, data)
    batches, steps = training(data, seed)
    step = torch_step(wrapped, data.recipe.rate, steps, round(0.1 * steps))
    wrapped.train()
    start = time.process_time()
    for _ in range(data.recipe.epochs):
        for batch in batches.as_numpy_iterator():
            step(batch)
    seconds = time.process_time() - start
    wrapped.eval()
    return seconds, wrapped


def score(data: Data, model) -> dict:
    reports = {}
    for name, (examples, encoded) in data.tests.items():
        outputs = data.task.outputs(model, encoded, 32)
        report = data.task.score(examples, outputs, encoded, data.labels, data.options)
        reports[name] = {k: v for k, v in report.items() if isinstance(v, int | float)}
    return reports


def main():
    arguments = parse_arguments()
    data = read(arguments)
    if arguments.epochs:
        data = data._replace(recipe=data.recipe._replace(epochs=arguments.epochs))
    run = {"ours": train_ours, "torch": train_torch}[arguments.contender]
    scores = []
    for seed in arguments.seeds:
        seconds, model = run(arguments, data, seed)
        start = time.process_time()
        reports = score(data, model)
        scores.append(reports[arguments.dev.name][data.recipe.metric])
        line = {
            "recipe": arguments.recipe,
            "contender": arguments.contender,
            "dtype": arguments.dtype,
            "epochs": data.recipe.epochs,
            "seed": seed,
            "train_seconds": round(seconds, 1),
            "scoring_seconds": round(time.process_time() - start, 1),
            "scores": reports,
        }
        print(json.dumps(line), flush=True)
        if arguments.output:
            with arguments.output.open("a") as file:
                file.write(json.dumps(line) + "\n")
    median = statistics.median(scores)
    print(f"{arguments.recipe} {arguments.contender}: median {data.recipe.metric} {median:.4f}")


if __name__ == "__main__":
    main()
