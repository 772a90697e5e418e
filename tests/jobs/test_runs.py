"""A run from Python: loading, predicting, evaluating, files of predictions."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import keras_bert_impl
from keras_bert_impl import jobs
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.jobs import prediction
from keras_bert_impl.jobs.runs import ChoiceRun, QuestionRun, TaggingRun, TextRun
from tests.jobs.toy import VOCAB, rows, write_tsv, write_weights
from tests.sources.conftest import entries

TABLE = rows(20, 2)
TEXTS = [text for text, _ in TABLE]


@pytest.fixture(scope="module")
def run(trained):
    return keras_bert_impl.load(trained.folder)


def test_a_run_knows_its_parts(run):
    assert run.labels == ("bad", "good")
    assert (run.max_length, run.pairs) == (32, False)
    assert run.tokenizer.tokens("Fine!") == ["fine", "!"]
    assert run.model.num_classes == 2


def test_predictions_have_the_order_of_the_texts(run):
    texts = [*TEXTS, "", "   ", "\u200b", "fine " * 500, "\N{SNOWMAN} \ud83d", TEXTS[0]]
    together = run.predict(texts, batch_size=3)
    for text, among in list(zip(texts, together, strict=True))[-8:]:
        (alone,) = run.predict(text)
        assert alone.label == among.label
        assert alone.probability == pytest.approx(among.probability, abs=1e-5)
    right = [p.label == label for p, (_, label) in zip(together, TABLE, strict=False)]
    assert np.mean(right) >= 0.8


def test_probabilities_sum_to_one_and_no_texts_are_no_predictions(run):
    assert run.probabilities(TEXTS).sum(axis=1) == pytest.approx(np.ones(20), abs=1e-5)
    assert run.predict([]) == []
    assert run.probabilities([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("texts", "pairs", "message"),
    [
        (["a", None], None, "texts: element 1: expected a string, got None"),
        (["a"], ["b"], "classifies single texts: leave out pairs"),
    ],
)
def test_other_input_is_refused(run, texts, pairs, message):
    with pytest.raises(ValueError, match=message):
        run.predict(texts, pairs)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (TextRun, (["a", 5],), "texts: element 1: expected a string, got 5"),
        (TextRun, (["a"], [None]), "pairs: element 0: expected a string, got None"),
        (TaggingRun, (["a", None],), "texts: element 1: expected a string, got None"),
        (TaggingRun, (["a", ["b"]],), r"texts: element 1: expected a string, got \['b'\]"),
        (TaggingRun, ([["a"], "b"],), "texts: element 1: expected a list of strings, got 'b'"),
        (TaggingRun, ([["a"], None],), "texts: element 1: expected a list of strings, got None"),
        (TaggingRun, ([["a", 5]],), "texts: element 0: element 1: expected a string, got 5"),
        (QuestionRun, (["a", None], "b"), "questions: element 1: expected a string, got None"),
        (QuestionRun, ("a", [None]), "contexts: element 0: expected a string, got None"),
        (ChoiceRun, ([None], [["a", "b"]]), "prompts: element 0: expected a string, got None"),
        (ChoiceRun, (["a"], ["bc"]), "choices: element 0: expected a list of strings, got 'bc'"),
        (ChoiceRun, (["a"], [None]), "choices: element 0: expected a list of strings, got None"),
        (ChoiceRun, ("a", ["b", None]), "choices: element 0: element 1: expected a string, got N"),
    ],
)
def test_what_is_no_text_is_named(kind, arguments, message):
    run = kind(None, None, (), None, Columns(), Path("run"))
    with pytest.raises(ValueError, match=message):
        run.predict(*arguments)


def test_a_classifier_without_training_json(trained, tmp_path):
    folder = tmp_path / "plain"
    shutil.copytree(trained.folder, folder)
    (folder / "training.json").unlink()
    (folder / "labels.txt").unlink()
    plain = jobs.load(folder)
    assert (plain.max_length, plain.pairs, plain.labels) == (64, None, ("0", "1"))
    assert len(plain.predict(["a"], ["b"])) == len(plain.predict(["a"])) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format_version": 2}', r"training.json: format_version 2 is not known .*upgrade"),
        ("[]", r"training.json: not written by this package"),
        ("{", r"training.json: not written by this package"),
        ("{}", r"training.json: not written by this package: no format_version"),
        ('{"format_version": 1, "task": ["x"]}', "holds no classifier"),
        (
            '{"format_version": 1, "task": "classification", "options": {"x": 1}}',
            r"training.json: not written by this package: .*'x'",
        ),
        (
            '{"format_version": 1, "task": "classification", "columns": {"y": 1}}',
            r"training.json: not written by this package: .*'y'",
        ),
    ],
)
def test_damaged_or_newer_runs(trained, tmp_path, content, message):
    folder = tmp_path / "other"
    shutil.copytree(trained.folder, folder)
    (folder / "training.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        jobs.load(folder)


def test_an_encoder_is_no_run(tmp_path):
    with pytest.raises(ValueError, match="holds no classifier: fine-tune it first"):
        jobs.load(write_weights(tmp_path / "weights"))


def test_an_evaluation_scores_the_predictions(run, toy):
    report = jobs.evaluate(run, toy.test).report
    predicted = [p.label for p in run.predict(TEXTS)]
    right = sum(p == label for p, (_, label) in zip(predicted, TABLE, strict=True))
    assert report["accuracy"] == right / 20
    assert report["examples"] == 20
    assert set(report["classes"]) == {"bad", "good"}


@pytest.mark.parametrize(
    ("header", "table", "message"),
    [
        ("text\tlabel", [("a", "good"), ("b", "fair")], r":3: unknown label 'fair'; known labels"),
        ("text", [("a",), ("b",)], r"no labels: cannot tell which column holds them"),
        ("text\tlabel", [("a", ""), ("b", "")], r"no labels: column 'label' is empty"),
    ],
)
def test_files_that_cannot_be_scored(run, tmp_path, header, table, message):
    file = write_tsv(tmp_path / "x.tsv", table, header)
    with pytest.raises(ValueError, match=message):
        jobs.evaluate(run, file)


def lines_of(data: bytes) -> list[str]:
    assert data.endswith(b"\n")
    return data.decode().split("\n")[:-1]


def test_each_row_has_a_line_in_order_over_several_chunks(run, monkeypatch):
    monkeypatch.setattr(prediction, "_CHUNK", 7)
    texts = [*TEXTS[:10], "", *TEXTS[10:]]
    source, output, told = io.BytesIO("\n".join(texts).encode()), io.BytesIO(), []
    assert jobs.predict_rows(run, source, output, on_rows=told.append) == 21
    assert told == [7, 14, 21]
    wanted = run.predict(texts)
    for line, expected in zip(lines_of(output.getvalue()), wanted, strict=True):
        label, probability = line.split("\t")
        assert label == expected.label
        assert float(probability) == pytest.approx(expected.probability, abs=1e-5)


def test_json_lines_hold_all_probabilities(run, toy, tmp_path):
    output = tmp_path / "new" / "out.jsonl"
    assert jobs.predict_rows(run, toy.test, output) == 20
    contents = [json.loads(line) for line in lines_of(output.read_bytes())]
    for content, row in zip(contents, run.probabilities(TEXTS), strict=True):
        assert list(content["probabilities"]) == ["bad", "good"]
        assert list(content["probabilities"].values()) == pytest.approx(row.tolist(), abs=1e-5)
        assert content["probability"] == content["probabilities"][content["label"]]


def test_an_output_file_is_not_replaced_unasked(run, toy, tmp_path):
    output = tmp_path / "out.tsv"
    output.write_text("mine")
    with pytest.raises(FileExistsError, match=r"out.tsv exists: name another .*--force"):
        jobs.predict_rows(run, toy.test, output)
    assert output.read_text() == "mine"
    jobs.predict_rows(run, toy.test, output, overwrite=True)
    assert len(lines_of(output.read_bytes())) == 20


def test_an_error_in_the_middle_leaves_no_output(run, tmp_path, monkeypatch):
    monkeypatch.setattr(prediction, "_CHUNK", 1)
    source = tmp_path / "in.tsv"
    source.write_text("a\nb\nc\td\n")
    with pytest.raises(ValueError, match=r"in.tsv:3: expected 1 column as in line 1, got 2"):
        jobs.predict_rows(run, source, tmp_path / "out.tsv")
    assert entries(tmp_path) == ["in.tsv"]


def test_a_device_is_written_to_and_stays_a_device(run, toy):
    assert jobs.predict_rows(run, toy.test, os.devnull) == 20
    assert not os.path.isfile(os.devnull)


def test_another_output_format_is_refused(run, toy):
    message = "output_format must be one of tsv, csv, jsonl, json, got 'xml'"
    with pytest.raises(ValueError, match=message):
        jobs.predict_rows(run, toy.test, io.BytesIO(), output_format="xml")


def test_the_toy_vocabulary_covers_the_toy_texts(run):
    assert run.tokenizer.vocab.tokens == tuple(VOCAB)
    assert run.tokenizer.vocab.unk_id not in run.tokenizer(TEXTS)["token_ids"].numpy()


def test_a_run_that_lost_its_labels_is_refused(trained, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained.folder, folder)
    (folder / "labels.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"run/labels.txt: no such file: .* the 2 outputs"):
        jobs.load(folder)
