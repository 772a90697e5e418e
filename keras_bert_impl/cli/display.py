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
        self.output.print(f"run written to {result.folder} ({result.seconds:.0f} s)")

    def evaluation(self, result: Evaluation) -> None:
        """Prints the scores on a file."""
        self._report(result.data, result.report)

    def export(self, result: ExportResult) -> None:
        """Prints where a SavedModel is and what its check found."""
        self.output.print(f"version {result.version} of {result.model_name}: {result.path}")
        self.verification(result.report)

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
        self.output.print(
            f"{title}: {report['examples']} rows, accuracy {report['accuracy']:.4f}, "
            f"macro F1 {report['macro_f1']:.4f}, MCC {report['matthews_correlation']:.4f}"
        )
        table = Table(box=None)
        table.add_column("label")
        for name in ("precision", "recall", "f1", "rows"):
            table.add_column(name, justify="right")
        for label, scores in report["classes"].items():
            numbers = (f"{scores[name]:.4f}" for name in ("precision", "recall", "f1"))
            table.add_row(Text(label), *numbers, str(scores["support"]))
        self.output.print(table)


def _event_lines(event: Stage | TrainingSummary | EpochDone) -> list[str]:
    if isinstance(event, Stage):
        return [f"{event.message} ..."]
    if isinstance(event, TrainingSummary):
        return _summary_lines(event)
    mark = "  best so far" if event.best else ""
    return [
        f"epoch {event.epoch}: loss {event.loss:.4f}, dev loss {event.dev_loss:.4f}, dev accuracy "
        f"{event.dev_accuracy:.4f}, macro F1 {event.dev_macro_f1:.4f}, MCC "
        f"{event.dev_matthews_correlation:.4f} ({event.seconds:.0f} s){mark}"
    ]


def _summary_lines(summary: TrainingSummary) -> list[str]:
    rows = sum(summary.train_labels.values())
    return [
        f"train      {summary.train}: {rows:,} rows; {_counts(summary.train_labels)}",
        f"dev        {summary.dev}: {sum(summary.dev_labels.values()):,} rows; "
        f"{_counts(summary.dev_labels)}",
        f"tokens     {summary.tokens:,}, {summary.tokens / rows:.1f} a row, longest row "
        f"{summary.longest}; {summary.truncated:,} rows cut at {summary.max_length}",
        f"model      {summary.weights}: {summary.parameters:,} parameters",
        f"precision  {summary.dtype} on {summary.device}",
        f"steps      {summary.epochs} epochs of {summary.steps_per_epoch:,}",
    ]


def _counts(labels: dict[str, int]) -> str:
    shown = [f"{label} {count:,}" for label, count in list(labels.items())[:_SHOWN_LABELS]]
    more = len(labels) - len(shown)
    return ", ".join(shown) + (f" and {more} labels more" if more else "")
