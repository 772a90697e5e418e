"""Checkpoints of a training run: weights, optimizer, dropout seeds and step, whole or absent.

Keras' `BackupAndRestore` restores neither the position in the data nor the seeds of dropout, and
counts a step twice after a second failure.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np

from keras_bert_impl.sources import storage
from keras_bert_impl.sources.formats import check_format_version, file_sha256

__all__ = ["Checkpoints", "Interrupted", "SaveCheckpoints", "signals_deferred"]

FORMAT_VERSION = 1
PREFIX = "step-"
WEIGHTS_FILE = "model.weights.h5"
SEEDS_FILE = "seeds.npz"
STATE_FILE = "state.json"

_logger = logging.getLogger(__name__)


class Interrupted(Exception):  # noqa: N818 (no error)
    """Training stopped by a signal, with its state saved."""

    def __init__(self, step: int, number: int):
        super().__init__(f"stopped after step {step} by {signal.Signals(number).name}, state saved")
        self.step = step
        self.number = number


class Checkpoints:
    """The step-tagged checkpoints in a folder, each `step-NNNNNNNN/`.

    A checkpoint holds the weights and the state of the optimizer (`model.weights.h5`), the seeds
    of dropout (`seeds.npz`), and the step with the SHA-256 of both files (`state.json`). It is
    written under another name and renamed, so that one that is there is whole.

    Args:
        folder: a local folder, or one that `tf.io.gfile` knows (``gs://...``).
        keep: how many of the newest stay.

    Raises:
        ValueError: `keep` is less than 1.
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 3):
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep}")
        self.folder = os.fspath(folder)
        self.keep = keep

    def steps(self) -> list[int]:
        """The steps of the checkpoints, ascending."""
        names = storage.names(self.folder)
        return sorted(
            int(name.removeprefix(PREFIX))
            for name in names
            if name.startswith(PREFIX) and name.removeprefix(PREFIX).isdecimal()
        )

    def save(self, model: keras.Model, step: int, **state) -> None:
        """Writes a checkpoint, then removes the oldest ones beyond `keep`.

        Args:
            model: compiled, with a built optimizer.
            step: optimizer steps done.
            **state: what else belongs to the step, for JSON.

        Raises:
            OSError: the folder cannot be written, or the disk is full; nothing is half written.
        """
        storage.remove_partial(self.folder)
        target = storage.join(self.folder, f"{PREFIX}{step:08d}")
        with storage.new_folder(target, last=STATE_FILE, replace=True) as temporary:
            self._write(model, temporary, step, state)
        for old in self.steps()[: -self.keep]:
            storage.remove(storage.join(self.folder, f"{PREFIX}{old:08d}"))

    def _write(self, model: keras.Model, folder: Path, step: int, state: dict) -> None:
        model.save_weights(folder / WEIGHTS_FILE)
        np.savez(folder / SEEDS_FILE, *(keras.ops.convert_to_numpy(v) for v in _seeds(model)))
        files = {name: file_sha256(folder / name) for name in (WEIGHTS_FILE, SEEDS_FILE)}
        content = {"format_version": FORMAT_VERSION, "step": step, "sha256": files} | state
        (folder / STATE_FILE).write_text(json.dumps(content, indent=2) + "\n", "utf-8")

    def restore(self, model: keras.Model) -> dict | None:
        """Loads the newest whole checkpoint; a damaged one is passed over with a warning.

        Args:
            model: compiled, of the same shape as the one saved.

        Returns:
            The content of its `state.json` with `step`; None where there is no checkpoint.

        Raises:
            ValueError: the checkpoint fits another model, there are checkpoints and all are
                damaged, or one was written in a newer format.
        """
        steps = self.steps()
        for step in reversed(steps):
            folder = storage.join(self.folder, f"{PREFIX}{step:08d}")
            with storage.local_copy(folder) as local:
                state, damage = self._check(local, folder)
                if damage is None:
                    self._load(model, local, folder)
                    return state
            _logger.warning("%s is damaged (%s): going back to the one before", folder, damage)
        if steps:
            raise ValueError(f"{self.folder}: every checkpoint is damaged (steps {steps})")
        return None

    def _check(self, local: Path, folder: str) -> tuple[dict, str | None]:
        try:
            state = json.loads((local / STATE_FILE).read_text("utf-8"))
            check_format_version(folder, state["format_version"], FORMAT_VERSION)
            for name, expected in state["sha256"].items():
                if file_sha256(local / name) != expected:
                    return {}, f"{name} is not what was written"
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError, KeyError) as error:
            return {}, repr(error)
        return state, None

    def _load(self, model: keras.Model, local: Path, folder: str) -> None:
        model.optimizer.build(model.trainable_variables)
        try:
            model.load_weights(local / WEIGHTS_FILE)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{folder}: does not fit the model: {error}") from None
        with np.load(local / SEEDS_FILE) as seeds:
            for variable, value in zip(_seeds(model), seeds.values(), strict=True):
                variable.assign(value)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves every N steps and when a signal has come to any machine, on the chief only.

    Args:
        checkpoints: where to.
        every: steps between checkpoints.
        step: steps done before `fit`.
        signals: what `signals_deferred` gives; None: signals act as ever.
        is_chief: whether this process writes.
        gather: as `strategies.make_gather` gives it: the machines stop after the same step.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        every: int,
        *,
        step: int = 0,
        signals: list[int] | None = None,
        is_chief: bool = True,
        gather: Callable[[int], list[int]] = lambda number: [number],
    ):
        super().__init__()
        self.checkpoints, self.every, self.step = checkpoints, every, step
        self.signals = [] if signals is None else signals
        self.is_chief = is_chief
        self.gather = gather
        self._before = step

    def on_epoch_begin(self, epoch, logs=None):
        self._before = self.step

    def on_train_batch_end(self, batch, logs=None):
        last, self.step = self.step, self._before + batch + 1
        is_due = self.step // self.every > last // self.every
        number = max(self.gather(self.signals[0] if self.signals else 0))
        if self.is_chief and (is_due or number):
            scores = {name: float(value) for name, value in (logs or {}).items()}
            self.checkpoints.save(self.model, self.step, scores=scores)
        if number:
            raise Interrupted(self.step, number)


@contextlib.contextmanager
def signals_deferred(*numbers: int) -> Iterator[list[int]]:
    """Within the block a signal is only noted; a second one of any kind acts as before.

    Yields:
        The list that a signal's number is put into.
    """
    noted: list[int] = []
    before = {}

    def note(number, frame):
        if noted:
            for each, handler in before.items():
                signal.signal(each, handler)
            signal.raise_signal(number)
        noted.append(number)

    try:
        for number in numbers:
            before[number] = signal.signal(number, note)
    except ValueError:
        # Not the main thread, where signals never arrive.
        yield noted
        return
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seeds(model: keras.Model) -> list:
    """The states of dropout, which no file of Keras holds; in the order of the layers."""
    return [v for v in model.variables if "seed_generator" in v.path]
