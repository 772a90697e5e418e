"""Readers of the SQuAD layout: real files, training answers, messages."""

from __future__ import annotations

import json

import pytest

from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.questions import Answer, Question, QuestionSet

ENTRY = {"id": "q", "question": "Who?", "answers": [{"text": "Bob", "answer_start": 0}]}


def write(tmp_path, *entries, context="Bob met Ann.", **top):
    """A file with one paragraph."""
    paragraph = {"context": context, "qas": list(entries)}
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}], **top}), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "questions", "contexts", "impossible"),
    [
        ("qa_squad/dev-v1.1.part1.json", 4903, 1005, 0),
        ("qa_squad/dev-v2.0.part1.json", 5920, 584, 2976),
        ("qa_xquad/xquad.zh.json", 1190, 240, 0),
        ("qa_cmrc2018/cmrc2018_dev.json", 3219, 848, 0),
        ("qa_cmrc2018/cmrc2018_trial.json", 1002, 256, 0),
    ],
)
def test_real_files(shared, name, questions, contexts, impossible):
    found = read_questions(shared / "data" / name)
    assert (len(found), len(found.contexts)) == (questions, contexts)
    assert sum(question.is_impossible for question in found.questions) == impossible
    assert found.has_impossible == bool(impossible)
    for question in found.for_training().questions:
        for text, start in question.answers:
            assert found.contexts[question.context].startswith(text, start)
            assert not question.is_impossible


def test_fields(tmp_path):
    impossible = {"id": "r", "question": "Why?", "answers": [], "is_impossible": True}
    bare = {"id": "s", "question": "When?"}
    found = read_questions(write(tmp_path, ENTRY, impossible, bare, version="v2.0"))
    assert found.contexts == ["Bob met Ann."]
    assert found.questions == [
        Question("q", "Who?", 0, (Answer("Bob", 0),)),
        Question("r", "Why?", 0, (), True),
        Question("s", "When?", 0),
    ]


def test_an_answer_elsewhere_is_found_nearby(caplog):
    context = "A cat. Some text. A  cat\u00a0here. The end."
    answers = ((Answer("dog", 0),), (Answer("A cat", 12),), (Answer("cat here", 3),))
    answers += ((Answer("cat", 2),), (Answer("dog", 0), Answer("end", 35)))
    numbered = [Question(f"q{i}", "?", 0, given) for i, given in enumerate(answers)]
    impossible = Question("no", "?", 0, (), True)
    found = QuestionSet([context], [*numbered, impossible], "set.json").for_training()
    assert found.questions == [
        Question("q1", "?", 0, (Answer("A  cat", 18),)),
        Question("q2", "?", 0, (Answer("cat\u00a0here", 21),)),
        Question("q3", "?", 0, (Answer("cat", 2),)),
        Question("q4", "?", 0, (Answer("end", context.index("end")),)),
        impossible,
    ]
    assert "set.json: 1 of 6 questions left out of training" in caplog.text
    assert "in the context: q0\n" in caplog.text
    assert "nearest place: q1, q2" in caplog.text


def test_many_ids_are_cut_in_the_warning(caplog):
    missing = [Question(f"q{i}", "?", 0, (Answer("dog", 0),)) for i in range(25)]
    QuestionSet(["A cat."], [*missing, Question("z", "?", 0, (Answer("cat", 2),))]).for_training()
    assert "q18, q19 and 5 more" in caplog.text
    with pytest.raises(ValueError, match="no question has an answer in its context"):
        QuestionSet(["A cat."], missing).for_training()


def test_empty_questions_are_kept_and_named(tmp_path, caplog):
    assert len(read_questions(write(tmp_path, {**ENTRY, "question": " "}))) == 1
    assert "1 questions are empty: q" in caplog.text


def test_questions_in_memory():
    found = QuestionSet.of(["a?", "b?", "c?"], ["x", "y", "x"])
    assert found.contexts == ["x", "y"]
    assert [question.context for question in found.questions] == [0, 1, 0]
    for bad in ((["a?"], []), ([], [])):
        with pytest.raises(ValueError, match="expected as many questions as contexts"):
            QuestionSet.of(*bad)
    with pytest.raises(ValueError, match="context 1: expected a text, got an empty one"):
        QuestionSet.of(["a?", "b?"], ["x", " "])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"set\.json:1: not valid JSON"),
        (b'"\xff"', r"set\.json: not UTF-8: byte 1"),
        (b"[]", "expected the layout of SQuAD, an object with the key 'data', got an array"),
        (b'{"rows": 1}', "the key 'data'; keys: 'rows'"),
        (b'{"data": {}}', "data: expected an array, got an object"),
        (b'{"data": [3]}', r"data\[0\]: expected an object, got a number"),
        (b'{"data": [{"paragraphs": [{}]}]}', r"data\[0\]\.paragraphs\[0\]: .* key 'context'"),
        (b'{"data": []}', "the file has no questions"),
    ],
)
def test_broken_files(tmp_path, content, message):
    path = tmp_path / "set.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_questions(path)


@pytest.mark.parametrize(
    ("entries", "context", "message"),
    [
        ([ENTRY], " \n", r"paragraphs\[0\]: context: expected a text, got an empty one"),
        ([ENTRY], "a\ud800", "context: half of a surrogate pair"),
        ([{**ENTRY, "id": 3}], "Bob", r"qas\[0\]: id: expected a string, got a number"),
        ([{**ENTRY, "answers": ["Bob"]}], "Bob", r"answers\[0\]: expected an object, got a string"),
        (
            [{**ENTRY, "answers": [{"text": "Bob", "answer_start": "0"}]}],
            "Bob",
            r"answers\[0\]: answer_start: expected a whole number, got a string",
        ),
        (
            [{**ENTRY, "answers": [{"text": "Bob", "answer_start": 4.0}]}],
            "Bob",
            r"answers\[0\]: answer_start: expected a whole number, got 4\.0",
        ),
        ([{**ENTRY, "is_impossible": True}], "Bob", "is_impossible is true, but there are answers"),
        (
            [ENTRY, ENTRY],
            "Bob",
            r"qas\[1\]: id 'q' is that of data\[0\]\.paragraphs\[0\]\.qas\[0\] too",
        ),
    ],
)
def test_broken_entries(tmp_path, entries, context, message):
    with pytest.raises(ValueError, match=message):
        read_questions(write(tmp_path, *entries, context=context))


def test_the_wrong_version(tmp_path):
    with pytest.raises(ValueError, match=r"no is_impossible: expected SQuAD 2\.0"):
        read_questions(write(tmp_path, ENTRY), unanswerable=True)
    path = write(tmp_path, {"id": "r", "question": "Why?", "answers": [], "is_impossible": True})
    with pytest.raises(ValueError, match=r"expected SQuAD 1\.1, .*, got SQuAD 2\.0"):
        read_questions(path, unanswerable=False)
    assert len(read_questions(path, unanswerable=True)) == 1
