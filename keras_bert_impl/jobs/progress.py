"""What a job tells while it runs, and the Keras callback that scores, keeps the best and stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keras_bert_impl.tasks import Encoded, Task, TaskOptions

__all__ = ["DevSet", "EpochDone", "KeepBest", "OnEvent", "Stage", "StepDone", "TrainingSummary"]

_SECONDS_BETWEEN_STEPS = 0.1


@dataclass(frozen=True)
class Stage:
    """A part of the job begins."""

    message: str


@dataclass(frozen=True)
class TrainingSummary:
    """What is about to be trained; everything is checked by then.

    `train_labels` and `dev_labels` count what each label stands on: texts, words or questions;
    `rows` and `tokens` are those of the training file, packed and with special tokens;
    `truncated` counts the rows that were cut.
    """

    train: str
    dev: str
    train_examples: int
    dev_examples: int
    train_labels: dict[str, int]
    dev_labels: dict[str, int]
    rows: int
    tokens: int
    longest: int
    truncated: int
    max_length: int
    weights: str
    parameters: int
    dtype: str
    device: str
    epochs: int
    steps_per_epoch: int


@dataclass(frozen=True)
class StepDone:
    """A step of an epoch, told ten times a second at most; `loss` is the mean of the epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float


@dataclass(frozen=True)
class EpochDone:
    """Scores after an epoch (from 1).

    `train` has the metrics of the model, `dev` the scores on the dev file; `dev_loss` is None where
    it is not computed. Of several trials each has a number from 1.
    """

    epoch: int
    loss: float
    train: dict[str, float]
    dev_loss: float | None
    dev: dict[str, float]
    seconds: float
    best: bool
    trial: int = 1


OnEvent = Callable[[Stage | TrainingSummary | StepDone | EpochDone], None]


@dataclass(frozen=True)
class DevSet:
    """What a model is scored on."""

    task: Task
    examples: Any
    encoded: Encoded
    labels: list[str] | None
    options: TaskOptions

    def score(self, model, batch_size: int) -> tuple[dict, float | None]:
        """The report of the task, and the loss."""
        outputs = self.task.outputs(model, self.encoded, batch_size)
        report = self.task.score(self.examples, outputs, self.encoded, self.labels, self.options)
        return report, self.task.loss(self.examples, outputs, self.labels)


class KeepBest(keras.callbacks.Callback):
    """Scores the dev set after every epoch, remembers the best weights, stops where asked.

    Best is the highest score; of equal scores the one with the lower loss.

    Args:
        dev: the dev set.
        metric: one of the task's.
        patience: epochs without a better score after which training stops; None: never.
        batch_size: rows a step.
        on_event: told of steps and epochs.
        trial: number of the trial, from 1.
        predictor: what predicts as the model does; None: the model.
    """

    def __init__(
        self,
        dev: DevSet,
        *,
        metric: str,
        patience: int | None,
        batch_size: int,
        on_event: OnEvent,
        trial: int = 1,
        predictor=None,
    ):
        super().__init__()
        self.dev = dev
        self.metric, self.patience, self.batch_size = dev.task.metrics[metric], patience, batch_size
        self.on_event, self.trial = on_event, trial
        self._predictor = predictor
        self.history: list[EpochDone] = []
        self.best_epoch = 0
        self.best_report: dict = {}
        self._best = (-math.inf, -math.inf)
        self.weights: list[np.ndarray] = []
        self._epoch = 0
        self._epoch_began = self._told = 0.0

    @property
    def best_score(self) -> float:
        return self._best[0]

    @property
    def predictor(self):
        """What predicts as the model does."""
        return self.model if self._predictor is None else self._predictor

    def restore(self) -> None:
        """Gives the model the weights of the best epoch."""
        self.model.set_weights(self.weights)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch + 1
        self._epoch_began = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        steps, now = self.params["steps"], time.monotonic()
        if now - self._told >= _SECONDS_BETWEEN_STEPS or batch + 1 == steps:
            self._told = now
            loss = float(logs["loss"])
            self.on_event(StepDone(self._epoch, self.params["epochs"], batch + 1, steps, loss))

    def on_epoch_end(self, epoch, logs=None):
        loss = float(logs["loss"])
        if not math.isfinite(loss):
            raise ValueError(
                f"the loss of epoch {epoch + 1} is {loss}: train with a lower learning rate or in "
                "float32"
            )
        report, dev_loss = self.dev.score(self.predictor, self.batch_size)
        score = report[self.metric]
        reached = (-math.inf if score is None else score, -(dev_loss or 0.0))
        is_best = not self.history or reached > self._best
        if is_best:
            self._best, self.best_epoch, self.best_report = reached, epoch + 1, report
            self.weights = self.model.get_weights()
        done = EpochDone(
            epoch=epoch + 1,
            loss=loss,
            train={name: float(value) for name, value in logs.items() if name != "loss"},
            dev_loss=dev_loss,
            dev={name: report[name] for name in self.dev.task.shown if name in report},
            seconds=round(time.monotonic() - self._epoch_began, 2),
            best=is_best,
            trial=self.trial,
        )
        self.history.append(done)
        self.on_event(done)
        if self.patience is not None and epoch + 1 - self.best_epoch >= self.patience:
            self.model.stop_training = True
