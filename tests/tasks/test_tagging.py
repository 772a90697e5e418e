"""Tagging of words: texts with spans, schemes that differ, plain sentences."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from keras_bert_impl import jobs
from keras_bert_impl.data.tagged_json import read_spans, write_spans
from keras_bert_impl.data.tagging import read_tagged, write_tagged
from keras_bert_impl.metrics import span_scores
from keras_bert_impl.tasks import TASKS, InputOptions
from keras_bert_impl.text.tag_schemes import Span, find_spans, tags_of_spans
from tests.jobs.toy import WORDS, rows, settings

TEXTS = [text for text, _ in rows(48, 5)]
PLAIN = InputOptions(format="text")


def spans_of(text: str) -> list[Span]:
    """The words of the list `good`."""
    found, start = [], 0
    for word in text.split():
        if word in WORDS["good"]:
            found.append(Span("X", start, start + len(word)))
        start += len(word) + 1
    return found


@pytest.mark.parametrize(
    ("content", "warned"),
    [
        ("He saw Bob .\nBob saw me .\n", True),
        ("今天天气很好我们一起去公园散步然后回家吃饭。\n", True),
        ("He\nsaw\nBob\nhttp://a.example/b/c/d/e/f/g/h/i/j/k\n", False),
        ("He O\nsaw O\nBob B-X\n", False),
        ("今 O\n天 O\n", False),
    ],
)
def test_sentences_read_as_words_are_warned_of(content, warned, caplog):
    run = SimpleNamespace(labels=["B-X", "I-X", "O"])
    source = io.BytesIO(content.encode())
    list(TASKS["token-classification"].read_inputs(source, InputOptions(), run, 10))
    assert ("--format text" in caplog.text) == warned


def test_one_json_value_for_all_rows(tagger, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("good film\n" * 4200)
    jobs.predict_rows(tagger.run, texts, tmp_path / "all.json", PLAIN)
    assert len(json.loads((tmp_path / "all.json").read_text())) == 4200
    jobs.predict_rows(tagger.run, io.BytesIO(b"token tag\n"), tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text()) == []


@pytest.fixture(scope="module")
def tagger(toy, tmp_path_factory) -> SimpleNamespace:
    """A run on JSON lines with spans, of which one cuts a word: its file and the result."""
    folder = tmp_path_factory.mktemp("tagger")
    spans = [spans_of(text) for text in TEXTS]
    first = spans[0][0]
    spans[0][0] = first._replace(end=first.end - 1)
    write_spans(TEXTS, spans, folder / "spans.json")
    options = {"train": folder / "spans.json", "dev": folder / "spans.json", "task": "ner"}
    result = jobs.finetune(settings(toy, folder / "run", **options, epochs=12))
    return SimpleNamespace(file=folder / "spans.json", result=result, run=jobs.load(folder / "run"))


def test_spans_are_scored_by_characters(tagger):
    entities = [found.entities for found in tagger.run.predict(TEXTS)]
    found = [{(e.type, e.start, e.end) for e in part} for part in entities]
    wanted = [set(map(tuple, part)) for part in read_spans(tagger.file).spans]
    right = sum(len(a & b) for a, b in zip(found, wanted, strict=True))
    recall, precision = right / sum(map(len, wanted)), right / sum(map(len, found))
    assert tagger.result.dev["recall"] == pytest.approx(recall)
    assert 0.5 < recall < 1
    assert tagger.result.dev["precision"] == pytest.approx(precision)
    assert tagger.result.dev["classes"]["X"]["support"] == sum(map(len, wanted))


def test_predictions_of_texts_are_texts_with_spans(tagger, tmp_path):
    for name in ("out.jsonl", "out.json"):
        assert jobs.predict_rows(tagger.run, tagger.file, tmp_path / name) == 48
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads((tmp_path / "out.json").read_text()) == [json.loads(x) for x in lines]
    again = read_spans(tmp_path / "out.jsonl")
    assert again.texts == TEXTS
    entities = [[(e.type, e.start, e.end) for e in x.entities] for x in tagger.run.predict(TEXTS)]
    assert again.spans == entities
    scores = span_scores(read_spans(tagger.file).spans, again.spans)
    assert scores.f1 == pytest.approx(tagger.result.score)


def test_a_sentence_a_line_of_a_stream(tagger):
    lines = [TEXTS[0], "", f"  {TEXTS[1]}!", ""]
    stream, output = io.BytesIO("\n".join(lines).encode()), io.BytesIO()
    assert jobs.predict_rows(tagger.run, stream, output, PLAIN, output_format="jsonl") == 3
    found = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [row["text"] for row in found] == lines[:3]
    assert [len(row["words"]) for row in found] == [
        len(TEXTS[0].split()), 0, len(TEXTS[1].split()) + 1
    ]  # fmt: skip
    for row in found:
        assert len(row["tags"]) == len(row["words"])
        for entity in row["entities"]:
            assert row["text"][entity["start"] : entity["end"]] == entity["text"]
    output = io.BytesIO()
    assert jobs.predict_rows(tagger.run, io.BytesIO(b"\n\n"), output, PLAIN) == 2
    assert output.getvalue() == b"\n\n"


def test_columns_of_a_stream_come_back_with_a_column_more(tagger):
    content = b"token\ttag\r\nfine\tB-X\r\nfilm\twhatever\r\n\r\n\r\nthe\tx"
    output = io.BytesIO()
    assert jobs.predict_rows(tagger.run, io.BytesIO(content), output) == 2
    lines = output.getvalue().decode().split("\n")
    assert [line.rstrip("\r").split("\t")[:2] for line in lines] == [
        *(["token", "tag"], ["fine", "B-X"], ["film", "whatever"], [""], [""], ["the", "x"]),
        [""],
    ]
    assert [line.count("\t") for line in lines] == [1, 2, 2, 0, 0, 2, 0]
    (found,) = tagger.run.predict([["fine", "film"]])
    assert [line.rstrip("\r").split("\t")[2] for line in lines[1:3]] == found.tags


def test_formats_that_tags_do_not_have(tagger, tmp_path):
    with pytest.raises(ValueError, match="format must be one of tsv, jsonl, text, got 'csv'"):
        jobs.evaluate(tagger.run, tagger.file, InputOptions(format="csv"))
    with pytest.raises(ValueError, match=r"spans.json: a file of format text has no tags"):
        jobs.evaluate(tagger.run, tagger.file, PLAIN)
    with pytest.raises(ValueError, match="predictions of token-classification are no table"):
        jobs.predict_rows(tagger.run, tagger.file, tmp_path / "out.csv")


def test_a_dev_file_in_another_scheme_is_translated(toy, tmp_path):
    rows_of = [[(word, "B-X" if word in WORDS["good"] else "O") for word in x.split()]
               for x in TEXTS]  # fmt: skip
    train = tmp_path / "train.conll"
    train.write_text("\n".join("".join(f"{a} {b}\n" for a, b in part) for part in rows_of))
    found = read_tagged(train)
    bioes = [tags_of_spans(find_spans(part), len(part), "BIOES") for part in found.tags]
    dev = tmp_path / "dev.conll"
    write_tagged(found, bioes, dev)
    assert read_tagged(dev).scheme == "BIOES"
    options = {"train": train, "task": "ner", "epochs": 8}
    result = jobs.finetune(settings(toy, tmp_path / "run", dev=dev, **options))
    assert result.labels == ["O", "B-X", "I-X"]
    run = jobs.load(tmp_path / "run")
    one, other = (jobs.evaluate(run, file, errors=tmp_path / file.stem) for file in (train, dev))
    assert one.report == other.report
    assert one.report["f1"] == result.score > 0
    assert (tmp_path / "train").read_text() == (tmp_path / "dev").read_text()


def test_a_type_that_the_training_file_lacks_is_named(tmp_path):
    (tmp_path / "dev.conll").write_text("a B-Y\n")
    task = TASKS["token-classification"]
    examples = task.read(tmp_path / "dev.conll", InputOptions())
    with pytest.raises(
        ValueError, match=r"dev.conll:1: unknown tag 'B-Y'; known tags: O, B-X, I-X"
    ):
        task.check(examples, ["O", "B-X", "I-X"])
