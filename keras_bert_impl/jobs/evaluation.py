"""Scores a run on a labelled file."""

from __future__ import annotations

import os
from dataclasses import dataclass

from keras_bert_impl.data.labels import encode_labels
from keras_bert_impl.jobs.inputs import FOUND_OUT, InputOptions, read_examples
from keras_bert_impl.jobs.runs import Run, load
from keras_bert_impl.metrics import classification_report

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """`report` is that of `keras_bert_impl.metrics.classification_report`."""

    model: str
    data: str
    report: dict


def evaluate(
    model: Run | str | os.PathLike,
    data: str | os.PathLike,
    inputs: InputOptions = FOUND_OUT,
    *,
    batch_size: int = 64,
) -> Evaluation:
    """Predicts every row of a file and compares with its labels.

    Args:
        model: a run, or its folder as for `load`.
        data: labelled file.
        inputs: its columns and format; by default as in the training file.
        batch_size: rows a step.

    Raises:
        FileNotFoundError: there is no such run or file.
        ValueError: the file has no labels, or one that the run does not know, or pairs where the
            run takes single texts (or the reverse).
    """
    run = model if isinstance(model, Run) else load(model)
    examples = read_examples(data, inputs, run.columns)
    classes = encode_labels(examples, run.labels)
    if run.pairs is not None and run.pairs != (examples.pairs is not None):
        wanted, found = ("pairs of texts", "single ones")[:: 1 if run.pairs else -1]
        raise ValueError(
            f"{examples.path}: the model classifies {wanted}, the file has {found} "
            f"({examples.description}): give the columns (--text-column, --pair-column)"
        )
    probabilities = run.probabilities(examples.texts, examples.pairs, batch_size=batch_size)
    report = classification_report(classes, probabilities.argmax(axis=-1), run.labels)
    return Evaluation(os.fspath(run.folder), examples.path, report)
