"""Inference of the tasks beside transformers + torch: the same rows in the same sorted batches.

    python benchmarks/inference.py wnut17 --data test.conll
    python benchmarks/inference.py squad --data dev-v1.1.json --rows 400

Times the logits of all rows (what `predict` and `evaluate` compute), not their decoding. The heads
are random. Rounds are interleaved; the median of the ratios counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from task_scores import RECIPES, Data, torch_model


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", choices=("wnut17", "squad"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", default="minilm")
    parser.add_argument("--rows", type=int, default=1000, help="sentences or questions")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="float32", choices=("float32", "mixed_bfloat16"))
    return parser.parse_args()


def read(arguments) -> Data:
    """The first rows of the file, encoded as for prediction."""
    import dataclasses

    from keras_bert_impl import BertTokenizer
    from keras_bert_impl.tasks import InputOptions, TaskOptions, find_task

    recipe = RECIPES[arguments.recipe]
    task, _ = find_task(recipe.task)
    examples = task.read(arguments.data, InputOptions())
    labels = task.labels(examples, InputOptions())
    if arguments.recipe == "squad":
        examples = dataclasses.replace(examples, questions=examples.questions[: arguments.rows])
    else:
        names = ("words", "tags", "lines")
        some = {name: getattr(examples, name)[: arguments.rows] for name in names}
        examples = dataclasses.replace(examples, **some)
    options = TaskOptions(max_length=recipe.max_length)
    tokenizer = BertTokenizer.from_pretrained(arguments.weights)
    encoded = task.encode(tokenizer, examples, labels, options)
    return Data(recipe, task, labels, None, {arguments.data.name: (examples, encoded)}, options)


def main():
    arguments = parse_arguments()
    data = read(arguments)
    ((_, encoded),) = data.tests.values()
    ours = data.task.model_class.from_pretrained(
        arguments.weights, dtype=arguments.dtype, **data.task.model_arguments(data.labels)
    )
    theirs = torch_model(arguments, data)
    theirs.eval()
    models = {"ours": ours, "torch": theirs}
    for model in models.values():
        data.task.outputs(model, encoded, arguments.batch)
    seconds = {name: [] for name in models}
    for _ in range(arguments.rounds):
        for name, model in models.items():
            start = time.perf_counter()
            data.task.outputs(model, encoded, arguments.batch)
            seconds[name].append(time.perf_counter() - start)
    ratios = [torch / ours for ours, torch in zip(*seconds.values(), strict=True)]
    tokens = len(encoded.rows.token_ids)
    print(
        json.dumps(
            {
                "recipe": arguments.recipe,
                "dtype": arguments.dtype,
                "rows": len(encoded.rows),
                "tokens": tokens,
                "tokens_a_second": {
                    n: round(tokens / statistics.median(s)) for n, s in seconds.items()
                },
                "torch/ours": round(statistics.median(ratios), 2),
                "ratios": [round(ratio, 2) for ratio in ratios],
            }
        )
    )


if __name__ == "__main__":
    main()
