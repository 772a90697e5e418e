"""Scores a run on a labelled file."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.jobs.preparation import write_errors
from keras_bert_impl.jobs.runs import Run, load
from keras_bert_impl.tasks.inputs import FOUND_OUT, InputOptions

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """`report` is what the task's `score` returns; for classes, `classification_report`."""

    model: str
    data: str
    report: dict


def evaluate(
    model: Run | str | os.PathLike,
    data: str | os.PathLike,
    inputs: InputOptions = FOUND_OUT,
    *,
    batch_size: int = 64,
    errors: str | os.PathLike | None = None,
) -> Evaluation:
    """Predicts every row of a file and compares with its labels.

    Args:
        model: a run, or its folder as for `load`.
        data: labelled file.
        inputs: its columns and format; by default as in the training file.
        batch_size: rows a step.
        errors: TSV file to write the examples to that are predicted wrongly; None: none.

    Raises:
        FileNotFoundError: there is no such run or file.
        ValueError: the file has no labels, or one that the run does not know, or pairs where the
            run takes single texts (or the reverse).
    """
    run = model if isinstance(model, Run) else load(model)
    if run.layout is not None and inputs.layout is None:
        inputs = dataclasses.replace(inputs, layout=run.layout)
    examples = run.task.read(data, inputs, run.columns)
    run.task.check(examples, run.labels)
    pairs = getattr(examples, "pairs", None) is not None
    if run.pairs is not None and run.pairs != pairs:
        wanted, found = ("pairs of texts", "single ones")[:: 1 if run.pairs else -1]
        raise ValueError(
            f"{examples.path}: the model classifies {wanted}, the file has {found} "
            f"({examples.description}): give the columns (--text-column, --pair-column)"
        )
    report, predictions = run.report_of(examples, batch_size)
    if errors is not None:
        write_errors(Path(errors), run.task.errors(examples, predictions))
    return Evaluation(os.fspath(run.folder), examples.path, report)
