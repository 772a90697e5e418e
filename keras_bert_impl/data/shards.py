"""Shards of pre-training examples, with random access to each record.

Two forms, told apart by the keys of their records. Static: Google's schema
(`create_pretraining_data.py`), masks drawn. Dynamic: unmasked packed pairs, see `records`.
"""

from __future__ import annotations

import bisect
import json
import operator
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePath

import numpy as np

from keras_bert_impl.data.corpus.files import find_files
from keras_bert_impl.data.manifest import FORMAT_VERSION
from keras_bert_impl.data.masking import Masking
from keras_bert_impl.data.shard_index import ShardIndex, open_index
from keras_bert_impl.sources import storage
from keras_bert_impl.sources.formats import check_format_version
from keras_bert_impl.text.vocab import Vocab

__all__ = ["MANIFEST_FILE", "Shards", "open_shards"]

MANIFEST_FILE = "manifest.json"


class Shards:
    """Records of several files, numbered through in the order of the files.

    Attributes:
        path: what was opened, for messages.
        form: ``"static"`` or ``"dynamic"``.
        max_seq_length: tokens of the rows that the records become.
        max_predictions: slots of a static record; of a dynamic one those of its manifest.
        has_sentence_task: whether records hold `is_random_next`.
        manifest: what `pretrain-data` noted; empty for other shards.
        failure: why a record could not be read, or None. TensorFlow, which runs `read`, hides the
            error's type and message.
    """

    def __init__(self, path: str, indexes: Sequence[ShardIndex], manifest: dict):
        self.path = path
        self.manifest = manifest
        self.failure: str | None = None
        self._indexes = list(indexes)
        first = self._indexes[0]
        self.kind = first.kind
        self.form = first.form
        self.has_sentence_task = first.has_sentence_task
        for index in self._indexes[1:]:
            for name in ("form", "has_sentence_task", "seq_length", "predictions"):
                if self.form == "dynamic" and name in ("seq_length", "predictions"):
                    continue
                if getattr(index, name) != getattr(first, name):
                    raise ValueError(
                        f"{index.file}: {name} is {getattr(index, name)!r}, and that of "
                        f"{first.file} is {getattr(first, name)!r}"
                    )
        self.max_seq_length = int(
            manifest.get("max_seq_length") or max(i.seq_length for i in self._indexes)
        )
        self.max_predictions = int(manifest.get("max_predictions") or first.predictions or 20)
        self._ends = np.cumsum([len(index) for index in self._indexes])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def description(self) -> str:
        """One line for people."""
        files = len(self._indexes)
        return (
            f"{self.path}: {len(self):,} {self.form} examples in {files} "
            f"file{'s' * (files > 1)}, {self.max_seq_length} tokens, {self.max_predictions} "
            f"predictions, {'with' if self.has_sentence_task else 'no'} sentence task"
        )

    def fingerprint(self) -> dict:
        """What a run depends on: the records, by their number, form and check sums."""
        return {
            "form": self.form,
            "records": len(self),
            "max_seq_length": self.max_seq_length,
            "max_predictions": self.max_predictions,
            "files": {PurePath(i.file).name: i.digest for i in self._indexes},
        }

    def check_manifest(self) -> None:
        """Compares the files with what their manifest says of them.

        Raises:
            ValueError: a file has another number of records, or longer ones.
        """
        noted = {row["file"]: row.get("examples") for row in self.manifest.get("shards", ())}
        for index in self._indexes:
            examples = noted.get(PurePath(index.file).name)
            if examples not in (None, len(index)):
                raise ValueError(
                    f"{index.file}: {len(index)} records, and {MANIFEST_FILE} says {examples}: "
                    "the file is truncated, or another one"
                )
            if index.seq_length > self.max_seq_length:
                raise ValueError(
                    f"{index.file}: a record has {index.seq_length} tokens, and {MANIFEST_FILE} "
                    f"says max_seq_length {self.max_seq_length}"
                )

    def check(
        self,
        *,
        vocab: Vocab | None = None,
        max_seq_length: int | None = None,
        max_predictions: int | None = None,
    ) -> None:
        """Compares the shards with what training expects.

        Raises:
            ValueError: another length or number of predictions (both numbers and the file are
                named), another vocabulary, or a token id beyond it (file and record).
        """
        for name, expected in (
            ("max_seq_length", max_seq_length),
            ("max_predictions", max_predictions),
        ):
            found = getattr(self, name)
            if expected is not None and expected != found:
                raise ValueError(
                    f"{self._indexes[0].file}: its {name} is {found}, and {expected} was asked for"
                )
        if vocab is None:
            return
        size = self.manifest.get("vocab_size", len(vocab))
        if size != len(vocab):
            raise ValueError(
                f"{self.path}: made with a vocabulary of {size} tokens, and the one given has "
                f"{len(vocab)}"
            )
        digest = vocab.sha256
        if self.manifest.get("vocab_sha256", digest) != digest:
            raise ValueError(
                f"{self.path}: made with another vocabulary of {size} tokens than the one given"
            )
        for index in self._indexes:
            if index.max_token_id >= len(vocab):
                raise ValueError(
                    f"{index.file}: record {index.record_of_max_token_id} holds token id "
                    f"{index.max_token_id}, and the vocabulary has {len(vocab)} tokens"
                )

    def read(self, numbers: np.ndarray) -> list[bytes]:
        """Records as they were serialized, by their numbers from 0.

        Raises:
            OSError: a file is gone, or no longer the one that was opened.
        """
        records = []
        for number in numbers.tolist():
            place = bisect.bisect_right(self._starts, number) - 1
            try:
                records.append(self._indexes[place].read(number - self._starts[place]))
            except OSError as error:
                self.failure = str(error)
                raise
        return records

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *self._ends[:-1].tolist()]


def open_shards(
    path: str | os.PathLike | Sequence[str | os.PathLike], *, split: str | None = None
) -> Shards | None:
    """Opens a folder of shards, a glob, a file or several.

    Each file is read once and checked whole; its index is kept beside it, or in the cache where
    its folder cannot be written. A file of ``gs://`` and alike is copied to the cache, once: what
    reads single records in random order must be near.

    Args:
        path: a folder with a manifest of `pretrain-data`, or files in Google's schema (``.gz``
            too); local or as `tf.io.gfile` knows them (``gs://...``).
        split: ``train`` or ``eval``, of a folder with a manifest; None: all.

    Returns:
        The shards; None where a folder with a manifest has none of that split.

    Raises:
        FileNotFoundError: no such files.
        ValueError: a file is truncated or damaged (file and record are named), or no example of
            pre-training.
    """
    folder = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if folder is not None and storage.exists(storage.join(folder, MANIFEST_FILE)):
        manifest = read_manifest(folder)
        names = [s["file"] for s in manifest["shards"] if split in (None, s["split"])]
        if not names:
            return None
        files = [storage.join(folder, name) for name in names]
    else:
        manifest, files = {}, _record_files(path)
    shards = Shards(str(path), [open_index(file) for file in files], manifest)
    shards.check_manifest()
    return shards


def _record_files(path) -> list[str]:
    if isinstance(path, str | os.PathLike) and storage.is_folder(os.fspath(path)):
        folder = os.fspath(path)
        names = sorted(
            storage.join(folder, name)
            for name in storage.names(folder)
            if ".tfrecord" in name and not name.startswith(".")
        )
        if not names:
            raise FileNotFoundError(
                f"{path}: neither {MANIFEST_FILE} nor *.tfrecord files are in this folder"
            )
        return names
    return find_files(path)


def read_manifest(folder: str) -> dict:
    """The manifest of a folder of shards.

    Raises:
        ValueError: it is damaged or of a newer format.
    """
    file = storage.join(folder, MANIFEST_FILE)
    try:
        manifest = json.loads(storage.read_text(file))
        version = manifest["format_version"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{file}: not a manifest of this package: {error!r}") from None
    check_format_version(file, version, FORMAT_VERSION)
    try:
        for row in manifest["shards"]:
            os.fspath(row["file"]), os.fspath(row["split"])
        for name in {"max_seq_length", "max_predictions", "vocab_size"} & manifest.keys():
            operator.index(manifest[name])
        Masking(**manifest.get("masking", {}))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file}: the manifest is damaged: {error!r}") from None
    return manifest
