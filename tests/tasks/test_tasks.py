"""Every kind of task from files to a run and back, on toys: train, load, evaluate, predict."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

import keras_bert_impl
from keras_bert_impl import jobs
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.tasks import TASKS, InputOptions, LabelSet, find_task
from tests.jobs.toy import WORDS, rows, settings, write_tsv

TABLE = rows(48, 5)


def write(path, content: str):
    path.write_text(content, encoding="utf-8")
    return path


def json_lines(path, objects):
    return write(path, "".join(json.dumps(content) + "\n" for content in objects))


def scores_file(folder):
    table = [(text, "1.0" if label == "good" else "0") for text, label in TABLE]
    return write_tsv(folder / "scores.tsv", table, "text\tscore")


def label_sets_file(folder):
    return json_lines(
        folder / "sets.jsonl",
        [{"text": t, "labels": [label, *(["film"] if "film" in t else [])]} for t, label in TABLE],
    )


def choices_file(folder):
    good = [text for text, label in TABLE if label == "good"]
    bad = [text for text, label in TABLE if label == "bad"]
    header = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,label\n"
    lines = [
        f"{i},v,{i},x,the film,it was,gold,{a},{b},0\n" if i % 2 else
        f"{i},v,{i},x,the film,it was,gold,{b},{a},1\n"
        for i, (a, b) in enumerate(zip(good, bad, strict=True))
    ]  # fmt: skip
    return write(folder / "swag.csv", header + "".join(lines))


def tags_file(folder):
    """The words of the list `good` are entities."""
    sentences = [
        [(word, "B-X" if word in WORDS["good"] else "O") for word in text.split()]
        for text, _ in TABLE
    ]
    blocks = ("".join(f"{word} {tag}\n" for word, tag in part) for part in sentences)
    return write(folder / "tags.conll", "\n".join(blocks))


def questions_file(folder):
    paragraphs = []
    for number, (text, _) in enumerate(TABLE):
        word = text.split()[0]
        answer = {"text": word, "answer_start": 0}
        question = {"id": str(number), "question": "the film ?", "answers": [answer]}
        paragraphs.append({"context": text, "qas": [question]})
    return write(folder / "q.json", json.dumps({"data": [{"paragraphs": paragraphs}]}))


KINDS = {
    "regression": (scores_file, 0.8),
    "multi-label": (label_sets_file, 0.7),
    "multiple-choice": (choices_file, 0.8),
    "token-classification": (tags_file, 0.5),
    "question-answering": (questions_file, 50),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_learned_loaded_evaluated_and_predicted(kind, toy, tmp_path):
    make, least = KINDS[kind]
    file = make(tmp_path)
    options = {"doc_stride": 8, "max_query_length": 8} if kind == "question-answering" else {}
    options["epochs"] = 30 if kind == "multi-label" else 12
    result = jobs.finetune(
        settings(toy, tmp_path / "run", train=file, dev=file, task=kind, **options)
    )
    assert result.score >= least
    run = keras_bert_impl.load(tmp_path / "run")
    assert run.task is TASKS[kind]
    report = jobs.evaluate(run, file, errors=tmp_path / "errors.tsv").report
    for name in run.task.shown:
        assert report[name] == pytest.approx(result.dev[name], abs=1e-5)
    output = tmp_path / "out.jsonl"
    assert jobs.predict_rows(run, file, output) == 48 // (2 if kind == "multiple-choice" else 1)
    stream = io.BytesIO(file.read_bytes())
    again = jobs.InputOptions(format="jsonl" if kind == "multi-label" else None)
    jobs.predict_rows(run, stream, tmp_path / "streamed.jsonl", again)
    assert (tmp_path / "streamed.jsonl").read_bytes() == output.read_bytes()
    kept = (tmp_path / "run" / "dev_predictions.jsonl").read_text("utf-8")
    assert len(output.read_text("utf-8").splitlines()) == len(kept.splitlines())


@pytest.mark.parametrize("chosen", [None, '"drugs, sex",b, "say ""no"""'])
def test_names_of_label_columns_may_have_commas_in_them(tmp_path, chosen):
    names = ("drugs, sex", "b", 'say "no"')
    header = 'text,"drugs, sex",b,"say ""no"""\n'
    train = write(tmp_path / "train.csv", header + "one,1,0,0\ntwo,0,1,1\n")
    dev = write(tmp_path / "dev.csv", header.replace("text", "id,text") + "7,one,1,1,0\n")
    task = TASKS["multi-label"]
    first = task.read(train, InputOptions(label=chosen))
    columns = Columns(**json.loads(json.dumps(first.columns._asdict())))
    second = task.read(dev, InputOptions(), columns)
    assert first.names == second.names == names
    assert first.labels == [names[:1], names[1:]]
    assert second.labels == [names[:2]]
    (cells,) = task.cells(second, [LabelSet(names[:2], dict.fromkeys(names, 0.5))])
    assert cells[0] == '"drugs, sex",b'
    (chunk,) = task.read_inputs(
        dev, InputOptions(), SimpleNamespace(columns=columns, pairs=None), 9
    )
    assert chunk.texts == ["one"]


def question(**fields) -> dict:
    return {"id": "7", "question": "Who?", "context": "Bob.", **fields}


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("token-classification", {"text": "a"}, ":2: no key 'label'; keys: 'text'"),
        ("token-classification", {"text": "a", "label": None}, ":2: expected 'label' as {type"),
        ("token-classification", {"text": "a", "label": {"X": "a"}}, ":2: expected 'label' as"),
        ("question-answering", question(answers=None), ":2: answers: expected an array, got null"),
        ("question-answering", question(answers="Bob"), ":2: answers: expected an array, got a st"),
        ("question-answering", question(is_impossible=1), ":2: is_impossible: expected a boolean"),
    ],
)
def test_labels_are_looked_at_in_training_alone(tmp_path, kind, row, message):
    first = question(id="1", answers=[{"text": "Bob", "answer_start": 0}])
    first = {"text": "a", "label": {}} if kind == "token-classification" else first
    file, task = json_lines(tmp_path / "rows.jsonl", [first, row]), TASKS[kind]
    with pytest.raises(ValueError, match=f"rows.jsonl{message}"):
        task.read(file, InputOptions())
    (examples,) = task.read_inputs(file, InputOptions(), None, 10)
    assert len(examples) == 2


def test_names_of_tasks():
    assert find_task("cola") == (TASKS["classification"], "cola")
    assert find_task("sts-b")[0] is TASKS["regression"]
    assert find_task("squad") == (TASKS["question-answering"], None)
    assert find_task("ner")[0] is TASKS["token-classification"]
    with pytest.raises(ValueError, match=r"task must be one of classification, .* got 'poetry'"):
        find_task("poetry")
