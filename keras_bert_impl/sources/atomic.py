"""Output that appears complete or not at all: written beside its place, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_file", "atomic_folder", "atomic_write", "refuse_existing"]

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block succeeds.

    The temporary folder lies beside ``path`` (same file system) and is removed on any error, so
    ``path`` is never half written. Missing parent folders are created.

    Args:
        path: The folder to make. It may exist if it is empty.
        replace: Also take the place of a folder that is not empty.

    Yields:
        The temporary folder.

    Raises:
        FileExistsError: ``path`` is a file, or a folder that is not empty without ``replace``.
        PermissionError: The parent folder cannot be written.
        NotADirectoryError: A parent is a file.
        OSError: No disk space is left (``errno.ENOSPC``).
    """
    target = Path(os.path.realpath(path))
    _check_free(target, replace)
    temporary = _temporary(target)
    try:
        with _disk_full_said(target):
            _begin(target, temporary.mkdir)
            yield temporary
        _check_free(target, replace)
        _move(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a stream into a temporary file that takes the place of ``path`` on success.

    ``path`` stays as it was, or absent, on any error.

    Raises:
        IsADirectoryError: ``path`` is a folder.
        PermissionError: The parent folder cannot be written.
        NotADirectoryError: A parent is a file.
        OSError: No disk space is left (``errno.ENOSPC``).
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {target}: it is a folder")
    temporary = _temporary(target)
    with _disk_full_said(target):
        _begin(target, temporary.touch)
        try:
            with temporary.open("wb") as file:
                yield file
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file (text as UTF-8) so that it is either the old one or the new one, complete.

    Raises:
        OSError: As ``atomic_file``.
    """
    with atomic_file(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raises FileExistsError for a file or device that is there, unless it may be replaced."""
    if path.exists() and not path.is_dir() and not overwrite:
        raise FileExistsError(f"{path} exists: name another file, or replace it with --force")


def _temporary(target: Path) -> Path:
    # Not from tempfile: its folders are for the owner alone, and a server reads these as another.
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")


def _begin(target: Path, make_temporary: Callable[[], None]) -> None:
    """Make the parent folder and the temporary folder or file in it."""
    place = next(folder for folder in target.parents if folder.exists())
    if not place.is_dir():
        raise NotADirectoryError(f"cannot write {target}: {place} is a file, not a folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        make_temporary()
    except OSError as error:
        if error.errno in _REFUSED:
            raise PermissionError(
                f"cannot write {target}: no permission to write in {place}"
            ) from error
        raise


def _check_free(target: Path, replace: bool) -> None:
    if target.is_dir():
        if not replace and any(target.iterdir()):
            raise FileExistsError(
                f"output folder {target} is not empty: name another folder or remove it first"
            )
    elif target.exists():
        raise FileExistsError(f"cannot make folder {target}: a file of that name is in its place")


def _move(temporary: Path, target: Path) -> None:
    if not target.is_dir():
        os.rename(temporary, target)
        return
    old = _temporary(target)
    os.rename(target, old)
    try:
        os.rename(temporary, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _disk_full_said(target: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Not only OSError: libraries that write files in C++ or Rust have error types of their own.
        if getattr(error, "errno", None) in _FULL or "no space left" in str(error).lower():
            raise OSError(errno.ENOSPC, f"no disk space left to write {target}") from error
        raise
