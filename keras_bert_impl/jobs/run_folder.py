"""A run folder while it is written to: a record of what the run is, and its history."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import uuid

from keras_bert_impl.checkpoints.store import CONFIG_FILE
from keras_bert_impl.sources import storage
from keras_bert_impl.sources.formats import check_format_version
from keras_bert_impl.sources.locking import LOCK_FILE

__all__ = ["Claim", "History", "begin_or_resume", "check_same_run", "forget", "read_record"]

FORMAT_VERSION = 1
RECORD_FILE = "pretraining.json"


def begin_or_resume(folder: str, record: dict, *, resume: bool, allow_changes: bool) -> None:
    """Writes the record of a new run, or compares it with that of the run to go on with.

    Args:
        folder: of the run, local or as `tf.io.gfile` knows it.
        record: nested dict of all that the numbers depend on; what they do not, in `options`.
        resume: whether to go on with the run that is there.
        allow_changes: whether it may differ, except in `model`.

    Raises:
        FileExistsError: the folder holds a finished run, an unfinished one without `resume`, or
            other files.
        FileNotFoundError: nothing to resume.
        ValueError: the run to resume is another one; the message lists what differs.
    """
    file = storage.join(folder, RECORD_FILE)
    is_begun = storage.exists(file)
    if is_begun:
        storage.remove_partial(folder)
    if storage.exists(storage.join(folder, CONFIG_FILE)):
        raise FileExistsError(
            f"{folder} holds a finished run: name another output folder (--init-checkpoint "
            f"{folder} starts a new run from its weights)"
        )
    if not resume:
        if is_begun:
            raise FileExistsError(
                f"{folder} holds an unfinished run: --resume goes on with it; or name another "
                "output folder"
            )
        others = sorted(set(storage.names(folder)) - {LOCK_FILE})
        if others:
            raise FileExistsError(
                f"output folder {folder} is not empty ({others[0]}): name another folder"
            )
        _write(file, record)
        return
    record = json.loads(json.dumps(record))
    if check_same_run(folder, read_record(folder), record, allow_changes):
        _write(file, record)


def check_same_run(folder: str, before: dict, after: dict, allow_changes: bool = False) -> bool:
    """Whether two records differ, but for `options`.

    Raises:
        ValueError: they do and must not; the message lists what differs.
    """
    changed = [
        change for change in _differences(before, after) if not change[0].startswith("options.")
    ]
    is_other_model = any(name.split(".")[0] == "model" for name, _, _ in changed)
    if is_other_model or (changed and not allow_changes):
        lines = (f"  {name}: {old!r} in the run, {new!r} now\n" for name, old, new in changed)
        raise ValueError(
            f"{folder}: the run to resume differs:\n{''.join(lines)}"
            "give what it was begun with, or --allow-changes (not for the model)"
        )
    return bool(changed)


def forget(folder: str) -> None:
    """Removes the record of a run that could not begin, so that the folder can be used again."""
    storage.remove(storage.join(folder, RECORD_FILE))


def _write(file: str, record: dict) -> None:
    content = {"format_version": FORMAT_VERSION, **record}
    storage.write_text(file, json.dumps(content, indent=2) + "\n")


def read_record(folder: str | os.PathLike) -> dict:
    """The record of the run in a folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it was written in a newer format.
    """
    file = storage.join(os.fspath(folder), RECORD_FILE)
    if not storage.exists(file):
        raise FileNotFoundError(f"{folder}: no run to resume (there is no {RECORD_FILE})")
    record = json.loads(storage.read_text(file))
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


class Claim:
    """One writer for a folder of a file system without locks: the last that claimed it.

    A lock of a machine that went away would keep the run from going on elsewhere.

    Args:
        folder: not local.
    """

    def __init__(self, folder: str):
        self.folder, self._file = folder, storage.join(folder, LOCK_FILE)
        self._owner = f"process {os.getpid()} of {socket.gethostname()}, {uuid.uuid4().hex}"
        storage.write_text(self._file, self._owner)

    def check(self) -> None:
        """Raises FileExistsError where another process has claimed the folder since."""
        owner = storage.read_text(self._file)
        if owner != self._owner:
            raise FileExistsError(
                f"{self.folder}: another process writes to it now ({owner.partition(',')[0]}): "
                "this one ends"
            )


class History:
    """Lines of JSON, each with the `step` after which it was written.

    Args:
        file: is read if it is there; lines beyond `step` and a torn last line are dropped.
        step: where the run goes on from.
    """

    def __init__(self, file: str, step: int):
        self.file = file
        self.lines: list[dict] = []
        for line in storage.read_text(file).splitlines() if storage.exists(file) else ():
            with contextlib.suppress(json.JSONDecodeError):
                self.lines.append(json.loads(line))
        self.lines = [line for line in self.lines if line["step"] <= step]
        self._write()

    def add(self, line: dict) -> None:
        """Appends a line; the file is whole at any time."""
        self.lines.append(line)
        self._write()

    def _write(self) -> None:
        storage.write_text(self.file, "".join(json.dumps(line) + "\n" for line in self.lines))
