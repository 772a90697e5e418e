"""Where files come from and how they are written: names -> local folders, atomic output.

``resolve`` turns what a user types (a folder, ``gs://...``, ``hf:ORG/NAME`` or ``minilm``) into a
local folder. ``atomic_folder``, ``atomic_file`` and ``atomic_write`` make an output appear complete
or not at all. ``storage`` is for paths that may be local or not.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from keras_bert_impl.sources.atomic import (
    atomic_file,
    atomic_folder,
    atomic_write,
    refuse_existing,
)
from keras_bert_impl.sources.hub import resolve_hub
from keras_bert_impl.sources.minilm import cache_dir, resolve_minilm
from keras_bert_impl.sources.storage import fetch, is_remote

__all__ = [
    "atomic_file",
    "atomic_folder",
    "atomic_write",
    "cache_dir",
    "refuse_existing",
    "resolve",
]


def resolve(source: str | os.PathLike[str]) -> Path:
    """Give the local folder that a source names, downloading it where needed.

    Args:
        source: A folder, also of a file system that TensorFlow knows (``"gs://..."``);
            ``"hf:ORG/NAME"`` or ``"hf:ORG/NAME@REVISION"`` for a model of the Hugging Face hub; or
            ``"minilm"`` for all-MiniLM-L6-v2 (L=6, H=384, uncased English).
            A path object is always a folder; write ``./minilm`` for a folder of that name.

    Returns:
        An existing local folder.

    Raises:
        FileNotFoundError: No such folder, no such model, or no source could be reached.
        NotADirectoryError: The path is a file.
        ValueError: An empty or malformed source.
    """
    if source == "minilm":
        return resolve_minilm()
    text = os.fspath(source)
    if not text:
        raise ValueError("source of weights is empty: expected a folder, hf:ORG/NAME or minilm")
    if isinstance(source, str) and text.startswith("hf:"):
        return resolve_hub(text)
    if is_remote(text):
        return fetch(text)
    path = Path(text).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise NotADirectoryError(
            f"{path} is a file: expected the folder that holds it (with config.json, vocab.txt "
            "and the weights)"
        )
    message = f"no such folder: {path}"
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", text):
        message += f" (for the model of that name on the Hugging Face hub write hf:{text})"
    raise FileNotFoundError(message)
