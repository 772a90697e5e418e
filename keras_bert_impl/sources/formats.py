"""What says that a file is the one that was written, and in a format that is known."""

from __future__ import annotations

import hashlib
import os

__all__ = ["check_format_version", "file_sha256"]


def check_format_version(file: str | os.PathLike, found, known: int) -> None:
    """Raises ValueError unless a record has the format that this package reads."""
    if found != known:
        raise ValueError(
            f"{file}: format_version {found!r} is not known (this version of the package reads "
            f"{known}): upgrade keras-bert-impl"
        )


def file_sha256(file: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
