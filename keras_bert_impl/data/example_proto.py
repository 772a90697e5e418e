"""Many ``tf.train.Example`` messages at once, by arrays.

Python's protocol buffers take about 100 us for an example of pre-training; this takes a few. Nearly
all of a message are varints: lengths, integers, and tags and letters of keys (varints of one byte).
So a message is laid out as a sequence of symbols with their widths in bytes, and all symbols of
many messages are written together. Only the bytes of floats are no varints.

Source: tensorflow ``core/example/feature.proto``; protobuf.dev/programming-guides/encoding.

Shapes: N messages, K values of a feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

__all__ = ["RaggedInts", "encode_examples"]

_FIELD_1, _FIELD_2, _FIELD_3 = 0x0A, 0x12, 0x1A
_FLOAT_LIST, _INT64_LIST = _FIELD_2, _FIELD_3


class RaggedInts(NamedTuple):
    """Integers of N messages one behind the other.

    Attributes:
        values: int [sum of lengths].
        starts: int64 [N + 1], where each message's values start, and the end.
    """

    values: np.ndarray
    starts: np.ndarray


class _Part(NamedTuple):
    """Symbols of each message: [N, K], or flat with the `counts` [N] of each message."""

    symbols: np.ndarray
    widths: np.ndarray
    counts: np.ndarray | int


def encode_examples(features: Mapping[str, np.ndarray | RaggedInts]) -> list[bytes]:
    """Serializes N examples, byte for byte as ``SerializeToString(deterministic=True)`` does.

    Args:
        features: by key, at least one value in each message: integers from 0 to 2**31 - 1 or
            float32 [N, K], or `RaggedInts`. Keys are ASCII and shorter than 128.

    Returns:
        N messages.
    """
    bodies = []
    size = 0
    for key in sorted(features):
        head, payload, entry_size = _feature(key, features[key])
        bodies += [head, payload]
        size = size + entry_size
    size = np.asarray(size)
    return _write([_fixed([_FIELD_1, size], len(size)), *bodies])


def _feature(key: str, values: np.ndarray | RaggedInts) -> tuple[_Part, _Part, np.ndarray]:
    """Head and payload of an entry of the map of features, and its size in bytes, int64 [N]."""
    kind = _INT64_LIST
    if isinstance(values, RaggedInts):
        widths = _widths(values.values)
        sizes = np.add.reduceat(widths, values.starts[:-1], dtype=np.int64)
        payload = _Part(values.values, widths, np.diff(values.starts))
    elif values.dtype == np.float32:
        raw = np.ascontiguousarray(values, "<f4").view(np.uint8)
        sizes = np.full(len(raw), raw.shape[1], np.int64)
        payload = _Part(raw, np.ones(raw.shape, np.uint8), raw.shape[1])
        kind = _FLOAT_LIST
    else:
        widths = _widths(values)
        sizes = widths.sum(axis=1, dtype=np.int64)
        payload = _Part(values, widths, values.shape[1])
    list_size = 1 + _widths(sizes) + sizes
    feature_size = 1 + _widths(list_size) + list_size
    entry_size = 2 + len(key) + 1 + _widths(feature_size) + feature_size
    head = [_FIELD_1, entry_size, _FIELD_1, len(key), *key.encode("ascii"), _FIELD_2, feature_size]
    head += [kind, list_size, _FIELD_1, sizes]
    return _fixed(head, len(sizes)), payload, 1 + _widths(entry_size) + entry_size


def _fixed(symbols: list[int | np.ndarray], rows: int) -> _Part:
    matrix = np.empty((rows, len(symbols)), np.int64)
    for column, symbol in enumerate(symbols):
        matrix[:, column] = symbol
    return _Part(matrix, _widths(matrix), len(symbols))


def _widths(values: np.ndarray) -> np.ndarray:
    """Bytes of the varint of each value, uint8."""
    widths = np.ones(values.shape, np.uint8)
    largest = values.max(initial=0)
    limit = 1 << 7
    while largest >= limit:
        widths += values >= limit
        limit <<= 7
    return widths


def _write(parts: list[_Part]) -> list[bytes]:
    rows = len(parts[0].symbols)
    per_row = np.zeros(rows, np.int64)
    for part in parts:
        per_row += part.counts
    ends = np.cumsum(per_row)
    symbols = np.empty(ends[-1] if rows else 0, np.int32)
    widths = np.empty(len(symbols), np.uint8)
    place = ends - per_row
    for part in parts:
        if isinstance(part.counts, int):
            target = place[:, None] + np.arange(part.counts)
        else:
            before = np.cumsum(part.counts) - part.counts
            target = np.repeat(place - before, part.counts) + np.arange(len(part.symbols))
        symbols[target] = part.symbols
        widths[target] = part.widths
        place = place + part.counts
    after = np.cumsum(widths, dtype=np.int64)
    data = _varints(symbols, widths, after - widths).tobytes()
    bounds = [0, *after[ends - 1].tolist()]
    return [data[start:end] for start, end in pairwise(bounds)]


def _varints(symbols: np.ndarray, widths: np.ndarray, places: np.ndarray) -> np.ndarray:
    total = int(places[-1] + widths[-1]) if len(places) else 0
    data = np.empty(total, np.uint8)
    # Bytes of floats have width 1 and stay whole.
    data[places] = np.where(widths == 1, symbols, symbols | 0x80)
    left = np.flatnonzero(widths > 1)
    byte = 1
    while len(left):
        values = (symbols[left] >> (7 * byte)) & 0x7F
        more = widths[left] > byte + 1
        data[places[left] + byte] = values | (more * 0x80)
        left = left[more]
        byte += 1
    return data
