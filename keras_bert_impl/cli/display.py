"""How progress and results look; text of users is never taken for markup."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from keras_bert_impl.jobs import Evaluation, FinetuneResult, QuickstartResult
from keras_bert_impl.jobs.progress import EpochDone, OnEvent, Stage, StepDone, TrainingSummary
from keras_bert_impl.serving.export import ExportResult
from keras_bert_impl.serving.verify import VerifyReport

__all__ = ["Display"]

_SHOWN_LABELS = 20


class Display:
    """Draws on standard error while a job runs, and prints its result on standard output."""

    def __init__(self) -> None:
        self.errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self.output = Console(highlight=False, markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def training(self) -> Iterator[OnEvent]:
        """Yields what a job tells its events to; with a bar on a terminal."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.4f}"),
            TimeRemainingColumn(),
        )
        with self._progress(*columns) as progress:
            task = progress.add_task("", total=None, visible=False, loss=0.0)

            def on_event(event) -> None:
                if isinstance(event, StepDone):
                    progress.update(
                        task,
                        description=f"epoch {event.epoch}/{event.epochs}",
                        completed=event.step,
                        total=event.steps,
                        loss=event.loss,
                        visible=True,
                    )
                    return
                progress.update(task, visible=False)
                for line in _event_lines(event):
                    self.errors.print(line)

            yield on_event

    @contextlib.contextmanager
    def counting(self) -> Iterator[Callable[[int], None]]:
        """Yields what is told how many rows are done; with a counter on a terminal."""
        with self._progress(TextColumn("{task.completed:,} rows")) as progress:
            task = progress.add_task("", total=None)
            yield lambda rows: progress.update(task, completed=rows)

    def _progress(self, *columns) -> Progress:
        return Progress(
            *columns, console=self.errors, transient=True, disable=not self.errors.is_terminal
        )

    def result(self, result: Any, show: Callable[[Any], None], as_json: bool) -> None:
        """Prints a result as JSON, or as `show` does."""
        if as_json:
            typer.echo(json.dumps(dataclasses.asdict(result), ensure_ascii=False, default=str))
        else:
            show(result)

    def finetune(self, result: FinetuneResult) -> None:
        """Prints scores and folder of a run."""
        self._report(f"dev, epoch {result.best_epoch} (best {result.metric})", result.dev)
        if len(result.trials) > 1:
            shown = ", ".join(
                f"{trial.seed}: {trial.score:.4f}{' (collapsed)' if trial.collapsed else ''}"
                for trial in result.trials
            )
            self.output.print(f"{result.metric} by seed {shown}; median {result.median_score:.4f}")
        self.output.print(f"run written to {result.folder} ({result.seconds:.0f} s)")

    def evaluation(self, result: Evaluation) -> None:
        """Prints the scores on a file."""
        self._report(result.data, result.report)

    def export(self, result: ExportResult) -> None:
        """Prints where a SavedModel is and what its check found."""
        self.output.print(f"version {result.version} of {result.model_name}: {result.path}")
        self.verification(result.report)
        self.output.print(f"\nServe it:\n  {result.docker}\nAsk it:\n  {result.curl}")

    def verification(self, report: VerifyReport) -> None:
        """Prints what the check of a SavedModel found."""
        self.output.print(str(report))

    def quickstart(self, result: QuickstartResult) -> None:
        """Prints all that the quick start gave."""
        out = self.output.print
        parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in result.seconds.items())
        out(f"dev accuracy   {result.training.dev['accuracy']:.3f}")
        out(f"test accuracy  {result.test['accuracy']:.3f}")
        out(f"run            {result.training.folder}")
        out(f"SavedModel     {result.saved_model}")
        out(f"time           {parts}")
        out("\nA fresh process, which imports tensorflow and tensorflow_text only, says:")
        for answer in result.answers:
            out(f"  {answer.label:<11} {answer.probability:.3f}  {answer.text}")
        out(f"\nServe it:\n  {result.docker}\nAsk it:\n  {result.curl}")

    def _report(self, title: str, report: dict) -> None:
        shown = ", ".join(_shown(name, value) for name, value in _scores(report).items())
        self.output.print(f"{title}: {report['examples']} rows, {shown}")
        if "classes" not in report:
            return
        table = Table(box=None)
        table.add_column("label")
        columns = [
            name
            for name in ("precision", "recall", "f1", "auc")
            if any(name in scores for scores in report["classes"].values())
        ]
        for name in (*columns, "rows"):
            table.add_column(name, justify="right")
        for label, scores in report["classes"].items():
            numbers = ("" if scores[n] is None else f"{scores[n]:.4f}" for n in columns)
            table.add_row(Text(label), *numbers, str(scores["support"]))
        self.output.print(table)
        if 1 < len(report.get("confusion_matrix", ())) <= _LARGEST_MATRIX:
            self._matrix(list(report["classes"]), report["confusion_matrix"])

    def _matrix(self, labels: list[str], counts: list[list[int]]) -> None:
        table = Table(box=None)
        for name in ("label \\ prediction", *labels):
            table.add_column(Text(name), justify="right")
        for label, row in zip(labels, counts, strict=True):
            table.add_row(Text(label), *map(str, row))
        self.output.print(table)


_NAMES = {
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "binary_f1": "F1",
    "macro_auc": "AUC",
    "matthews_correlation": "MCC",
    "mse": "mean squared error",
    "exact_match": "exact match",
}
_NOT_SHOWN = {"examples", "constant", "negative_mse"}
_LARGEST_MATRIX = 12


def _scores(report: dict) -> dict[str, float]:
    return {
        name: value
        for name, value in report.items()
        if isinstance(value, int | float) and name not in _NOT_SHOWN
    }


def _shown(name: str, value: float) -> str:
    return f"{_NAMES.get(name, name.replace('_', ' '))} {value:.4f}"


def _event_lines(event: Stage | TrainingSummary | EpochDone) -> list[str]:
    if isinstance(event, Stage):
        return [f"{event.message} ..."]
    if isinstance(event, TrainingSummary):
        return _summary_lines(event)
    mark = "  best so far" if event.best else ""
    scores = [f"loss {event.loss:.4f}"]
    if event.dev_loss is not None:
        scores.append(f"dev loss {event.dev_loss:.4f}")
    scores += [f"dev {_shown(n, v)}" for n, v in event.dev.items() if v is not None]
    trial = f"trial {event.trial}, " if event.trial > 1 else ""
    line = f"{trial}epoch {event.epoch}: {', '.join(scores)} ({event.seconds:.0f} s){mark}"
    return [line]


def _summary_lines(summary: TrainingSummary) -> list[str]:
    return [
        f"train      {summary.train}: {summary.train_examples:,} examples; "
        f"{_counts(summary.train_labels)}",
        f"dev        {summary.dev}: {summary.dev_examples:,} examples; "
        f"{_counts(summary.dev_labels)}",
        f"tokens     {summary.tokens:,} in {summary.rows:,} rows, "
        f"{summary.tokens / summary.rows:.1f} a row, longest row "
        f"{summary.longest}; {summary.truncated:,} rows cut at {summary.max_length}",
        f"model      {summary.weights}: {summary.parameters:,} parameters",
        f"precision  {summary.dtype} on {summary.device}",
        f"steps      {summary.epochs} epochs of {summary.steps_per_epoch:,}",
    ]


def _counts(labels: dict[str, int]) -> str:
    shown = [f"{label} {count:,}" for label, count in list(labels.items())[:_SHOWN_LABELS]]
    more = len(labels) - len(shown)
    return ", ".join(shown) + (f" and {more} labels more" if more else "")
