"""What a job tells while it runs, and the Keras callback that scores, keeps the best and stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np

from keras_bert_impl.data.encoding import EncodedTexts
from keras_bert_impl.jobs.runs import class_probabilities
from keras_bert_impl.metrics import classification_report

__all__ = ["METRICS", "EpochDone", "KeepBest", "OnEvent", "Stage", "StepDone", "TrainingSummary"]

# Our word -> key in the report.
METRICS = {"accuracy": "accuracy", "f1": "macro_f1", "mcc": "matthews_correlation"}

_SECONDS_BETWEEN_STEPS = 0.1


@dataclass(frozen=True)
class Stage:
    """A part of the job begins."""

    message: str


@dataclass(frozen=True)
class TrainingSummary:
    """What is about to be trained; everything is checked by then.

    `train_labels` and `dev_labels` count the rows of each label; `tokens` are those of the
    training file, special tokens included; `truncated` counts its rows that were cut.
    """

    train: str
    dev: str
    train_labels: dict[str, int]
    dev_labels: dict[str, int]
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
    """Scores after an epoch (from 1)."""

    epoch: int
    loss: float
    accuracy: float
    dev_loss: float
    dev_accuracy: float
    dev_macro_f1: float
    dev_matthews_correlation: float
    seconds: float
    best: bool


OnEvent = Callable[[Stage | TrainingSummary | StepDone | EpochDone], None]


class KeepBest(keras.callbacks.Callback):
    """Scores the dev set after every epoch, remembers the best weights, stops where asked.

    Best is the highest score; of equal scores the one with the lower loss.

    Args:
        rows: the dev set.
        classes: its class indices, int [N].
        labels: name of each class.
        metric: one of `METRICS`.
        patience: epochs without a better score after which training stops; None: never.
        batch_size: rows a step.
        on_event: told of steps and epochs.
    """

    def __init__(
        self,
        rows: EncodedTexts,
        classes: np.ndarray,
        labels: list[str],
        *,
        metric: str,
        patience: int | None,
        batch_size: int,
        on_event: OnEvent,
    ):
        super().__init__()
        self.rows, self.classes, self.labels = rows, classes, labels
        self.metric, self.patience, self.batch_size = METRICS[metric], patience, batch_size
        self.on_event = on_event
        self.history: list[EpochDone] = []
        self.best_epoch = 0
        self.best_report: dict = {}
        self._best = (-math.inf, -math.inf)
        self._weights: list[np.ndarray] = []
        self._epoch = 0
        self._epoch_began = self._told = 0.0

    @property
    def best_score(self) -> float:
        return self._best[0]

    def restore(self) -> None:
        """Gives the model the weights of the best epoch."""
        self.model.set_weights(self._weights)

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
        probabilities = class_probabilities(self.model, self.rows, self.batch_size)
        report = classification_report(self.classes, probabilities.argmax(axis=-1), self.labels)
        of_label = probabilities[np.arange(len(self.classes)), self.classes]
        dev_loss = float(-np.log(np.maximum(of_label, 1e-30)).mean())
        reached = (report[self.metric], -dev_loss)
        is_best = reached > self._best
        if is_best:
            self._best, self.best_epoch, self.best_report = reached, epoch + 1, report
            self._weights = self.model.get_weights()
        done = EpochDone(
            epoch=epoch + 1,
            loss=loss,
            accuracy=float(logs["accuracy"]),
            dev_loss=dev_loss,
            dev_accuracy=report["accuracy"],
            dev_macro_f1=report["macro_f1"],
            dev_matthews_correlation=report["matthews_correlation"],
            seconds=round(time.monotonic() - self._epoch_began, 2),
            best=is_best,
        )
        self.history.append(done)
        self.on_event(done)
        if self.patience is not None and epoch + 1 - self.best_epoch >= self.patience:
            self.model.stop_training = True
