"""Outputs of a SavedModel against those that Python computed; needs NumPy alone.

A server fills rows up to the longest of its request, so arrays of other widths are equal where
they differ in "" or 0 behind the row only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Comparison", "as_array", "compare", "join_rows"]

Outputs = Mapping[str, np.ndarray]


class Comparison(NamedTuple):
    """What differs, one message each, and the largest difference of a number."""

    problems: list[str]
    difference: float


def as_array(values: list) -> np.ndarray:
    """Nested lists of JSON: strings as UTF-8, integers as int32, other numbers as float32."""
    array = np.array(values, object)
    kinds = {type(value) for value in array.flat}
    if kinds == {str}:
        return np.array([value.encode() for value in array.flat], object).reshape(array.shape)
    return array.astype(np.float32 if float in kinds else np.int32)


def join_rows(answers: list[Outputs]) -> dict[str, np.ndarray]:
    """Answers to requests of one row each -> one answer."""
    joined = {}
    for name in answers[0]:
        parts = [answer[name] for answer in answers]
        shape = np.max([part.shape[1:] for part in parts], axis=0).astype(int)
        joined[name] = np.concatenate([_widened(part, shape) for part in parts])
    return joined


def compare(expectation: Mapping[str, Any], expected: Outputs, got: Outputs) -> Comparison:
    """Compares the answers to one request.

    Numbers may differ by `tolerance`, those above 1 by that part of them. A row in which a
    decision differs is right where its `measure` does not: two choices are equally good. More
    than a quarter of such rows is no chance.

    Args:
        expectation: has `tolerance`, `decisions` (names of outputs) and `measure` (name of one).
        expected: what Python computed.
        got: what the SavedModel answered.
    """
    missing = sorted(set(expected) - set(got))
    if missing:
        return Comparison([f"outputs are missing: {', '.join(missing)}"], 0.0)
    problems = [
        f"expected {name} {_kind(array)}, got {_kind(got[name])}"
        for name, array in expected.items()
        if not _is_alike(array, got[name])
    ]
    if problems:
        return Comparison(problems, 0.0)
    tolerance = expectation["tolerance"]
    pairs = {name: _same_width(array, got[name]) for name, array in expected.items()}
    rows = len(next(iter(expected.values())))
    undecided = np.zeros(rows, bool)
    for name in expectation["decisions"]:
        undecided |= _rows(pairs[name][0] != pairs[name][1])
    undecided &= np.count_nonzero(undecided) <= rows // 4
    distances = {name: _distance(*pair) for name, pair in pairs.items() if _is_float(pair)}
    largest = max((float(d.max(initial=0)) for d in distances.values()), default=0.0)
    for name, pair in pairs.items():
        among = np.ones(rows, bool) if name == expectation["measure"] else ~undecided
        if name in distances:
            difference = float(distances[name][among].max(initial=0))
            if not difference <= tolerance:
                problems.append(
                    f"{name} differ from Python's by {difference:.2g}, more than {tolerance:g}"
                )
        elif (wrong := _rows(pair[0] != pair[1]) & among).any():
            row = int(np.flatnonzero(wrong)[0])
            wanted, found = (array[row : row + 1].tolist() for array in pair)
            problems.append(
                f"{name} differ from Python's in row {row}: expected {wanted}, got {found}"
            )
    return Comparison(problems, largest)


def _is_alike(first: np.ndarray, second: np.ndarray) -> bool:
    same = (first.dtype, first.ndim) == (second.dtype, second.ndim)
    return same and len(first) == len(second)


def _is_float(pair: tuple[np.ndarray, np.ndarray]) -> bool:
    return pair[0].dtype == np.float32


def _kind(array: np.ndarray) -> str:
    kind = "string" if array.dtype == object else array.dtype.name
    return f"{kind} {list(array.shape)}"


def _same_width(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shape = np.maximum(first.shape, second.shape)[1:]
    return _widened(first, shape), _widened(second, shape)


def _widened(array: np.ndarray, shape: np.ndarray) -> np.ndarray:
    room = [(0, 0), *((0, int(width) - n) for n, width in zip(array.shape[1:], shape, strict=True))]
    return np.pad(array, room, constant_values=b"" if array.dtype == object else 0)


def _distance(expected: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Difference of each row, float32 [N]; what is not a number is infinitely far away."""
    distance = np.abs(got - expected) / np.maximum(np.abs(expected), 1)
    return np.nan_to_num(distance.reshape(len(distance), -1).max(axis=1), nan=np.inf)


def _rows(different: np.ndarray) -> np.ndarray:
    return different.reshape(len(different), -1).any(axis=1)
