from __future__ import annotations

import gzip
import io
import json
import random
import re
import sys
from pathlib import Path

import pytest

from keras_bert_impl.data.choices import read_choices
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.data.glue import read_text_set
from keras_bert_impl.data.label_sets import read_label_sets
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.readers import LabelledExamples, iterate_texts, read_labelled
from keras_bert_impl.data.tagged_json import read_spans
from keras_bert_impl.data.tagging import read_tagged


@pytest.fixture
def write(tmp_path):
    def write_file(content: str | bytes, name: str = "file.tsv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def summary(examples: LabelledExamples) -> tuple:
    return examples.texts, examples.pairs, examples.labels


def test_header_names_give_columns_whatever_their_order(write):
    examples = read_labelled(write("label\ttext_a\n1\tgood one\n0\tbad one\n"))
    assert summary(examples) == (["good one", "bad one"], None, ["1", "0"])
    assert examples.lines == [2, 3]
    assert examples.columns == Columns("text_a", None, "label")
    assert len(examples) == 2


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("sentence\tlabel", ("sentence", None, "label")),
        ("index\tsentence1\tsentence2\tlabel", ("sentence1", "sentence2", "label")),
        ("index\tquestion\tsentence\tlabel", ("question", "sentence", "label")),
        (
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
            ("question1", "question2", "is_duplicate"),
        ),
        ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", ("#1 String", "#2 String", "Quality")),
        (
            "index\tpromptID\tpairID\tgenre\tsentence1_parse\tsentence2_parse\t"
            "sentence1\tsentence2\tlabel1\tgold_label",
            ("sentence1", "sentence2", "gold_label"),
        ),
        ("premise\thypo\tlabel", ("premise", "hypo", "label")),
        ("index\tsentence", ("sentence", None, None)),
        ("index\tsentence1\tsentence2", ("sentence1", "sentence2", None)),
        ("id\treview\tsentiment", ("review", None, "sentiment")),
    ],
)
def test_headers_of_public_sets(write, header, columns):
    cells = [f"cell {number}" for number in range(header.count("\t") + 1)]
    examples = read_labelled(write(header + "\n" + "\t".join(cells) + "\n"))
    assert examples.columns == columns
    values = dict(zip(header.split("\t"), cells, strict=True))
    assert examples.texts == [values[columns[0]]]
    assert examples.pairs == (columns[1] and [values[columns[1]]])
    assert examples.labels == (columns[2] and [values[columns[2]]])


def test_columns_by_name_number_and_digits(write):
    path = write("a\tb\tc\tlabel\n1\t2\t3\tx\n4\t5\t6\ty\n")
    expected = (["3", "6"], ["1", "4"], ["2", "5"])
    assert summary(read_labelled(path, text="c", pair="a", label="b")) == expected
    assert summary(read_labelled(path, text=2, pair=0, label=1, header=True)) == expected
    assert summary(read_labelled(path, text="2", pair="0", label="1", header=True)) == expected


def test_columns_found_in_one_file_read_another(write):
    train = read_labelled(write("very good\tpos\nquite bad\tneg\nno\tneg\n"))
    dev = read_labelled(write("good\tpos\n", "dev.tsv"), **train.columns._asdict())
    assert summary(dev) == (["good"], None, ["pos"])


@pytest.mark.parametrize(
    ("content", "text", "label"),
    [
        ("a good film\t1\na bad film\t0\n", 0, 1),
        ("1\ta good film\n0\ta bad film\n", 1, 0),
        ("pos\tso good\nneg\tso bad\nneg\tawful\n", 1, 0),
        ("这部电影很好\t好\n太差了\t差\n不错\t好\n没意思\t差\n很喜欢\t好\n", 0, 1),
        ("one two\t0.25\nthree four\t3.5\nfive\t1.75\n", 0, 1),
        ("all\tpos\nof\tpos\none\tpos\n", 0, 1),
        ("labels come later\t\nreally\t\n", 0, 1),
    ],
)
def test_two_columns_without_header_by_content(write, content, text, label):
    examples = read_labelled(write(content))
    assert examples.columns == Columns(text, None, label)
    assert examples.lines[0] == 1


@pytest.mark.parametrize(
    "content",
    [
        "good\tpos\nbad\tneg\n",
        "0\tone text\n1\tother text\n2\tthird text\n",
        "a b\tc d\ne f\tg h\ni j\tk l\n",
        "0\tgood\n1\tgood\n2\tbad\n3\tbad\n",
    ],
)
def test_two_columns_that_cannot_be_told_apart_are_an_error(write, content):
    with pytest.raises(ValueError, match=r"file.tsv: cannot tell which column holds the text") as e:
        read_labelled(write(content))
    for part in ("text= (--text-column)", "label= (--label-column)", "pair= (--pair-column)"):
        assert part in str(e.value)
    assert f"0: {content.split(chr(9))[0]!r}" in str(e.value)


def test_running_index_is_no_label(write):
    assert read_labelled(write("index\tsentence\n0\ta\n1\tb\n")).labels is None
    assert read_labelled(write("0\ta a\n1\tb b\n2\tc c\n"), text=1).labels is None


def test_two_possible_columns_are_not_chosen_from(write):
    with pytest.raises(ValueError, match="cannot tell which column holds the text"):
        read_labelled(write("title\tbody\tlabel\na\tb\t1\n"))
    assert read_labelled(write("text\tscore\tcategory\na\t1\tx\n")).labels is None


def test_header_in_doubt_is_an_error_and_can_be_said(write):
    path = write("hello\tlabel\ngood day\tx\nbad day\ty\n")
    with pytest.raises(ValueError, match="--header or --no-header"):
        read_labelled(path)
    assert read_labelled(path, header=True).texts == ["good day", "bad day"]
    assert read_labelled(path, header=False, text=0, label=1).labels == ["label", "x", "y"]
    with pytest.raises(ValueError, match="'hello' is a name, and a file without a header"):
        read_labelled(path, header=False, text="hello")


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("phrase\topinion\na b\tpos\nc d\tneg\ne f\tpos\ng h\tneg\n", {}),
        ("phrase\tstars\na b\t1\nc d\t2\ne f\t2\ng h\t1\n", {}),
        ("phrase\tnr\tgrade\na b\t1\t1\nc d\t2\t0\n", {"text": 0, "label": 2}),
    ],
)
def test_header_of_unknown_names_is_no_example(write, content, arguments):
    path = write(content)
    with pytest.raises(ValueError, match=r"file.tsv: the first row \('phrase', .* may be a header"):
        read_labelled(path, **arguments)
    rows = content.count("\n")
    assert len(read_labelled(path, **arguments, header=False)) == rows
    assert len(read_labelled(path, **arguments, header=True)) == rows - 1


def test_first_example_of_one_word_is_no_header(write):
    rows = "great\tpos\nso bad\tneg\nso good\tpos\nvery bad\tneg\nwell done\tpos\n"
    assert len(read_labelled(write(rows))) == 5


def test_data_that_looks_like_column_names_is_data(write):
    assert len(read_labelled(write("1\tlabel\n0\ttwo words\n"))) == 2
    assert len(read_labelled(write("what is a label\t1\nno\t0\n"))) == 2
    assert [row.text for row in iterate_texts(write("review\nquestion\n"))] == [
        "review",
        "question",
    ]


def test_bom_crlf_quotes_and_trailing_blank_lines(write):
    content = '\ufefftext\tlabel\r\n"lone quote\t1\r\n5\' 11"\t0\r\n"both"\t1\r\n\r\n \r\n\n'
    examples = read_labelled(write(content))
    assert summary(examples) == (['"lone quote', "5' 11\"", '"both"'], None, ["1", "0", "1"])


def test_bom_without_header(write):
    assert read_labelled(write("\ufeff2\tsome text\n3\tmore text\n")).labels == ["2", "3"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x00"])
@pytest.mark.parametrize("name", ["file.tsv", "file.csv", "file.jsonl"])
def test_unicode_line_separators_and_nul_stay_in_the_field(write, separator, name):
    text = f"left{separator}right"
    content = {
        "file.tsv": f"text\tlabel\n{text}\t1\n",
        "file.csv": f"text,label\n{text},1\n",
        "file.jsonl": json.dumps({"text": text}, ensure_ascii=separator < " ") + "\n",
    }[name]
    assert read_labelled(write(content, name)).texts == [text]


def test_empty_text_is_a_text_and_labels_are_stripped(write):
    examples = read_labelled(write("text\tlabel\n\t 1\n  \t0 \n"))
    assert summary(examples) == (["", "  "], None, ["1", "0"])


def test_csv_quoting(write):
    content = 'text,label\r\n"a, ""b""\nc",1\r\nd"e,0\r\n"",1\r\n'
    examples = read_labelled(write(content, "file.csv"))
    assert summary(examples) == (['a, "b"\nc', 'd"e', ""], None, ["1", "0", "1"])
    assert examples.lines == [2, 4, 5]


def test_csv_field_longer_than_the_limit_of_the_csv_module(write):
    text = "a" * 300_000
    assert read_labelled(write(f"text,label\n{text},1\n", "file.csv")).texts == [text]


def test_format_overrides_extension_and_gz_is_read(write):
    content = "text\tlabel\na\t1\n"
    assert read_labelled(write(content, "file.dat"), format="tsv").texts == ["a"]
    assert read_labelled(write(gzip.compress(content.encode()), "file.tsv.gz")).texts == ["a"]
    with pytest.raises(ValueError, match=r"extension '.dat': give format= \(--format\)"):
        read_labelled(write(content, "file.dat"))
    with pytest.raises(ValueError, match="must be one of tsv, csv, jsonl, got 'xml'"):
        read_labelled(write(content), format="xml")


PACKED = gzip.compress(bytes(random.Random(0).choices(b"ab ", k=50_000)))


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (read_labelled, "file.tsv.gz"),
        (read_labelled, "file.csv.gz"),
        (lambda path: list(iterate_texts(path)), "file.jsonl.gz"),
        (read_label_sets, "file.csv.gz"),
        (read_choices, "file.csv.gz"),
        (read_tagged, "file.conll.gz"),
        (read_spans, "file.jsonl.gz"),
        (read_questions, "file.json.gz"),
    ],
)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text\tlabel\na\t1\n", "Not a gzipped file"),
        (PACKED[:-4000], "Compressed file ended before the end-of-stream marker"),
        (PACKED[:10] + b"\xff" * 40 + PACKED[50:], "Error -3 while decompressing data"),
        (PACKED[:-8] + bytes(8), "CRC check failed"),
    ],
)
def test_a_damaged_gz_file_is_named_by_every_reader(write, read, name, content, message):
    with pytest.raises(ValueError, match=f"{name}: cannot be decompressed: {message}"):
        read(write(content, name))


def test_jsonl(write):
    rows = [
        {"id": 7, "sentence1": "a", "sentence2": "b", "label": 0},
        {"label": "1 ", "sentence2": "d", "sentence1": "c"},
        {"label": True, "sentence2": "", "sentence1": "é"},
    ]
    path = write("\ufeff" + "\r\n".join(map(json.dumps, rows)) + "\r\n\n", "file.jsonl")
    assert summary(read_labelled(path)) == (["a", "c", "é"], ["b", "d", ""], ["0", "1", "true"])
    assert summary(read_labelled(path, text="sentence2")) == (
        ["b", "d", ""],
        None,
        ["0", "1", "true"],
    )


def test_rows_without_labels_give_none(write):
    assert read_labelled(write("sentence\nx\ny\n")).labels is None
    assert read_labelled(write("text\tlabel\nx\t\ny\t\n")).labels is None
    assert read_labelled(write('{"text": "x"}\n', "file.jsonl")).labels is None
    assert read_labelled(write('{"text": "x", "label": null}\n', "f.jsonl")).labels is None


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("f.tsv", "", {}, "f.tsv: the file is empty"),
        ("f.tsv", "\ufeff\n\n", {}, "f.tsv: the file is empty"),
        ("f.jsonl", "\n", {}, "f.jsonl: the file is empty"),
        ("f.tsv", "text\tlabel\n\n", {}, "f.tsv: the file has a header (text, label) and no rows"),
        (
            "f.tsv",
            "text\tlabel\na\t1\nb\n",
            {},
            "f.tsv:3: expected 2 columns as in line 1, got 1",
        ),
        ("f.tsv", "a a\t1\nb\t0\tc\n", {}, "f.tsv:2: expected 2 columns as in line 1, got 3"),
        ("f.tsv", "a\nb\tc\n", {}, "f.tsv:2: expected 1 column as in line 1, got 2"),
        (
            "f.csv",
            'text,label\n"a\nb",1\nc,d,e\n',
            {},
            "f.csv:4: expected 2 columns as in line 1, got 3",
        ),
        (
            "f.tsv",
            "text\tlabel\na\t1\n\nb\t0\n",
            {},
            "f.tsv:3: blank line between rows: expected 2 columns as in line 1",
        ),
        (
            "f.tsv",
            b"text\tlabel\nab\t1\nc\xffd\t0\n",
            {},
            "f.tsv:3: not UTF-8: byte 0xff at byte 2 of the line (byte 18 of the file)",
        ),
        ("f.tsv", "text\tlabel\n".encode("utf-16"), {}, "f.tsv:1: not UTF-8: byte 0xff at byte 1"),
        ("f.tsv", "text\tlabel\n".encode("utf-16"), {}, "looks like UTF-16"),
        (
            "f.tsv",
            "text\tlabel\na\t1\nb\t \n",
            {},
            "f.tsv:3: empty label (label column 'label'; other rows have one)",
        ),
        (
            "f.tsv",
            "text\tlabel\na\t1\n",
            {"label": "lable"},
            "f.tsv: label='lable' (--label-column): no such column (columns: 'text', 'label')",
        ),
        (
            "f.tsv",
            "a a\tb\tc\n",
            {"text": 3},
            "f.tsv: text=3 (--text-column): expected a number from 0 to 2 (no header; columns of "
            "the first row: 0: 'a a', 1: 'b', 2: 'c')",
        ),
        (
            "f.tsv",
            "text\tlabel\na\t1\n",
            {"text": 0, "label": "text"},
            "f.tsv: the same column serves twice",
        ),
        ("f.csv", 'text,label\na,1\n"b,0\nc,1\n', {}, "f.csv:3: broken CSV row: unexpected end"),
        ("f.jsonl", '{"text": "a"}\n{"text": "b"\n', {}, "f.jsonl:2: not valid JSON: Expecting"),
        ("f.json", '[\n{"text": "a"}\n]\n', {}, "expected one JSON object on every line"),
        ("f.jsonl", '"a"\n', {}, "f.jsonl:1: expected a JSON object, got a string"),
        ("f.jsonl", '{"text": "a"}\n\n{"text": "b"}\n', {}, "f.jsonl:2: blank line between rows"),
        ("f.jsonl", '{"text": "a"}\n{"txt": "b"}\n', {}, "f.jsonl:2: no key 'text'; keys: 'txt'"),
        ("f.jsonl", '{"text": 5}\n', {}, "f.jsonl:1: key 'text': expected a string, got a number"),
        ("f.jsonl", '{"text": null}\n', {}, "key 'text': expected a string, got null"),
        (
            "f.jsonl",
            '{"text": "a", "label": ["b"]}\n',
            {},
            "f.jsonl:1: key 'label': expected a string or a number as label, got an array",
        ),
        (
            "f.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b"}\n',
            {},
            "f.jsonl:2: empty label",
        ),
        ("f.jsonl", '{"text": "a"}\n', {"text": "0"}, "text='0' (--text-column): no such column"),
        ("f.jsonl", '{"text": "\\ud800"}\n', {}, "f.jsonl:1: key 'text': half of a surrogate"),
    ],
)
def test_bad_files(tmp_path, monkeypatch, name, content, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read_labelled(name, **arguments)
    assert str(error.value).startswith(name)


@pytest.mark.parametrize(
    ("read", "content", "column"),
    [
        (read_labelled, "text,text,label\na,b,1\n", "text"),
        (read_labelled, "Text,text,label\na,b,1\n", "text"),
        (read_labelled, "text,label,label\na,0,1\n", "label"),
        (read_labelled, "sentence1,sentence1,sentence2,label\na,b,c,1\n", "sentence1"),
        (lambda path: read_labelled(path, label="x"), "text,x,x\na,1,2\n", "x"),
        (lambda path: list(iterate_texts(path)), "text,text,id\na,b,1\n", "text"),
        (lambda path: read_text_set(path, "sst-2"), "sentence,label,label\na,0,1\n", "label"),
        (read_label_sets, "text,a,b,a\nx,0,1,1\n", "a"),
        (lambda path: read_label_sets(path, label="a,b"), "text,a,b,a\nx,0,1,1\n", "a"),
        (read_label_sets, "text,text,a,b\nx,y,1,1\n", "text"),
        (read_choices, "sent1,ending0,ending0,label\na,b,c,0\n", "ending0"),
        (read_choices, "sent1,sent1,ending0,ending1,label\na,b,c,d,0\n", "sent1"),
        (read_choices, "sent1,ending0,ending1,label,label\na,b,c,0,1\n", "label"),
    ],
)
def test_a_name_that_two_columns_have_tells_none(write, read, content, column):
    with pytest.raises(ValueError, match=rf"file.csv:1: column '{column}' occurs twice; columns: "):
        read(write(content, "file.csv"))


def test_columns_of_one_name_are_told_by_number(write):
    path = write("text,text,label,id,id\na,b,1,2,3\n", "file.csv")
    examples = read_labelled(path, text=1)
    assert summary(examples) == (["b"], None, ["1"])
    assert examples.columns == Columns(1, None, "label")
    assert summary(read_labelled(path, **examples.columns._asdict())) == summary(examples)
    sets = read_label_sets(write("text,text,a,b\nx,y,1,0\n", "file.csv"), text=1, label="a,b")
    assert (sets.texts, sets.labels, sets.columns) == (["y"], [("a",)], Columns(1, None, "a,b"))
    labels = write("text,label,label\na,0,1\n", "file.csv")
    assert [row.text for row in iterate_texts(labels)] == ["a"]


def test_missing_file():
    with pytest.raises(FileNotFoundError, match=r"absent\.tsv"):
        read_labelled("absent.tsv")


@pytest.mark.parametrize(
    ("content", "texts", "lines"),
    [
        ("one\n\ntwo\n\n", ["one", "", "two", ""], [1, 2, 3, 4]),
        ("\none", ["", "one"], [1, 2]),
        ("sentence\none\r\n\r\n", ["one", ""], [2, 3]),
        ("index\tsentence\n0\tone\n1\t\n", ["one", ""], [2, 3]),
        ("text\tlabel\none\t\ntwo\tx\n", ["one", "two"], [2, 3]),
    ],
)
def test_iterating_keeps_every_row(write, content, texts, lines):
    rows = list(iterate_texts(write(content)))
    assert [row.text for row in rows] == texts
    assert [row.line for row in rows] == lines
    assert all(row.pair is None for row in rows)


def test_iterating_pairs_and_streams():
    rows = iterate_texts(io.BytesIO(b"a\tb\tc\nd\te\tf\n"), text=2, pair=0)
    assert list(rows) == [(1, "c", "a"), (2, "f", "d")]


def test_iterating_does_not_read_ahead(monkeypatch):
    def endless():
        yield b"text\n"
        for number in range(100):
            yield f"row {number}\n".encode()
        raise AssertionError("read to the end")

    class Stdin:
        buffer = endless()

    monkeypatch.setattr(sys, "stdin", Stdin)
    rows = iterate_texts("-")
    assert [next(rows).text for _ in range(3)] == ["row 0", "row 1", "row 2"]


def test_iterating_over_an_empty_stdin_is_an_error(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"")

    monkeypatch.setattr(sys, "stdin", Stdin)
    with pytest.raises(ValueError, match="<stdin>: the file is empty"):
        list(iterate_texts("-"))


@pytest.mark.parametrize(
    ("file", "arguments", "rows", "columns", "first"),
    [
        (
            "glue_en/SST-2/train.tsv",
            {},
            67349,
            ("sentence", None, "label"),
            ("hide new secretions from the parental units ", None, "0"),
        ),
        (
            "glue_en/RTE/dev.tsv",
            {},
            277,
            ("sentence1", "sentence2", "label"),
            (None, "Christopher Reeve had an accident.", "not_entailment"),
        ),
        (
            "glue_en/STS-B/dev.tsv",
            {},
            1500,
            ("sentence1", "sentence2", "score"),
            ("A man with a hard hat is dancing.", "A man wearing a hard hat is dancing.", "5.000"),
        ),
        (
            "glue_en/CoLA/dev.tsv",
            {"text": 3, "label": 1},
            1043,
            (3, None, 1),
            ("The sailors rode the breeze clear of the rocks.", None, "1"),
        ),
        ("zh_chnsenticorp/train.tsv", {}, 9600, ("text_a", None, "label"), (None, None, "1")),
        (
            "stsb_multi/stsb-en-test.csv",
            {"text": 0, "pair": 1, "label": 2},
            1379,
            (0, 1, 2),
            ("A girl is styling her hair.", "A girl is brushing her hair.", "2.5"),
        ),
    ],
)
def test_real_files(shared, file, arguments, rows, columns, first):
    path = shared / "data" / file
    examples = read_labelled(path, **arguments)
    assert len(examples) == rows
    assert examples.columns == columns
    text, pair, label = first
    assert text is None or examples.texts[0] == text
    assert pair is None or examples.pairs[0] == pair
    assert examples.labels[0] == label
    arguments.pop("label", None)
    assert [row.text for row in iterate_texts(path, **arguments)] == examples.texts


def test_real_file_without_header_needs_columns(shared):
    with pytest.raises(ValueError, match=r"0: 'gj04', 1: '1', 2: '', 3: 'The sailors"):
        read_labelled(shared / "data/glue_en/CoLA/dev.tsv")
