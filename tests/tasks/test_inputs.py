"""Which columns a second file is read from, and texts without labels."""

from __future__ import annotations

import io

import pytest

from keras_bert_impl.data.columns import Columns
from keras_bert_impl.tasks.inputs import InputOptions, iterate_inputs, read_examples

NAMED = Columns("review", None, "stars")
NUMBERED = Columns(1, None, 0)
PAIRS = Columns(0, 1, 2)


def file_of(tmp_path, text: str, name: str = "data.tsv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("content", "before"),
    [
        ("id\tstars\treview\n1\tgood\ta b\n2\tbad\tc d\n", NAMED),
        ("label\treview\tlabel\n1\ta b\tgood\n2\tc d\tbad\n", Columns("review", None, 2)),
        ("good\ta b\nbad\tc d\n", NUMBERED),
        ("text\tlabel\na b\tgood\nc d\tbad\n", NUMBERED),
        ("text\tlabel\na b\tgood\nc d\tbad\n", NAMED),
        ("\ufefftext\tlabel\r\na b\tgood\r\nc d\tbad\r\n", NUMBERED),
    ],
    ids=[
        "same names",
        "a name and a number",
        "same numbers",
        "header after none",
        "other names",
        "BOM and CRLF",
    ],
)
def test_a_second_file_is_read_as_the_first_where_it_looks_like_it(tmp_path, content, before):
    examples = read_examples(file_of(tmp_path, content), InputOptions(), before)
    assert (examples.texts, examples.labels) == (["a b", "c d"], ["good", "bad"])


def test_what_the_user_says_counts_more(tmp_path):
    path = file_of(tmp_path, "id\tstars\treview\tmood\n1\tgood\ta b\tsad\n2\tbad\tc d\tgay\n")
    examples = read_examples(path, InputOptions(text="review", label="mood"), NAMED)
    assert examples.labels == ["sad", "gay"]


def test_json_lines_after_a_table(tmp_path):
    path = file_of(tmp_path, '{"review": "a b", "stars": 1}\n', "data.jsonl")
    assert read_examples(path, InputOptions(), NAMED).labels == ["1"]


def texts_of(content: str, *args, **options) -> list:
    stream = io.BytesIO(content.encode())
    return [(r.text, r.pair) for r in iterate_inputs(stream, InputOptions(**options), *args)]


def test_a_stream_of_lines_gives_a_row_each():
    assert texts_of("a b\n\n  \nc\n\n", NAMED, False) == [
        *(("a b", None), ("", None), ("  ", None), ("c", None), ("", None)),
    ]
    assert texts_of("\n\n", NAMED, False) == [("", None), ("", None)]


def test_two_columns_are_a_pair_where_pairs_are_wanted():
    assert texts_of("a\tb\nc\td\n", PAIRS, True) == [("a", "b"), ("c", "d")]
    assert texts_of("sentence1\tsentence2\na\tb\n", PAIRS, True) == [("a", "b")]


def test_a_file_with_the_columns_of_the_training_file(tmp_path):
    content = "stars\treview\tid\n\ta b\t1\n\tc d\t2\n"
    assert texts_of(content, NAMED, False) == [("a b", None), ("c d", None)]
    path = file_of(tmp_path, "x y\tz w\tgood\na b\tc d\tbad\n")
    rows = iterate_inputs(path, InputOptions(), PAIRS, True)
    assert [(row.text, row.pair) for row in rows] == [("x y", "z w"), ("a b", "c d")]


def test_json_lines_from_a_stream():
    assert texts_of('{"review": "a"}\n', NAMED, False, format="jsonl") == [("a", None)]


def test_pairs_where_none_are_wanted_and_the_reverse():
    with pytest.raises(ValueError, match=r"<stdin>: the model classifies pairs of texts, and"):
        texts_of("a b\n", PAIRS, True)
    with pytest.raises(ValueError, match=r"<stdin>: the model classifies single texts, and"):
        texts_of("sentence1\tsentence2\na\tb\n", NAMED, False)


def test_errors_of_a_stream_name_it_and_the_line():
    with pytest.raises(ValueError, match=r"<stdin>:2: expected 1 column as in line 1, got 2"):
        texts_of("a b\nc\td\n", NAMED, False)
    with pytest.raises(ValueError, match="<stdin>: the file is empty"):
        texts_of("", NAMED, False)
