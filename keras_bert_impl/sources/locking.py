"""One writer for a folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LOCK_FILE", "locked"]

LOCK_FILE = ".lock"


@contextlib.contextmanager
def locked(folder: str | os.PathLike) -> Iterator[None]:
    """Makes a folder and holds it for this process; the lock goes with the process.

    Raises:
        FileExistsError: another process holds it.
        NotADirectoryError: it, or a parent, is a file.
        PermissionError: it cannot be written.
    """
    # Not on Windows, where tensorflow-text cannot be installed either.
    import fcntl

    folder = Path(folder)
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not place.is_dir():
        raise NotADirectoryError(f"cannot write {folder}: {place} is a file, not a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = (folder / LOCK_FILE).open("a+")
    except PermissionError:
        raise PermissionError(f"cannot write {folder}: no permission to write in {place}") from None
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise FileExistsError(
                f"{folder}: another process writes to it (number {file.read().strip() or '?'})"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
