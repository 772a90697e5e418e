"""How pre-training and what comes before and after it look."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from keras_bert_impl.cli.display import Display
from keras_bert_impl.data.generation import GenerationProgress
from keras_bert_impl.jobs import FilledTexts, LearnedVocabulary, MadeShards, PretrainResult
from keras_bert_impl.jobs.pretraining_progress import OnEvent, PretrainStep, PretrainSummary, Window
from keras_bert_impl.jobs.progress import Stage

__all__ = ["PretrainingDisplay"]


class PretrainingDisplay(Display):
    """Draws bars on standard error and prints results on standard output."""

    @contextlib.contextmanager
    def pretraining(self) -> Iterator[OnEvent]:
        """Yields what the job tells its events to; with a bar on a terminal."""
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[scores]}"),
            TimeRemainingColumn(),
        )
        with self._progress(*columns) as progress:
            task = progress.add_task("", total=None, visible=False, scores="")

            def on_event(event) -> None:
                if isinstance(event, PretrainStep):
                    progress.update(
                        task,
                        completed=event.step,
                        total=event.steps,
                        scores=_scores(event.scores),
                        visible=True,
                    )
                    return
                for line in _event_lines(event):
                    self.errors.print(line)

            yield on_event

    @contextlib.contextmanager
    def reading(self) -> Iterator[Callable[[int], None]]:
        """Yields what is told the bytes read so far; with a counter on a terminal."""
        with self._progress(TextColumn("{task.fields[text]}")) as progress:
            task = progress.add_task("", total=None, text="")
            yield lambda done: progress.update(task, text=f"{done / 1e6:,.0f} MB read")

    @contextlib.contextmanager
    def generating(self) -> Iterator[Callable[[GenerationProgress], None]]:
        """Yields what is told the chunks done so far; with a counter on a terminal."""
        with self._progress(TextColumn("{task.fields[text]}")) as progress:
            task = progress.add_task("", total=None, text="")

            def on_progress(done: GenerationProgress) -> None:
                text = f"{done.text_bytes / 1e6:,.0f} MB, {done.examples:,} examples"
                progress.update(task, text=text)

            yield on_progress

    def learned(self, result: LearnedVocabulary) -> None:
        """Prints the size of a vocabulary."""
        self.output.print(
            f"{result.tokens:,} tokens from {result.words:,} distinct words: {result.file} "
            f"({result.seconds:.0f} s)"
        )

    def shards(self, result: MadeShards) -> None:
        """Prints the report of a corpus and its shards."""
        for line in result.report:
            self.output.print(line)
        counts = ", ".join(f"{name} {count:,}" for name, count in result.examples.items() if count)
        self.output.print(f"examples             {counts}")
        self.output.print(f"shards written to {result.folder} ({result.seconds:.0f} s)")

    def pretrained(self, result: PretrainResult) -> None:
        """Prints the last scores and the folder of a run."""
        for name, scores in (("train", result.train), ("held out", result.eval)):
            if scores:
                self.output.print(f"{name:<9} {_scores(scores)}")
        self.output.print(f"run written to {result.folder} ({result.seconds:.0f} s)")

    def filled(self, result: FilledTexts) -> None:
        """Prints the candidates of each mask."""
        for text, masks in zip(result.texts, result.masks, strict=True):
            for number, candidates in enumerate(masks, 1):
                self.output.print(text if len(masks) == 1 else f"{text}  (mask {number})")
                table = Table(box=None, show_header=False)
                for candidate in candidates:
                    table.add_row(
                        f"{candidate.probability:.4f}", Text(candidate.token), Text(candidate.text)
                    )
                self.output.print(table)


def _event_lines(event: Stage | PretrainSummary | Window) -> list[str]:
    if isinstance(event, Stage):
        return [f"{event.message} ..."]
    if isinstance(event, PretrainSummary):
        return [
            f"data       {event.data}",
            f"held out   {event.eval_data or 'nothing'}",
            f"model      {event.model}",
            f"devices    {event.devices}",
            f"steps      {event.steps:,}: {event.epochs:.2f} epochs of {event.examples:,} examples",
        ]
    line = f"step {event.step:,}: {_scores(event.train)}, {event.examples_per_second:,.0f} rows/s"
    return [line, f"  held out: {_scores(event.eval)}"] if event.eval else [line]


def _scores(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
