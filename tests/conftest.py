"""Fixtures shared by all tests."""

from __future__ import annotations

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
