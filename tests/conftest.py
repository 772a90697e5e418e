"""Fixtures shared by all tests."""

from __future__ import annotations

import logging
import os
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


@pytest.fixture(autouse=True)
def _logging_as_before():
    """Commands set levels and handlers for their process, which tests share."""
    loggers = [logging.getLogger(name) for name in ("keras_bert_impl", "keras_bert_impl.sources")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers
