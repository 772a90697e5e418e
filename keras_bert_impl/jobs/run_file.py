"""`training.json`: what a run was trained for, and how."""

from __future__ import annotations

import json
from pathlib import Path

from keras_bert_impl.sources.formats import check_format_version

__all__ = ["FORMAT_VERSION", "RUN_FILE", "read_run_file"]

FORMAT_VERSION = 1
RUN_FILE = "training.json"


def read_run_file(file: Path) -> dict:
    """Its content; empty where there is no such file.

    Raises:
        ValueError: it is damaged, or of a newer format.
    """
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: not written by this package: {error}") from None
    version = content.get("format_version") if isinstance(content, dict) else None
    if version is None:
        raise ValueError(f"{file}: not written by this package: no format_version")
    check_format_version(file, version, FORMAT_VERSION)
    return content
