"""JSON that the standard reader lets through or dies of, in each reader that takes JSON."""

from __future__ import annotations

import io
import json

import pytest

from keras_bert_impl.data.choices import read_choices
from keras_bert_impl.data.label_sets import read_label_sets
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.readers import read_labelled
from keras_bert_impl.data.rows import read_rows
from keras_bert_impl.data.tagged_json import read_spans

DEEP = b'{"text": ' + b"[" * 200_000
LONG = b'{"text": ' + b"1" * 5000 + b"}"
HALF = "\ud800"


def choices(source):
    return read_choices(source, "jsonl")


def label_sets(source):
    return read_label_sets(source, format="jsonl")


def labelled(source):
    return read_labelled(source, format="jsonl")


@pytest.mark.parametrize(
    "read", [lambda source: list(read_rows(source, "jsonl")), read_spans, choices, read_questions]
)
@pytest.mark.parametrize(
    ("content", "message"), [(DEEP, "nested too deeply"), (LONG, "a number has too many digits")]
)
def test_what_json_cannot_hold(read, content, message):
    with pytest.raises(ValueError, match=f"^<stream>.*: not valid JSON: .*{message}"):
        read(io.BytesIO(content))


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (choices, {"prompt": "a", "choices": {}}, "expected an array of strings, got an object"),
        (choices, {"prompt": "a", "choices": ["b", 1]}, "element 1: expected a string, got a n"),
        (label_sets, {"text": "a", "labels": "b"}, "expected an array of strings, got a string"),
        (label_sets, {"text": "a", "labels": ["b", 1]}, "expected strings, got a number"),
    ],
)
def test_arrays_of_strings(read, value, message):
    with pytest.raises(ValueError, match=f"^<stream>:1: key '[a-z]+': {message}"):
        read(io.BytesIO(json.dumps(value).encode() + b"\n"))


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_spans, {"text": f"ab {HALF}", "label": {}}),
        (read_spans, {"text": "ab", "label": {HALF: {"a": [[0, 0]]}}}),
        (choices, {"prompt": "a", "choices": ["b", HALF], "label": 0}),
        (choices, {"prompt": "a", "choices": ["b", "c"], "label": HALF}),
        (read_questions, {"question": "a", "context": "b", "answers": [{"text": HALF}]}),
        (label_sets, {"text": HALF, "labels": ["a"]}),
        (label_sets, {"text": "a", "labels": ["b", HALF]}),
        (labelled, {"text": HALF, "label": "a"}),
        (labelled, {"text": "a", "label": HALF}),
    ],
)
def test_half_a_surrogate_pair_is_refused_where_it_stands(read, value):
    with pytest.raises(ValueError, match=r"^<stream>:1.*: half of a surrogate pair is not text"):
        read(io.BytesIO(json.dumps(value).encode() + b"\n"))
