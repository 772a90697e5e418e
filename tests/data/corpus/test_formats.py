"""Documents and sentences of every format but MediaWiki."""

from __future__ import annotations

import json

import pytest

from keras_bert_impl.data.corpus import RawDocument, SkipCounter, read_documents, sentences_of
from keras_bert_impl.data.corpus.documents import CONTROL_ONLY, LONG_JSON_LINE, NO_TEXT
from keras_bert_impl.data.corpus.formats import detect_format

SENTENCES = "He came at 5 p.m. on Monday.\nNobody saw him.\n\nIt is a second document.\n"
PARAGRAPHS = "He came late. Nobody saw him.\nShort.\n\nIt is. A second. Document.\n"


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (SENTENCES, "sentences"),
        (PARAGRAPHS, "paragraphs"),
        ("他来了。没有人看见。\n", "paragraphs"),
        ("他来了。\n没有人看见。\n", "sentences"),
        ("No stop\nat all\n", "sentences"),
        ("One. Two.\n" + "One line only.\n" * 9, "sentences"),
        ('{"text": "A."}\n{"text": "B."}\n', "jsonl"),
        ('\n{"text": "a very long line that does not end within the beginning', "jsonl"),
        ("{not json}\nmore text\n", "sentences"),
        ('<doc id="1" url="" title="A">\nA\n\nText.\n</doc>\n', "wikiextractor"),
        ('<mediawiki xmlns="x">\n', "mediawiki"),
        ('<?xml version="1.0"?>\n<!-- a --><mediawiki>\n', "mediawiki"),
        ("", "sentences"),
    ],
)
def test_detection(head, format):
    assert detect_format(head) == format


def test_real_files_are_told(shared):
    for name, format in {
        "pretrain_en/google_bert_sample_text.txt": "sentences",
        "pretrain_en/novels.txt.gz": "paragraphs",
        "pretrain_zh/hongloumeng.txt.gz": "paragraphs",
        "wiki/enwiki_extracted_by_wikiextractor.jsonl.gz": "paragraphs",
        "wiki/mwxml_dump.xml": "wikitext",
    }.items():
        assert next(read_documents(shared / "data" / name)).kind == format, name


def test_sentences(tmp_path):
    path = write(tmp_path / "a.txt", SENTENCES)
    documents = list(read_documents(path))
    assert documents == [
        RawDocument(f"{path}:1", "sentences", "He came at 5 p.m. on Monday.\nNobody saw him."),
        RawDocument(f"{path}:4", "sentences", "It is a second document."),
    ]
    assert sentences_of(documents[0]) == ["He came at 5 p.m. on Monday.", "Nobody saw him."]


def test_the_format_given_is_taken(tmp_path):
    path = write(tmp_path / "a.txt", PARAGRAPHS)
    lines = list(read_documents(path, format="sentences"))
    assert sentences_of(lines[0]) == ["He came late. Nobody saw him.", "Short."]
    (paragraphs, _) = read_documents(path, format="paragraphs")
    assert sentences_of(paragraphs) == ["He came late.", "Nobody saw him.", "Short."]


def test_format_and_language_must_be_known(tmp_path):
    path = write(tmp_path / "a.txt", PARAGRAPHS)
    with pytest.raises(ValueError, match=r"format must be one of auto, sentences, .* got 'csv'"):
        read_documents(path, format="csv")
    with pytest.raises(ValueError, match="language must be one of auto, en, zh, got 'de'"):
        sentences_of(next(read_documents(path)), language="de")


def test_what_the_tokenizer_does_not_see_is_no_sentence():
    skipped = SkipCounter()
    document = RawDocument(
        "a:1", "sentences", "\x01\x02\nText.\n\u200b\ufeff\n \u3000\n\ufffd\n—\n𐍈"
    )
    assert sentences_of(document, on_skip=skipped) == ["Text.", "—", "𐍈"]
    assert not skipped.counts
    assert sentences_of(RawDocument("a:9", "paragraphs", "\x01\n\u200b"), on_skip=skipped) == []
    assert skipped.examples == {CONTROL_ONLY: ["a:9"]}


def test_long_sentences_are_cut_at_spaces():
    text = "word " * 5_000
    for kind in ("sentences", "paragraphs"):
        parts = sentences_of(RawDocument("a:1", kind, text))
        assert len(parts) == 3
        assert max(map(len, parts)) <= 10_000
        assert " ".join(parts) == text.strip()


def test_json_lines(tmp_path):
    records = [
        {"text": "One. Two.\nThree.", "title": "A"},
        {"id": 2, "text": "  \n "},
        {"text": "四。五。"},
    ]
    lines = [json.dumps(records[0]), "", json.dumps(records[1]), json.dumps(records[2])]
    path = write(tmp_path / "a.jsonl", "\ufeff" + "\r\n".join(lines))
    skipped = SkipCounter()
    documents = list(read_documents(path, format="jsonl", on_skip=skipped))
    assert documents == [
        RawDocument(f"{path}:1", "paragraphs", "One. Two.\nThree."),
        RawDocument(f"{path}:4", "paragraphs", "四。五。"),
    ]
    assert [sentences_of(d) for d in documents] == [["One.", "Two.", "Three."], ["四。", "五。"]]
    assert skipped.examples == {NO_TEXT: [f"{path}:3"]}
    assert list(read_documents(path)) == documents


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "a.jsonl:2: broken JSON: "),
        ("[1]", "a.jsonl:2: expected a JSON object, got list"),
        ('{"body": "a", "id": 1}', "a.jsonl:2: no key 'text'; keys: 'body', 'id'"),
        ('{"text": 5}', "a.jsonl:2: key 'text': expected a string, got int"),
        ('{"text": "\\ud800"}', "a.jsonl:2: key 'text': half of a surrogate pair"),
        ('{"text": ' + "[" * 100_000, "a.jsonl:2: JSON nested too deeply"),
    ],
    ids=lambda value: value[:20],
)
def test_bad_json_lines(tmp_path, line, message):
    path = write(tmp_path / "a.jsonl", '{"text": "a"}\n' + line + "\n")
    with pytest.raises(ValueError, match=message):
        list(read_documents(path, format="jsonl"))


def test_json_lines_that_are_not_utf8(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n' * 30_000 + b'{"text": "\xff"}\n')
    with pytest.raises(ValueError, match=r"a.jsonl:30001: not UTF-8: byte 0xff at byte 11 of the"):
        list(read_documents(path))


def test_long_json_lines(tmp_path, monkeypatch):
    text = "A sentence. " * 500_000
    path = write(tmp_path / "a.jsonl", json.dumps({"text": text}) + '\n{"text": "B."}')
    documents = list(read_documents(path))
    assert len(documents) == 3
    assert "".join(d.text.replace("\n", "") for d in documents[:-1]) == text
    monkeypatch.setattr("keras_bert_impl.data.corpus.plain._LONGEST_JSON_LINE", 1_000_000)
    skipped = SkipCounter()
    documents = list(read_documents(path, on_skip=skipped))
    assert [(d.source, d.text) for d in documents] == [(f"{path}:2", "B.")]
    assert skipped.examples == {LONG_JSON_LINE: [f"{path}:1"]}


def test_wikiextractor_blocks(tmp_path):
    text = (
        '<doc id="1" url="https://x" title="A &amp; B">\nA &amp; B\n\nA is. B&nbsp;is.\n\nMore.\n'
        '</doc>\n<doc id="2" url="" title="Empty">\nEmpty\n\n</doc>\n\n'
        '<doc id="3" url="" title="C">\nC\n\nC.\n</doc>\n'
    )
    path = write(tmp_path / "wiki_00", text)
    skipped = SkipCounter()
    documents = list(read_documents(path, on_skip=skipped))
    assert documents == [
        RawDocument(f"{path}:4", "paragraphs", "A is. B\xa0is.\nMore."),
        RawDocument(f"{path}:16", "paragraphs", "C."),
    ]
    assert skipped.examples == {NO_TEXT: [f"{path}:8"]}


def test_wikiextractor_json(tmp_path):
    path = write(tmp_path / "wiki_00", '{"id": "1", "title": "A", "text": "A is.\\nB is."}\n')
    for format in ("auto", "wikiextractor"):
        assert [d.text for d in read_documents(path, format=format)] == ["A is.\nB is."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Text.\n", "wiki_00:1: expected '<doc ...>' as WikiExtractor writes it, got 'Text.'"),
        ('<doc id="1">\nA\n', "wiki_00:1: '<doc ...>' has no '</doc>'"),
    ],
)
def test_broken_wikiextractor_output(tmp_path, text, message):
    path = write(tmp_path / "wiki_00", text)
    with pytest.raises(ValueError, match=message):
        list(read_documents(path, format="wikiextractor"))


def test_articles_that_wikiextractor_made(shared):
    path = shared / "data/wiki/enwiki_extracted_by_wikiextractor.jsonl.gz"
    documents = list(read_documents(path))
    assert len(documents) == 105
    sentences = [sentence for d in documents for sentence in sentences_of(d)]
    assert 18_000 < len(sentences) < 22_000
