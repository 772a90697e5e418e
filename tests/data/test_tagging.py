"""Tagged files: layouts, schemes, writing back, messages; real sets where they are at hand."""

from __future__ import annotations

import json

import pytest

from keras_bert_impl.data.tag_checks import discover_tags, encode_tags
from keras_bert_impl.data.tagged_json import read_spans, write_spans
from keras_bert_impl.data.tagging import read_tagged, write_tagged
from keras_bert_impl.text.tag_schemes import Span, find_spans, tags_of_spans

CONLL2003 = (
    "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n"
    "Peter NNP I-NP I-PER\nLondon NNP I-NP I-LOC\nParis NNP I-NP B-LOC\n"
)


@pytest.fixture
def write(tmp_path):
    def one(content: str | bytes, name: str = "a.conll"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return one


def test_conll2003(write):
    found = read_tagged(write(CONLL2003))
    assert found.words == [["EU", "rejects"], ["Peter", "London", "Paris"]]
    assert found.tags == [["B-ORG", "O"], ["B-PER", "B-LOC", "B-LOC"]]
    assert (found.scheme, found.lines) == ("IOB1", [[3, 4], [6, 7, 8]])
    assert read_tagged(write(CONLL2003), tag=1).tags[0] == ["NNP", "VBZ"]
    assert read_tagged(write(CONLL2003), tag=1).scheme == "plain"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", ["\t", " ", "  ", " \t"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_separators_and_line_ends(write, tmp_path, end, separator, bom):
    lines = ["A" + separator + "B-X", "\u3000" + separator + "I-X", " \t", "b" + separator + "O"]
    found = read_tagged(write(bom + end.join(lines)))
    assert found.words == [["A", "\u3000"], ["b"]]
    write_tagged(found, [["O", "B-Y"], ["O"]], tmp_path / "out")
    again = (tmp_path / "out").read_bytes().decode().split(end)
    assert [line.split()[-1] for line in again if line.strip()] == ["O", "B-Y", "O"]
    assert all(new.startswith(old) for new, old in zip(again, lines, strict=True))


@pytest.mark.parametrize(
    ("tags", "scheme", "canonical"),
    [
        ("B-X I-X O B-X", "IOB2", "B-X I-X O B-X"),
        ("I-X I-X O I-X B-X", "IOB1", "B-X I-X O B-X B-X"),
        ("B-X M-X E-X S-X", "BIOES", "B-X I-X E-X S-X"),
        ("B-X L-X U-X O", "BIOES", "B-X E-X S-X O"),
        ("B M E S", "BIOES", "B I E S"),
        ("NN VB O NN-HL", "plain", "NN VB O NN-HL"),
        ("O O", "IOB2", "O O"),
    ],
)
def test_schemes(write, tags, scheme, canonical):
    found = read_tagged(write("".join(f"w {tag}\n" for tag in tags.split())))
    assert (found.scheme, found.tags) == (scheme, [canonical.split()])


def test_a_slip_is_repaired_and_counted(write, caplog):
    found = read_tagged(write("a B-X\n" * 30 + "\nb I-X\nc I-X\n"))
    assert found.tags[1] == ["B-X", "I-X"]
    assert "repaired 1 of 31 spans that are not written as IOB2 prescribes, first in line 32" in (
        caplog.text
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a I-X\nb O\nc B-X\n", "a.conll:1: the file mixes schemes: .* with B in line 3"),
        ("a B-X\nb NN\nc O\n", "a.conll:2: tag 'NN' has no letter of a scheme"),
        ("a B-X\nb E-X\nc B-X\nd O\n", "a.conll:3: the file mixes schemes: 1 of 2 spans"),
        ("a O\nb x O\nc O\n", "a.conll:2: expected 2 columns as in most lines, got 3"),
        ("\n \n", "a.conll: no words in the file"),
        (b"a O\n\xff O\n", "a.conll:2: not UTF-8"),
        ("a\tO\nb\t\n", "a.conll:2: empty tag"),
    ],
)
def test_messages(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_tagged(write(content))


def test_columns_that_are_not_there(write):
    with pytest.raises(ValueError, match="no tag column 3: the file has 2 columns"):
        read_tagged(write("a O\n"), tag=3)


def test_unlabelled_header_and_comments(write):
    assert read_tagged(write("a\nb\n\nc\n")).tags is None
    assert read_tagged(write("word tag\na O\n")).words == [["a"]]
    found = read_tagged(write("# id one two\na O\n# O\n"))
    assert found.words == [["a", "#"]]


def test_labels_of_a_model(write):
    found = read_tagged(write("a B-X\nb O\nc S-Y\nd B-X\ne E-X\nf O\n"), scheme="BIOES")
    labels = discover_tags([["O", "B-X"], ["B-Y"]])
    assert labels == ["O", "B-X", "I-X", "B-Y", "I-Y"]
    arguments = (found.tags, found.lines, found.path)
    assert encode_tags(*arguments, labels).tolist() == [1, 0, 3, 1, 2, 0]
    with pytest.raises(ValueError, match=r"a.conll:3: unknown tag 'B-Y'; known tags: O, B-X, I-X"):
        encode_tags(*arguments, ["O", "B-X", "I-X"])


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES"])
def test_spans_to_tags_and_back(scheme):
    spans = [Span("a-b", 0, 1), Span("a-b", 1, 4), Span("c", 4, 5), Span("c", 7, 9)]
    assert find_spans(tags_of_spans(spans, 10, scheme)) == spans


def test_spans_of_json(write, tmp_path, caplog):
    label = {"name": {"叶老桂": [[9, 11]]}, "company": {"浙商银行": [[0, 3]], "商": [[1, 1]]}}
    row = {"text": "浙商银行企业信贷部叶老桂", "label": label}
    found = read_spans(write(json.dumps(row), "a.json"))
    assert found.tags[0][:4] == ["B-company", *["I-company"] * 3]
    assert found.tags[0][9:] == ["B-name", "I-name", "I-name"]
    assert "1 texts have spans that overlap or cut a word" in caplog.text
    write_spans(found.texts, found.spans, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == row
    row["label"] = {"name": {"叶": [[8, 8]]}}
    with pytest.raises(ValueError, match=r"b.json:1: name '叶' at \[8, 8\] .* the text has '部'"):
        read_spans(write(json.dumps(row), "b.json"))


@pytest.mark.parametrize(
    ("name", "sentences", "words", "scheme", "first"),
    [
        ("ner_wnut17/train.conll", 3394, 62730, "IOB2", "@paulwalk"),
        ("ner_wikigold/wikigold.conll.txt", 1696, 39007, "IOB1", "010"),
        ("ner_zh_weibo/weiboNER_2nd_conll.train", 1350, 73778, "IOB2", "科"),
    ],
)
def test_real_sets(shared, tmp_path, name, sentences, words, scheme, first):
    found = read_tagged(shared / "data" / name)
    assert (len(found), sum(map(len, found.words)), found.scheme) == (sentences, words, scheme)
    assert found.words[0][0] == first
    write_tagged(found, found.tags, tmp_path / "out")
    again = read_tagged(tmp_path / "out", scheme="IOB2")
    assert (again.tags, again.lines) == (found.tags, found.lines)
