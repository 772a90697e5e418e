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
    """
    # Not on Windows, where tensorflow-text cannot be installed either.
    import fcntl

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("a+") as file:
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
