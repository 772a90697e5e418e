"""Weights of Hugging Face's BertModel family, read from safetensors files.

Source of the names: transformers `models/bert/modeling_bert.py`; both naming eras (LayerNorm
gamma/beta and weight/bias), with and without the `bert.` prefix, in one file or sharded.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl.checkpoints import weight_map
from keras_bert_impl.checkpoints.weight_map import HEADS, TIED
from keras_bert_impl.config import BertConfig

__all__ = ["HuggingFaceCheckpoint", "LoadReport"]

_logger = logging.getLogger(__name__)

# Heads of the family: a file may hold them, and a model without such a head leaves them unused.
HEAD_NAMES = ("cls.", "classifier.", "qa_outputs.")
# The head of several of its classes: the config tells which, and any number of outputs occurs.
SHARED_NAME = "classifier."
# Buffers, not weights.
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
PREFIX = "bert."


class LoadReport(NamedTuple):
    """What became of each tensor: names in the file, or paths of ours for `initialised`."""

    loaded: tuple[str, ...]
    initialised: tuple[str, ...]
    unused: tuple[str, ...]


class HuggingFaceCheckpoint:
    """A folder with `config.json` and safetensors.

    Attributes:
        config: a `BertConfig`.
        model_name: our class with the head that the folder holds, or None.
        num_classes, labels: of a classifier of texts or tokens, or None.
        next_sentence: whether a pretrainer has the head for it; True where there is none.

    Raises:
        FileNotFoundError: a shard that the index names is missing.
        ValueError: the config is no BERT, or a file is damaged.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.config = BertConfig.from_file(folder / "config.json", family="huggingface")
        values = json.loads((folder / "config.json").read_text("utf-8-sig"))
        self.labels = _read_labels(values)
        self._files = _tensor_files(folder)
        self.model_name = _model_name(values.get("architectures"), self._files)
        self.num_classes = None
        is_classifier = self.model_name in ("BertClassifier", "BertTokenClassifier")
        if is_classifier and "classifier.weight" in self._files:
            self.num_classes = self._files["classifier.weight"].shape[0]
        self.next_sentence = "cls.seq_relationship.weight" in self._files or not any(
            name.startswith("cls.") for name in self._files
        )

    def load_into(self, model) -> LoadReport:
        """Assigns every weight of a `BertEncoder`, or of a model with an `encoder` and a head.

        A pooler or head that the file lacks keeps its new initial values, which is logged.

        Raises:
            ValueError: tensors are missing, unknown or of another shape; the message lists all.
                Nothing is assigned then.
        """
        encoder = getattr(model, "encoder", model)
        required = weight_map.encoder_rows(encoder)
        optional = [weight_map.pooler_rows(encoder), *self._head_rows(model)]

        present = self._present()
        rows = list(required)
        for group in optional:
            if self._fits(group, present):
                rows += group
        filled = {id(row.variable) for row in rows}
        initialised = [v.path for v in model.weights if _is_weight(v) and id(v) not in filled]
        report = self._with_tied(self._match(rows, present, initialised), present)
        for row in rows:
            value = self._read(present[row.name])
            row.variable.assign(value.T if row.transpose else value)
        self._log(report)
        return report

    def _present(self) -> dict[str, str]:
        """Name in our table -> name in the file."""
        present = {}
        for key in self._files:
            other = present.setdefault(_our_name(key), key)
            if other != key:
                raise ValueError(f"{self.folder}: {other} and {key} are the same weight")
        for second, first in TIED.items():
            if second in present and first not in present:
                present[first] = present.pop(second)
        return present

    def _head_rows(self, model) -> list[list[weight_map.WeightRow]]:
        kind = next((c.__name__ for c in type(model).__mro__ if c.__name__ in HEADS), None)
        groups = HEADS[kind].rows(model) if kind else []
        is_own = kind == self.model_name
        return [rows for rows in groups if is_own or not rows[0].name.startswith(SHARED_NAME)]

    def _fits(self, group, present) -> bool:
        """Whether an optional head is there; one for another number of outputs is not ours."""
        if not any(row.name in present for row in group):
            return False
        return not group[0].name.startswith(SHARED_NAME) or all(
            row.name in present and self._files[present[row.name]].shape == _shape_of(row)
            for row in group
        )

    def _match(self, rows, present, initialised) -> LoadReport:
        wanted = {row.name for row in rows}
        missing = sorted(wanted - set(present))
        unused = sorted(set(present) - wanted)
        heads = tuple(present[name] for name in unused if name.startswith((*HEAD_NAMES, "pooler.")))
        extra = sorted(
            present[name]
            for name in unused
            if not name.startswith((*HEAD_NAMES, "pooler.")) and name not in BUFFERS
        )
        shapes = {
            present[row.name]: (self._files[present[row.name]].shape, _shape_of(row))
            for row in rows
            if row.name in present
        }
        shaped = [
            f"{key}: file {theirs}, model {ours}"
            for key, (theirs, ours) in shapes.items()
            if theirs != ours
        ]
        if missing or extra or shaped:
            raise ValueError(
                f"{self.folder}: the weights do not fit the config.\n"
                f"missing in the file ({len(missing)}): {missing}\n"
                f"unknown in the file ({len(extra)}): {extra}\n"
                f"of another shape ({len(shaped)}): {shaped}"
            )
        loaded = tuple(sorted(present[row.name] for row in rows))
        return LoadReport(loaded, tuple(initialised), heads)

    def _with_tied(self, report: LoadReport, present) -> LoadReport:
        """Counts second names of what an MLM head loaded as loaded; their values must be equal."""
        if present.get("cls.predictions.bias") not in report.loaded:
            return report
        seconds = tuple(name for name in TIED if name in present)
        for second in seconds:
            first = present[TIED[second]]
            if not np.array_equal(self._read(second), self._read(first)):
                raise ValueError(
                    f"{self.folder}: {second} must equal {first}, to which the model ties it; a "
                    "decoder of its own is not supported"
                )
        unused = tuple(name for name in report.unused if name not in seconds)
        return report._replace(loaded=tuple(sorted((*report.loaded, *seconds))), unused=unused)

    def _log(self, report: LoadReport) -> None:
        _logger.info("%s: %d tensors loaded", self.folder, len(report.loaded))
        if report.initialised:
            _logger.warning(
                "newly initialised, since %s has no such weights: %s",
                self.folder,
                ", ".join(report.initialised),
            )
        if report.unused:
            _logger.info("not used by this model: %s", ", ".join(report.unused))

    def _read(self, key: str) -> np.ndarray:
        with _open(self._files[key].file) as tensors:
            return np.asarray(tensors.get_tensor(key)).astype("float32")


def _shape_of(row) -> tuple[int, ...]:
    shape = tuple(row.variable.shape)
    return shape[::-1] if row.transpose else shape


def _model_name(architectures, names) -> str | None:
    """Our class for the folder's, or, without `architectures`, for the names of its tensors."""
    if architectures:
        kinds = {kind: name for name, head in HEADS.items() for kind in head.architectures}
        return next((kinds[kind] for kind in architectures if kind in kinds), None)
    by_tensor = {
        "classifier.weight": "BertClassifier",
        "cls.predictions.bias": "BertPretrainer",
        "qa_outputs.weight": "BertSpanPredictor",
    }
    return next((kind for tensor, kind in by_tensor.items() if tensor in names), None)


def _our_name(key: str) -> str:
    name = key.removeprefix(PREFIX)
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        if name.endswith(f"LayerNorm{old}"):
            name = name.removesuffix(old) + new
    return name


def _open(file: Path):
    import safetensors

    try:
        return safetensors.safe_open(file, framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{file}: not a readable safetensors file: {error}") from None


class _Place(NamedTuple):
    """Where a tensor lies, and its shape."""

    file: Path
    shape: tuple[int, ...]


def _tensor_files(folder: Path) -> dict[str, _Place]:
    """Tensor name -> its place."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if not (folder / names[0]).is_file():
        try:
            names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{index}: expected an object 'weight_map': {error}") from None
    files = {}
    for name in names:
        file = folder / name
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file, though {index.name} names it")
        with _open(file) as tensors:
            for key in tensors.keys():  # noqa: SIM118 (not a dict)
                files[key] = _Place(file, tuple(tensors.get_slice(key).get_shape()))
    return files


def _read_labels(values: dict) -> tuple[str, ...] | None:
    """The label names of a fine-tuned model, in the order of its outputs."""
    names = values.get("id2label")
    if not isinstance(names, dict):
        return None
    return tuple(str(names[key]) for key in sorted(names, key=int))


def _is_weight(variable) -> bool:
    return "seed_generator" not in variable.path
