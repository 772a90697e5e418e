"""Our run folder: `keras_bert.json`, `labels.txt`, `model.weights.h5`.

The files of the tokenizer lie beside them; `text` writes and reads those.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.sources import atomic_write
from keras_bert_impl.sources.formats import check_format_version

__all__ = ["FORMAT_VERSION", "RunCheckpoint", "save_run"]

FORMAT_VERSION = 1
CONFIG_FILE = "keras_bert.json"
LABELS_FILE = "labels.txt"
WEIGHTS_FILE = "model.weights.h5"
PACKAGE = "keras_bert_impl"

_logger = logging.getLogger(__name__)


def save_run(model: keras.Model, folder: str | os.PathLike) -> None:
    """Writes a model into a folder; `keras_bert.json` comes last, so a folder with it is whole.

    Raises:
        FileExistsError: the folder holds a run already.
        ValueError: a label holds a line break.
    """
    folder = Path(folder)
    if (folder / CONFIG_FILE).exists():
        raise FileExistsError(f"{folder} holds a finished run; give another folder or remove it")
    settings = {
        name: value
        for name, value in model.get_config().items()
        if name not in ("name", "trainable", "frozen", "dtype", "labels")
    }
    labels = getattr(model, "labels", None)
    broken = [label for label in labels or () if "\n" in label or "\r" in label]
    if broken:
        raise ValueError(f"labels must not hold line breaks, got {broken}")
    folder.mkdir(parents=True, exist_ok=True)
    if labels is not None:
        atomic_write(folder / LABELS_FILE, "".join(f"{label}\n" for label in labels))
    _save_weights(model, folder / WEIGHTS_FILE)
    content = {
        "format_version": FORMAT_VERSION,
        "model": type(model).__name__,
        "settings": settings,
        "versions": {"keras": keras.__version__, "backend": keras.backend.backend()},
    }
    atomic_write(folder / CONFIG_FILE, json.dumps(content, indent=2) + "\n")


def _save_weights(model: keras.Model, file: Path) -> None:
    """Writes the weights without the state of the optimizer, which is twice as large."""
    temporary = file.with_name(f".{file.name}")
    optimizer, model.optimizer = getattr(model, "optimizer", None), None
    try:
        model.save_weights(temporary)
        os.replace(temporary, file)
    finally:
        model.optimizer = optimizer
        temporary.unlink(missing_ok=True)


class RunCheckpoint:
    """A folder that `save_run` wrote.

    Raises:
        FileNotFoundError: a file of the folder is missing.
        ValueError: the folder was written in a newer format, or a file is damaged.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        file = folder / CONFIG_FILE
        try:
            content = json.loads(file.read_text("utf-8"))
            check_format_version(file, content["format_version"], FORMAT_VERSION)
            self.model_name, self.settings = content["model"], content["settings"]
            self.config = BertConfig(**self.settings["config"])
        except KeyError as error:
            raise ValueError(f"{file}: not a run of this package: no {error} in it") from None
        except (json.JSONDecodeError, UnicodeDecodeError, TypeError) as error:
            raise ValueError(f"{file}: not a run of this package: {error}") from None
        self.weights_file = folder / WEIGHTS_FILE
        if not self.weights_file.is_file():
            raise FileNotFoundError(f"{self.weights_file}: no such file")
        self.num_classes = self.settings.get("num_classes")
        self.next_sentence = self.settings.get("next_sentence", True)
        self.labels = self._read_labels()

    def _read_labels(self) -> tuple[str, ...] | None:
        file = self.folder / LABELS_FILE
        if not file.is_file():
            return None
        labels = tuple(file.read_text("utf-8").removesuffix("\n").split("\n"))
        if len(labels) != self.num_classes:
            raise ValueError(
                f"{file}: expected {self.num_classes} labels, one a line, got {len(labels)}"
            )
        return labels

    def load_into(self, model: keras.Model) -> None:
        """Assigns every weight; of another kind of model only the encoder is taken.

        Raises:
            ValueError: the weights do not fit the model.
        """
        settings = {k: v for k, v in model.get_config().items() if k in self.settings}
        if type(model).__name__ == self.model_name and _same_shape(settings, self.settings):
            self._load_weights(model)
            return
        kind = keras.saving.get_registered_object(f"{PACKAGE}>{self.model_name}")
        if kind is None:
            raise ValueError(f"{self.folder / CONFIG_FILE}: unknown model {self.model_name!r}")
        saved = kind(**self.settings)
        self._load_weights(saved)
        target = getattr(model, "encoder", model)
        target.set_weights(getattr(saved, "encoder", saved).get_weights())
        if target is not model:
            _logger.warning("newly initialised: the head of %s", type(model).__name__)

    def _load_weights(self, model) -> None:
        try:
            model.load_weights(self.weights_file)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError(f"{self.weights_file}: cannot be loaded: {error}") from None


def _same_shape(ours: dict, theirs: dict) -> bool:
    return {**ours, "dropout": None} == {**theirs, "dropout": None}
