"""A run folder while it is written to: a record of what the run is, and its history."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from keras_bert_impl.checkpoints.store import CONFIG_FILE
from keras_bert_impl.sources import atomic_write
from keras_bert_impl.sources.formats import check_format_version
from keras_bert_impl.sources.locking import LOCK_FILE
from keras_bert_impl.training.storage import remove_partial

__all__ = ["History", "begin_or_resume", "forget", "read_record"]

FORMAT_VERSION = 1
RECORD_FILE = "pretraining.json"


def begin_or_resume(folder: Path, record: dict, *, resume: bool, allow_changes: bool) -> None:
    """Writes the record of a new run, or compares it with that of the run to go on with.

    Args:
        folder: of the run.
        record: nested dict of all that the numbers depend on; what they do not, in `options`.
        resume: whether to go on with the run that is there.
        allow_changes: whether it may differ, except in `model`.

    Raises:
        FileExistsError: the folder holds a finished run, an unfinished one without `resume`, or
            other files.
        FileNotFoundError: nothing to resume.
        ValueError: the run to resume is another one; the message lists what differs.
    """
    file = folder / RECORD_FILE
    if file.exists():
        remove_partial(os.fspath(folder))
    if (folder / CONFIG_FILE).exists():
        raise FileExistsError(
            f"{folder} holds a finished run: name another output folder (--init-checkpoint "
            f"{folder} starts a new run from its weights)"
        )
    if not resume:
        if file.exists():
            raise FileExistsError(
                f"{folder} holds an unfinished run: --resume goes on with it; or name another "
                "output folder"
            )
        others = sorted(p.name for p in folder.iterdir() if p.name != LOCK_FILE)
        if others:
            raise FileExistsError(
                f"output folder {folder} is not empty ({others[0]}): name another folder"
            )
        _write(file, record)
        return
    before = read_record(folder)
    changed = [
        change
        for change in _differences(before, json.loads(json.dumps(record)))
        if not change[0].startswith("options.")
    ]
    if not changed:
        return
    lines = "\n".join(f"  {name}: {old!r} in the run, {new!r} now" for name, old, new in changed)
    if not allow_changes or any(name.split(".")[0] == "model" for name, _, _ in changed):
        raise ValueError(
            f"{folder}: the run to resume differs:\n{lines}\n"
            "give what it was begun with, or --allow-changes (not for the model)"
        )
    _write(file, record)


def forget(folder: Path) -> None:
    """Removes the record of a run that could not begin, so that the folder can be used again."""
    (folder / RECORD_FILE).unlink(missing_ok=True)


def _write(file: Path, record: dict) -> None:
    atomic_write(file, json.dumps({"format_version": FORMAT_VERSION, **record}, indent=2) + "\n")


def read_record(folder: Path) -> dict:
    """The record of the run in a folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it was written in a newer format.
    """
    file = folder / RECORD_FILE
    if not file.exists():
        raise FileNotFoundError(f"{folder}: no run to resume (there is no {RECORD_FILE})")
    record = json.loads(file.read_text("utf-8"))
    check_format_version(file, record.pop("format_version"), FORMAT_VERSION)
    return record


def _differences(before: dict, after: dict, prefix: str = "") -> list[tuple[str, object, object]]:
    """(dotted name, value before, value after) of each leaf in which two nested dicts differ."""
    found = []
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            found.append((f"{prefix}{key}", old, new))
    return found


class History:
    """Lines of JSON, each with the `step` after which it was written.

    Args:
        file: is read if it is there; lines beyond `step` and a torn last line are dropped.
        step: where the run goes on from.
    """

    def __init__(self, file: Path, step: int):
        self.file = file
        self.lines: list[dict] = []
        for line in file.read_text("utf-8").splitlines() if file.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):
                self.lines.append(json.loads(line))
        self.lines = [line for line in self.lines if line["step"] <= step]
        self._write()

    def add(self, line: dict) -> None:
        """Appends a line; the file is whole at any time."""
        self.lines.append(line)
        self._write()

    def _write(self) -> None:
        atomic_write(self.file, "".join(json.dumps(line) + "\n" for line in self.lines))
