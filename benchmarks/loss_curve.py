"""Losses step by step beside transformers + torch: same weights, same batches, no dropout.

    python benchmarks/loss_curve.py rte --train RTE/train.tsv --steps 40

Recipe and options are those of `task_scores.py`. The heads begin with the same random kernel.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import task_scores


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", choices=tuple(task_scores.RECIPES))
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--weights", default="minilm")
    parser.add_argument("--dtype", default="float32", choices=("float32", "mixed_bfloat16"))
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    arguments.dev, arguments.more = arguments.train, []
    return arguments


def width_of(weights) -> int:
    """The hidden size."""
    from keras_bert_impl import checkpoints

    return checkpoints.open_checkpoint(weights).config.hidden_size


def our_losses(arguments, data, kernel):
    import keras

    from keras_bert_impl.layers.dropout import Dropout

    model = data.task.model_class.from_pretrained(
        arguments.weights, dtype=arguments.dtype, **data.task.model_arguments(data.labels)
    )
    model.head.dense.kernel.assign(kernel)
    for layer in model._flatten_layers():
        if isinstance(layer, Dropout):
            layer.rate = 0.0
    batches, steps = task_scores.training(data, seed=0)
    model.compile(task_scores.our_optimizer(data, steps), jit_compile=False)
    losses = []

    def keep(batch, logs):
        losses.append(float(logs["loss"]))
        model.reset_metrics()

    model.fit(
        batches.take(arguments.steps),
        callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=keep)],
        verbose=0,
    )
    return losses


def torch_losses(arguments, data, kernel):
    import torch

    wrapped = task_scores.torch_model(arguments, data)
    model = wrapped.model
    head = model.qa_outputs if wrapped.kind == "question-answering" else model.classifier
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(kernel.T))
        head.bias.zero_()
    batches, steps = task_scores.training(data, seed=0)
    step = task_scores.torch_step(wrapped, data.recipe.rate, steps, round(0.1 * steps))
    wrapped.eval()
    return [step(batch) for batch in batches.take(arguments.steps).as_numpy_iterator()]


def main():
    arguments = parse_arguments()
    data = task_scores.read(arguments)
    shape = (width_of(arguments.weights), task_scores.outputs_of(data))
    kernel = np.random.default_rng(0).normal(0, 0.02, shape).astype("float32")
    ours = our_losses(arguments, data, kernel)
    theirs = torch_losses(arguments, data, kernel)
    for step, pair in enumerate(zip(ours, theirs, strict=True)):
        if step % max(arguments.steps // 10, 1) == 0:
            print(f"step {step:4d}: ours {pair[0]:.5f}, torch {pair[1]:.5f}")
    print(f"largest difference in {len(ours)} steps: {np.abs(np.subtract(ours, theirs)).max():.1e}")


if __name__ == "__main__":
    main()
