"""The index of one TFRecord file: where its records are, and what they hold.

Made by reading the file once through TensorFlow, which checks each record's check sum.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import os
import shutil
import zipfile
import zlib
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.shard_records import RecordKind, kind_of, parser_of, wrong_record
from keras_bert_impl.sources import atomic_file, cache_dir, storage
from keras_bert_impl.sources.formats import file_sha256

__all__ = ["ShardIndex", "build_index", "open_index"]

_VERSION = 2
_HEADER, _FOOTER = 12, 4  # length and its check sum; check sum of the data
_AT_ONCE = 1024
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class ShardIndex:
    """Offsets and summary of a file, and reading of a record by its number.

    Attributes:
        file: as it was given.
        digest: SHA-256 of the unpacked file.
        form, seq_length, predictions, has_sentence_task: see `RecordKind`; `seq_length` of the
            dynamic form is that of the longest record.
        max_token_id, record_of_max_token_id: the largest token id, those under masks included, and
            where it is.
    """

    def __init__(self, file: str, unpacked: str, content: dict):
        self.file, self._unpacked = file, unpacked
        self._stamp = tuple(content["stamp"].tolist())
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
        """The serialized example.

        Raises:
            OSError: the file is gone, or no longer the one that was opened.
        """
        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        # Not a memory map, in which a file that was cut short ends the process (SIGBUS).
        try:
            opened = _opened(self._unpacked, self._stamp)
            found = os.pread(opened.number, end - start, start)
        except OSError as error:
            raise OSError(f"{self.file}: record {number} cannot be read: {error}") from None
        length = end - start - _HEADER - _FOOTER
        if len(found) < end - start or int.from_bytes(found[:8], "little") != length:
            raise OSError(
                f"{self.file}: record {number} cannot be read: the file was cut short or changed "
                "since it was opened"
            )
        return found[_HEADER:-_FOOTER]


class _Opened:
    """A file that is open for as long as something refers to it."""

    def __init__(self, file: str):
        self.number = os.open(file, os.O_RDONLY)

    def __del__(self):
        if hasattr(self, "number"):
            os.close(self.number)


@functools.lru_cache(maxsize=128)
def _opened(file: str, stamp: tuple) -> _Opened:
    """The files read last; of the many that a folder may have not all can be open."""
    return _Opened(file)


def open_index(file: str) -> ShardIndex:
    """The index beside a file or in the cache; made where there is none that fits.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `build_index`.
    """
    if not storage.exists(file):
        raise FileNotFoundError(f"no such file: {file}")
    unpacked = _unpacked(file)
    stat = unpacked.stat()
    stamp = np.array([_VERSION, stat.st_size, stat.st_mtime_ns])
    places = [_beside(unpacked), _in_cache(str(unpacked.resolve()), ".index.npz")]
    for place in places:
        if place.is_file():
            # One that is damaged is made again.
            with contextlib.suppress(*_DAMAGED), np.load(place) as content:
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


def _in_cache(path: str, suffix: str) -> Path:
    key = hashlib.sha256(path.encode()).hexdigest()[:24]
    return cache_dir() / "shards" / f"{key}{suffix}"


def _unpacked(file: str) -> Path:
    """The file itself; or, in the cache, the copy of a remote one and what gzip made of one."""
    size, changed = storage.stamp(file)
    is_remote = storage.is_remote(file)
    key = file if is_remote else str(Path(file).resolve())
    target = _in_cache(key, f".{size}.{changed}.tfrecord")
    if is_remote and target.is_file():
        return target
    with storage.open_binary(file) as raw:
        is_packed = raw.peek(2)[:2] == b"\x1f\x8b"
        if not is_packed and not is_remote:
            return Path(file)
        if not target.is_file():
            stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
            try:
                with atomic_file(target) as plain:
                    shutil.copyfileobj(stream, plain, 1 << 20)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"{file}: the gzip file is damaged: {error}") from None
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
            pre-training, of other lengths than the first or with values out of range; file and
            record are named.
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
            kind = kind_of(batch[0].numpy(), f"{name}: record 0")
            parse = parser_of(kind)
        try:
            largest_ids, row_lengths, fine = parse(batch)
            all_fine = bool(tf.reduce_all(fine))
        except tf.errors.InvalidArgumentError:
            all_fine = False
        if not all_fine:
            raise ValueError(wrong_record(batch.numpy().tolist(), done, kind, name))
        in_record = largest_ids.numpy()
        if in_record.max() > largest:
            largest, where = int(in_record.max()), done + int(in_record.argmax())
        longest = max(longest, int(tf.reduce_max(row_lengths)))
        lengths.append(tf.strings.length(batch).numpy())
        done += len(in_record)
    if kind is None:
        raise ValueError(f"{name}: the file holds no record")
    sizes = np.concatenate(lengths).astype(np.int64) + _HEADER + _FOOTER
    return {
        "offsets": np.concatenate([[0], np.cumsum(sizes)]),
        "kind": np.array(json.dumps(kind._replace(seq_length=longest))),
        "digest": np.array(file_sha256(file)),
        "max_token_id": np.array(largest),
        "record_of_max_token_id": np.array(where),
    }


def _first_damaged(file: str, known_good: int) -> int:
    """Number of the first record that cannot be read."""
    number = known_good
    try:
        for _ in tf.data.TFRecordDataset(file).skip(known_good):
            number += 1
    except (tf.errors.DataLossError, tf.errors.OutOfRangeError):
        pass
    return number
