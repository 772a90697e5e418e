"""Answers of a server against those of Python: widths, ties, tolerance, types."""

from __future__ import annotations

import re

import numpy as np
import pytest

from keras_bert_impl.serving.comparison import as_array, compare, join_rows

EXPECTATION = {"decisions": ["tags"], "measure": "scores", "tolerance": 1e-3}
EXPECTED = {
    "tags": as_array([["O", "B-X", "O"], ["B-Y", "", ""], ["O", "", ""], ["O", "", ""]]),
    "scores": as_array([[0.5, 0.9, 0.8], [0.25, 0.0, 0.0], [0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]),
    "count": as_array([3, 1, 1, 1]),
}


def problems(**changes):
    return compare(EXPECTATION, EXPECTED, {**EXPECTED, **changes}).problems


def test_lists_of_json():
    assert as_array([[1, 2]]).dtype == np.int32
    assert as_array([[1.0, 2.0]]).dtype == np.float32
    assert as_array([["a", "é"]]).tolist() == [[b"a", "é".encode()]]


def test_rows_may_be_wider_and_come_one_by_one():
    wide = {
        "tags": np.pad(EXPECTED["tags"], ((0, 0), (0, 2)), constant_values=b""),
        "scores": np.pad(EXPECTED["scores"], ((0, 0), (0, 2))),
    }
    assert problems(**wide) == []
    rows = [{key: value[row : row + 1] for key, value in EXPECTED.items()} for row in range(4)]
    narrow = {"tags": as_array([["B-Y"]]), "scores": as_array([[0.25]]), "count": as_array([1])}
    assert compare(EXPECTATION, EXPECTED, join_rows([rows[0], narrow, *rows[2:]])) == ([], 0.0)


def test_two_choices_that_are_equally_good():
    other, scores, count = (EXPECTED[name].copy() for name in ("tags", "scores", "count"))
    other[1, 0], count[1] = b"B-Z", 0
    assert problems(tags=other, count=count) == []
    scores[1, 0] = 0.3
    (message,) = problems(tags=other, scores=scores)
    assert message == "scores differ from Python's by 0.05, more than 0.001"
    other[2, 0] = b"B-Z"
    (message,) = problems(tags=other)
    assert message.startswith("tags differ from Python's in row 1: expected [[b'B-Y', b'', b'']], ")


def test_numbers_above_one_may_differ_by_a_part():
    expected = {"scores": as_array([100.0, 1.0])}
    expectation = {**EXPECTATION, "decisions": []}
    assert compare(expectation, expected, {"scores": as_array([100.05, 1.0])}).problems == []
    assert compare(expectation, expected, {"scores": as_array([100.0, 1.05])}).problems
    assert compare(expectation, expected, {"scores": as_array([100.0, float("nan")])}).problems


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"count": as_array([3, 2, 1, 1])},
            r"count differ from Python's in row 1: expected \[1\], got \[2\]",
        ),
        (
            {"count": as_array([3.0, 1.0, 1.0, 1.0])},
            r"expected count int32 \[4\], got float32 \[4\]",
        ),
        (
            {"count": as_array([[3], [1], [1], [1]])},
            r"expected count int32 \[4\], got int32 \[4, 1\]",
        ),
        ({"tags": as_array([["O"]])}, r"expected tags string \[4, 3\], got string \[1, 1\]"),
    ],
)
def test_messages(changes, message):
    (found,) = problems(**changes)
    assert re.search(message, found)


def test_missing_outputs():
    assert compare(EXPECTATION, EXPECTED, {"tags": EXPECTED["tags"]}).problems == [
        "outputs are missing: count, scores"
    ]
