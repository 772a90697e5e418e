"""What pre-training tells while it runs, and the Keras callback that tells it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import keras
import tensorflow as tf

from keras_bert_impl.jobs.progress import Stage
from keras_bert_impl.sources import storage

__all__ = [
    "OnEvent",
    "PretrainResult",
    "PretrainStep",
    "PretrainSummary",
    "Progress",
    "Window",
    "segments",
]

_SECONDS_BETWEEN_STEPS = 0.1


@dataclass(frozen=True)
class PretrainSummary:
    """What is about to be trained; everything is checked by then. `epochs` may be a fraction."""

    data: str
    eval_data: str | None
    examples: int
    epochs: float
    model: str
    devices: str
    steps: int


@dataclass(frozen=True)
class PretrainStep:
    """A step, told ten times a second at most; `scores` are the means of its window so far."""

    step: int
    steps: int
    scores: dict[str, float]


@dataclass(frozen=True)
class Window:
    """Scores of the steps since the last checkpoint, and those on the held-out data after them."""

    step: int
    train: dict[str, float]
    eval: dict[str, float]
    examples_per_second: float

    def to_dict(self) -> dict:
        """A line of the history."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class PretrainResult:
    """What pre-training gave; the model itself is in `folder`.

    `train` and `eval` are the scores of the last window of steps; `eval` is empty without
    evaluation shards.
    """

    folder: str
    steps: int
    train: dict[str, float]
    eval: dict[str, float]
    history: list[dict]
    seconds: float


OnEvent = Callable[[Stage | PretrainSummary | PretrainStep | Window], None]


class Progress(keras.callbacks.Callback):
    """Tells of steps; after a window of steps, evaluates, logs and has a checkpoint written.

    Args:
        run: has `evaluate`, `window_done`, `settings`, `folder` and `is_chief`.
        step: steps done before `fit`.
        steps: of the whole run.
        on_event: told of steps and windows.
    """

    def __init__(self, run, step: int, steps: int, on_event: OnEvent):
        super().__init__()
        self.run, self.step, self.steps, self.on_event = run, step, steps, on_event
        self._before, self._began, self._told = step, 0.0, 0.0
        self._writer = None
        if run.is_chief:
            self._writer = tf.summary.create_file_writer(storage.join(run.folder, "logs"))

    def on_epoch_begin(self, epoch, logs=None):
        self._before, self._began = self.step, time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        self.step, now = self._before + batch + 1, time.monotonic()
        if now - self._told >= _SECONDS_BETWEEN_STEPS:
            self._told = now
            scores = self._scores(logs)
            self.on_event(PretrainStep(self.step, self.steps, scores))

    def on_epoch_end(self, epoch, logs=None):
        scores = self._scores(logs)
        seconds = time.monotonic() - self._began
        rows = (self.step - self._before) * self.run.settings.batch_size
        window = Window(self.step, scores, self.run.evaluate(), round(rows / seconds, 1))
        if self._writer is not None:
            with self._writer.as_default(self.step):
                for kind, values in (("train", window.train), ("eval", window.eval)):
                    for name, value in values.items():
                        tf.summary.scalar(f"{kind}/{name}", value)
            self._writer.flush()
        self.run.window_done(window)
        self.on_event(window)

    def _scores(self, logs) -> dict[str, float]:
        scores = {name: float(value) for name, value in logs.items()}
        if not math.isfinite(scores["loss"]):
            raise ValueError(
                f"the loss is {scores['loss']} at step {self.step}: train with a lower learning "
                "rate, a longer warm-up or in float32; checkpoints of before are kept"
            )
        return scores


def segments(step: int, total: int, window: int) -> Iterator[tuple[int, int, int]]:
    """(first step, steps a window, windows): the rest of a window begun, whole ones, the last."""
    rest = min(-step % window, total - step)
    if rest:
        yield step, rest, 1
    step += rest
    whole, last = divmod(total - step, window)
    if whole:
        yield step, window, whole
    if last:
        yield step + whole * window, last, 1
