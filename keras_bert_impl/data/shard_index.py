"""The index of one TFRecord file: where its records are, and what they hold.

Made by reading the file once through TensorFlow, which checks each record's check sum.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import shutil
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from keras_bert_impl.sources import atomic_file, cache_dir

__all__ = ["RecordKind", "ShardIndex", "build_index", "open_index"]

_VERSION = 1
_HEADER, _FOOTER = 12, 4  # length and its check sum; check sum of the data
_AT_ONCE = 1024
STATIC_KEYS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


class RecordKind(NamedTuple):
    """What the records of a file hold."""

    form: str
    token_key: str
    segment_key: str
    seq_length: int
    predictions: int
    has_sentence_task: bool
    has_words: bool


class ShardIndex:
    """Offsets and summary of a file, and reading of a record by its number.

    Attributes:
        file: as it was given.
        digest: SHA-256 of the unpacked file.
        form, seq_length, predictions, has_sentence_task: see `RecordKind`; `seq_length` of the
            dynamic form is that of the longest record.
        max_token_id, record_of_max_token_id: the largest token id and where it is.
    """

    def __init__(self, file: str, unpacked: str, content: dict):
        self.file, self._unpacked = file, unpacked
        self._offsets = content["offsets"]
        self.digest = str(content["digest"])
        self.kind = RecordKind(*json.loads(str(content["kind"])))
        self.form, self.has_sentence_task = self.kind.form, self.kind.has_sentence_task
        self.seq_length, self.predictions = self.kind.seq_length, self.kind.predictions
        self.max_token_id = int(content["max_token_id"])
        self.record_of_max_token_id = int(content["record_of_max_token_id"])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def read(self, number: int) -> bytes:
        """The serialized example."""
        start, end = self._offsets[number] + _HEADER, self._offsets[number + 1] - _FOOTER
        return self._bytes[start:end].tobytes()

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.memmap(self._unpacked, np.uint8, "r")


def open_index(file: str) -> ShardIndex:
    """The index beside a file or in the cache; made where there is none that fits.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `build_index`.
    """
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {file}")
    unpacked = _unpacked(path)
    stat = unpacked.stat()
    stamp = np.array([_VERSION, stat.st_size, stat.st_mtime_ns])
    places = [_beside(unpacked), _in_cache(unpacked, ".index.npz")]
    for place in places:
        if place.is_file():
            with np.load(place) as content:
                if np.array_equal(content["stamp"], stamp):
                    return ShardIndex(file, str(unpacked), _loaded(content))
    content = {"stamp": stamp, **build_index(str(unpacked), file)}
    for place in places:
        try:
            with atomic_file(place) as stream:
                np.savez(stream, **content)
            break
        except OSError:
            # A folder that cannot be written; the cache is next.
            continue
    return ShardIndex(file, str(unpacked), content)


def _loaded(content) -> dict:
    return {name: content[name] for name in content.files}


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.index.npz")


def _in_cache(path: Path, suffix: str) -> Path:
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:24]
    return cache_dir() / "shards" / f"{key}{suffix}"


def _unpacked(path: Path) -> Path:
    """The file itself, or what gzip made of it, in the cache."""
    with path.open("rb") as stream:
        if stream.read(2) != b"\x1f\x8b":
            return path
    stat = path.stat()
    target = _in_cache(path, f".{stat.st_size}.{stat.st_mtime_ns}.tfrecord")
    if not target.is_file():
        try:
            with gzip.open(path) as packed, atomic_file(target) as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
        except (EOFError, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: the gzip file is damaged: {error}") from None
    return target


def build_index(file: str, name: str | None = None) -> dict:
    """Reads a TFRecord file and checks each record.

    Args:
        file: not packed.
        name: for messages.

    Returns:
        Arrays: `offsets` int64 [N + 1], `kind`, `digest`, `max_token_id` and
        `record_of_max_token_id`.

    Raises:
        ValueError: the file is empty, truncated or damaged, or a record is no example of
            pre-training or of other lengths than the first; file and record are named.
    """
    name = name or file
    records = tf.data.TFRecordDataset(file, buffer_size=1 << 20)
    kind, parse = None, None
    lengths: list[np.ndarray] = []
    done, largest, where, longest = 0, -1, 0, 0
    batches = iter(records.batch(_AT_ONCE))
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            break
        except (tf.errors.DataLossError, tf.errors.OutOfRangeError):
            raise ValueError(
                f"{name}: damaged or truncated at record {_first_damaged(file, done)} (from 0)"
            ) from None
        if kind is None:
            kind = kind_of(batch[0].numpy(), name)
            parse = _parser(kind)
        try:
            token_ids = parse(batch)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(_parse_message(name, batch, done, kind, error)) from None
        in_record = tf.reduce_max(token_ids, axis=1).numpy()
        if in_record.max() > largest:
            largest, where = int(in_record.max()), done + int(in_record.argmax())
        longest = max(longest, int(token_ids.bounding_shape()[1]))
        lengths.append(tf.strings.length(batch).numpy())
        done += len(in_record)
    if kind is None:
        raise ValueError(f"{name}: the file holds no record")
    sizes = np.concatenate(lengths).astype(np.int64) + _HEADER + _FOOTER
    return {
        "offsets": np.concatenate([[0], np.cumsum(sizes)]),
        "kind": np.array(json.dumps(kind._replace(seq_length=longest))),
        "digest": np.array(_digest(file)),
        "max_token_id": np.array(largest),
        "record_of_max_token_id": np.array(where),
    }


def kind_of(record: bytes, name: str) -> RecordKind:
    """What a record holds, by its keys.

    Raises:
        ValueError: it is no example of pre-training.
    """
    example = tf.train.Example()
    try:
        example.ParseFromString(record)
    except DecodeError:
        raise ValueError(f"{name}: record 0 is no tf.train.Example") from None
    features = example.features.feature
    # Ours, Google's, and those of tf-models-official's `use_v2_feature_names`.
    for segment_key, token_key in (
        ("first_length", "token_ids"),
        ("segment_ids", "input_ids"),
        ("input_type_ids", "input_word_ids"),
    ):
        if token_key in features and segment_key in features:
            break
    else:
        raise ValueError(
            f"{name}: record 0 is no example of pre-training: expected the keys of Google's "
            f"create_pretraining_data.py (input_ids, masked_lm_positions ...), got "
            f"{sorted(features)}"
        )
    is_dynamic = token_key == "token_ids"
    if not is_dynamic:
        absent = [key for key in STATIC_KEYS if key not in features]
        if absent:
            raise ValueError(f"{name}: record 0 has no {absent[0]}, only {sorted(features)}")
    return RecordKind(
        form="dynamic" if is_dynamic else "static",
        token_key=token_key,
        segment_key=segment_key,
        seq_length=len(features[token_key].int64_list.value),
        predictions=0 if is_dynamic else len(features["masked_lm_positions"].int64_list.value),
        has_sentence_task=("is_random_next" if is_dynamic else "next_sentence_labels") in features,
        has_words="continues" in features,
    )


@functools.cache
def _parser(kind: RecordKind):
    """`_token_ids` as a function that is traced once for all files of a kind."""
    return tf.function(
        lambda records: _token_ids(records, kind),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )


def _token_ids(records: tf.Tensor, kind: RecordKind) -> tf.RaggedTensor:
    """Token ids of each record; checks the lengths of the static form."""
    if kind.form == "dynamic":
        spec = {kind.token_key: tf.io.RaggedFeature(tf.int64)}
        return tf.io.parse_example(records, spec)[kind.token_key]
    fixed = tf.io.FixedLenFeature
    spec = {
        kind.token_key: fixed([kind.seq_length], tf.int64),
        kind.segment_key: fixed([kind.seq_length], tf.int64),
        "masked_lm_positions": fixed([kind.predictions], tf.int64),
        "masked_lm_ids": fixed([kind.predictions], tf.int64),
        "masked_lm_weights": fixed([kind.predictions], tf.float32),
    }
    found = tf.io.parse_example(records, spec)[kind.token_key]
    return tf.RaggedTensor.from_tensor(found)


def _first_damaged(file: str, known_good: int) -> int:
    """Number of the first record that cannot be read."""
    number = known_good
    try:
        for _ in tf.data.TFRecordDataset(file).skip(known_good):
            number += 1
    except (tf.errors.DataLossError, tf.errors.OutOfRangeError):
        pass
    return number


def _parse_message(name: str, batch: tf.Tensor, before: int, kind: RecordKind, error) -> str:
    """Which record of a batch is of another kind, and how."""
    for place, record in enumerate(batch.numpy()):
        found = kind_of(record, f"{name}, record {before + place}")
        for field in ("token_key", "seq_length", "predictions"):
            ours, theirs = getattr(kind, field), getattr(found, field)
            if ours != theirs and not (kind.form == "dynamic" and field == "seq_length"):
                return (
                    f"{name}: record {before + place} has {field} {theirs!r}, and record 0 has "
                    f"{ours!r}"
                )
    return f"{name}: records {before} to {before + len(batch)}: {error.message.splitlines()[0]}"


def _digest(file: str) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
