"""Files and folders, local or on a file system that TensorFlow knows (``gs://...``).

Paths of such file systems are strings: a `pathlib.Path` makes ``gs:/`` of ``gs://``. Local ones
need no TensorFlow here.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from keras_bert_impl.sources.atomic import atomic_folder, atomic_write
from keras_bert_impl.sources.minilm import cache_dir

__all__ = [
    "exists",
    "failures_told",
    "fetch",
    "filled",
    "is_folder",
    "is_remote",
    "join",
    "local_copy",
    "names",
    "new_folder",
    "open_binary",
    "read_text",
    "remove",
    "remove_partial",
    "stamp",
    "upload",
    "write_text",
]


def is_remote(path: str | os.PathLike) -> bool:
    """Whether a path names a file system, as ``gs://bucket/folder``."""
    return "://" in os.fspath(path)


def join(folder: str, name: str) -> str:
    """A path within a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


@contextlib.contextmanager
def failures_told(path: str) -> Iterator[None]:
    """Within the block, errors of TensorFlow's file systems become those of Python, with the path.

    Raises:
        FileNotFoundError, PermissionError, ValueError (an unknown file system), OSError (others).
    """
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        reason = " ".join(error.message.split()) or type(error).__name__
        if isinstance(error, tf.errors.NotFoundError):
            raise FileNotFoundError(f"{path}: no such file, folder or bucket ({reason})") from None
        if isinstance(error, tf.errors.PermissionDeniedError | tf.errors.UnauthenticatedError):
            raise PermissionError(f"{path}: access denied ({reason})") from None
        if isinstance(error, tf.errors.UnimplementedError):
            known = ", ".join(f"{name}://" for name in _gfile().get_registered_schemes() if name)
            raise ValueError(
                f"{path}: TensorFlow knows no such file system here, only {known} and local paths"
            ) from None
        raise OSError(f"{path}: cannot be reached ({reason})") from None


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    if not is_remote(path):
        return os.path.exists(path)
    with failures_told(path):
        return _gfile().exists(path)


def is_folder(path: str) -> bool:
    """Whether there is such a folder."""
    if not is_remote(path):
        return os.path.isdir(path)
    with failures_told(path):
        return _gfile().isdir(path)


def names(folder: str) -> list[str]:
    """What is in a folder; empty where there is none."""
    if not is_folder(folder):
        return []
    if not is_remote(folder):
        return os.listdir(folder)
    with failures_told(folder):
        return [name.rstrip("/") for name in _gfile().listdir(folder)]


def stamp(path: str) -> tuple[int, int]:
    """Size and time of the last change, by which a changed file is known."""
    if is_remote(path):
        with failures_told(path):
            found = _gfile().stat(path)
        return found.length, found.mtime_nsec
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def open_binary(path: str) -> BinaryIO:
    """Opens a file to read bytes, with `peek`."""
    if not is_remote(path):
        return open(path, "rb")
    return io.BufferedReader(_RemoteFile(path), 1 << 20)


def read_text(path: str) -> str:
    """The text of a UTF-8 file."""
    with open_binary(path) as file:
        return file.read().decode("utf-8")


def write_text(path: str, text: str) -> None:
    """Writes a UTF-8 file, which is the old one or the new one, whole."""
    if not is_remote(path):
        atomic_write(path, text)
        return
    gfile = _gfile()
    folder, _, name = path.rpartition("/")
    temporary = join(folder, f".{name}.{uuid.uuid4().hex[:8]}.partial")
    with failures_told(path):
        gfile.makedirs(folder)
        with gfile.GFile(temporary, "wb") as file:
            file.write(text.encode())
        gfile.rename(temporary, path, overwrite=True)


def upload(source: str | os.PathLike, target: str, *, last: str) -> None:
    """Copies what is in a local folder; the file named `last` comes last and makes it whole."""
    gfile = _gfile()
    files = [path for path in Path(source).rglob("*") if path.is_file()]
    found = [path.relative_to(source).as_posix() for path in files]
    with failures_told(target):
        for name in sorted(found, key=lambda name: (name == last, name)):
            place = join(target, name)
            gfile.makedirs(place.rpartition("/")[0])
            if gfile.exists(place):
                gfile.remove(place)
            gfile.copy(os.path.join(source, name), place)


@contextlib.contextmanager
def filled(folder: str, *, last: str) -> Iterator[Path]:
    """Yields a local folder whose files `folder` has at the end: itself, where it is local.

    Args:
        folder: local or not.
        last: the file that makes it whole, written last.
    """
    if not is_remote(folder):
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)
        upload(temporary, folder, last=last)


@contextlib.contextmanager
def new_folder(path: str, *, last: str, replace: bool = False) -> Iterator[Path]:
    """Yields a local folder that becomes `path` where the block succeeds.

    Args:
        path: local, which then appears at once and whole, or not.
        last: the file that makes one that is not local whole, written last.
        replace: of `atomic_folder`.
    """
    with (
        filled(path, last=last)
        if is_remote(path)
        else atomic_folder(path, replace=replace) as folder
    ):
        yield folder


@contextlib.contextmanager
def local_copy(folder: str) -> Iterator[Path]:
    """The folder itself where it is local, else a copy for as long as the block runs."""
    if not is_remote(folder):
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        _copy(folder, names(folder), temporary)
        yield Path(temporary)


def fetch(source: str) -> Path:
    """A local copy, in the cache, of a file or of the files of a model's folder.

    Folders within it, hidden files and shards are left out. What has changed since is fetched
    again.

    Raises:
        FileNotFoundError: there is no such file or folder.
    """
    folder = source
    chosen = [
        name
        for name in names(source)
        if not name.startswith(".")
        and ".tfrecord" not in name
        and not is_folder(join(source, name))
    ]
    if not chosen:
        if not exists(source):
            raise FileNotFoundError(f"no such file or folder: {source}")
        folder, _, name = source.rpartition("/")
        chosen = [name]
    stamps = [(name, *stamp(join(folder, name))) for name in sorted(chosen)]
    key = hashlib.sha256(json.dumps([source, stamps]).encode()).hexdigest()[:24]
    target = cache_dir() / "fetched" / key
    if not target.is_dir():
        # Another process may do the same.
        with contextlib.suppress(FileExistsError), atomic_folder(target) as temporary:
            _copy(folder, chosen, temporary)
    return target if folder == source else target / chosen[0]


def _copy(folder: str, chosen: list[str], target: str | os.PathLike) -> None:
    for name in chosen:
        path = join(folder, name)
        with failures_told(path):
            _gfile().copy(path, os.path.join(target, name))


def remove(path: str) -> None:
    """Removes a file, or a folder with all in it."""
    if is_remote(path):
        with failures_told(path):
            (_gfile().rmtree if is_folder(path) else _gfile().remove)(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def remove_partial(folder: str) -> None:
    """Removes what a process that was killed left half written in a folder."""
    for name in names(folder):
        if name.startswith(".") and name.endswith(".partial"):
            remove(join(folder, name))


class _RemoteFile(io.RawIOBase):
    """What `io.BufferedReader` needs of a file of `tf.io.gfile`."""

    def __init__(self, path: str):
        self._path = path
        with failures_told(path):
            self._file = _gfile().GFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        with failures_told(self._path):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _gfile():
    import tensorflow as tf

    return tf.io.gfile
