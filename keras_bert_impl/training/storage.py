"""Folders of checkpoints, local or on a file system that TensorFlow knows (``gs://...``)."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["is_remote", "join", "local_copy", "names", "remove", "remove_partial", "upload"]


def is_remote(path: str) -> bool:
    """Whether a path names a file system, as ``gs://bucket/folder``."""
    return "://" in path


def join(folder: str, name: str) -> str:
    """A path within a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


def names(folder: str) -> list[str]:
    """What is in a folder; empty where there is none."""
    if is_remote(folder):
        gfile = _gfile()
        found = gfile.listdir(folder) if gfile.isdir(folder) else []
        return [name.rstrip("/") for name in found]
    return os.listdir(folder) if os.path.isdir(folder) else []


def upload(source: str | os.PathLike, target: str, *, last: str) -> None:
    """Copies the files of a local folder; the one named `last` comes last and makes it whole."""
    gfile = _gfile()
    gfile.makedirs(target)
    files = sorted(os.listdir(source), key=lambda name: (name == last, name))
    for name in files:
        gfile.copy(os.path.join(source, name), join(target, name), overwrite=True)


@contextlib.contextmanager
def local_copy(folder: str) -> Iterator[Path]:
    """The folder itself where it is local, else a copy for as long as the block runs."""
    if not is_remote(folder):
        yield Path(folder)
        return
    gfile = _gfile()
    with tempfile.TemporaryDirectory() as temporary:
        for name in names(folder):
            gfile.copy(join(folder, name), os.path.join(temporary, name))
        yield Path(temporary)


def remove(folder: str) -> None:
    """Removes a folder with all in it."""
    if is_remote(folder):
        _gfile().rmtree(folder)
    else:
        shutil.rmtree(folder)


def remove_partial(folder: str) -> None:
    """Removes what a process that was killed left half written by `keras_bert_impl.sources`."""
    if not is_remote(folder):
        for name in names(folder):
            if name.startswith(".") and name.endswith(".partial"):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def _gfile():
    import tensorflow as tf

    return tf.io.gfile
