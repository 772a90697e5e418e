"""Forms of output, and inputs without rows."""

from __future__ import annotations

import csv
import io
import json

import pytest

from keras_bert_impl import jobs
from keras_bert_impl.data.choices import read_choices
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.rows import NoRowsError, csv_line
from keras_bert_impl.data.tagging import read_tagged


def test_a_table_with_commas(toy, trained, tmp_path):
    output = tmp_path / "out.csv"
    assert jobs.predict_rows(trained.folder, toy.test, output) == 20
    tsv = io.BytesIO()
    jobs.predict_rows(trained.folder, toy.test, tsv)
    lines = tsv.getvalue().decode().splitlines()
    with output.open(newline="") as file:
        assert list(csv.reader(file)) == [line.split("\t") for line in lines]


def test_cells_are_quoted():
    cells = ('a "b", c', "d\ne", "")
    assert next(csv.reader(io.StringIO(csv_line(cells), newline=""))) == list(cells)


@pytest.mark.parametrize(("form", "header"), [("tsv", b"text\tlabel\n"), ("csv", b"text,label\n")])
def test_a_header_without_rows_gives_no_rows(trained, form, header):
    source, output = io.BytesIO(header), io.BytesIO()
    inputs = jobs.InputOptions(format=form)
    assert jobs.predict_rows(trained.folder, source, output, inputs) == 0
    assert output.getvalue() == b""


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (read_tagged, b"token tag\n"),
        (read_questions, b'{"data": []}'),
        (lambda source: read_choices(source, "csv"), b"sent1,sent2,ending0,ending1\n"),
    ],
)
def test_readers_tell_that_there_are_no_rows(read, content):
    with pytest.raises(NoRowsError, match="<stream>: "):
        read(io.BytesIO(content))


def test_questions_in_lines():
    lines = [
        {"question": "Who?", "context": "Bob met Ann."},
        {"question": "Whom?", "context": "Bob met Ann.", "id": "x",
         "answers": [{"text": "Ann", "answer_start": 8}]},
        {"question": "What?", "context": "Rain."},
    ]  # fmt: skip
    for count, form in ((3, None), (1, None), (3, "jsonl"), (1, "jsonl")):
        content = "".join(json.dumps(line) + "\n" for line in lines[:count]).encode()
        found = read_questions(io.BytesIO(content), form)
        assert [question.id for question in found.questions] == ["0", "x", "2"][:count]
        assert [question.context for question in found.questions] == [0, 0, 1][:count]
    assert read_questions(io.BytesIO(b"\n".join([b'{"question": "Who?", "context": "a"}'] * 2)))
    with pytest.raises(
        ValueError, match=r"<stream>:2: .* with the key 'context'; keys: 'question'"
    ):
        read_questions(io.BytesIO(b'{"question": "a", "context": "b"}\n{"question": "a"}\n'))
    with pytest.raises(
        ValueError, match="format of questions must be jsonl or left out, got 'csv'"
    ):
        read_questions(io.BytesIO(b""), "csv")
