"""Questions about texts, in the JSON layout of SQuAD 1.1 and 2.0, XQuAD, CMRC 2018 and DRCD.

`data > paragraphs > context, qas (id, question, answers [text, answer_start], is_impossible)`;
or JSON lines with `question`, `context` and, if there are such, `id` and `answers`.
"""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from typing import BinaryIO

from keras_bert_impl.data.json_values import parse_json, refuse_half_surrogates
from keras_bert_impl.data.questions import Answer, Question, QuestionSet, some_of
from keras_bert_impl.data.rows import NoRowsError, json_type, read_bytes, read_rows, source_name

__all__ = ["read_questions"]

_logger = logging.getLogger(__name__)


def read_questions(
    source: str | os.PathLike | BinaryIO,
    format: str | None = None,
    *,
    unanswerable: bool | None = None,
    labelled: bool = True,
) -> QuestionSet:
    """Reads a file in the layout of SQuAD, or JSON lines.

    Answers are taken as they stand, also where `answer_start` is wrong or the text is not in the
    context: evaluation compares texts. `QuestionSet.for_training` looks at that. Empty questions,
    of which published sets have some, are kept too, and named in a warning.

    Args:
        source: file or binary stream, UTF-8.
        format: ``jsonl`` for JSON lines; None: found out.
        unanswerable: True asks for the layout of SQuAD 2.0, where each question has
            `is_impossible`; False for one where every question has an answer; None takes both.
        labelled: False reads the questions alone, whatever stands there as their answers.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no JSON, another layout or version, a duplicate id or an empty
            context; the message names the file and the place inside.
    """
    if format not in (None, "jsonl"):
        raise ValueError(f"format of questions must be jsonl or left out, got {format!r}")
    name, content = source_name(source), read_bytes(source)
    document = None if format == "jsonl" else _load(content, name)
    contexts: list[str] = []
    if document is None:
        entries = _in_lines(content, name, contexts)
    else:
        entries = _in_document(document, name, contexts)
    questions: list[Question] = []
    places: dict[str, str] = {}
    for where, entry in entries:
        question = _question(entry, len(contexts) - 1, where, labelled)
        other = places.setdefault(question.id, where)
        if other != where:
            there = other.removeprefix(f"{name}: ")
            raise ValueError(f"{where}: id {question.id!r} is that of {there} too")
        _check_version(entry, question, unanswerable, where)
        questions.append(question)
    if not questions:
        raise NoRowsError(f"{name}: the file has no questions")
    empty = [question.id for question in questions if not question.text.strip()]
    if empty:
        _logger.warning("%s: %d questions are empty: %s", name, len(empty), some_of(empty))
    return QuestionSet(contexts, questions, name)


def _load(content: bytes, name: str) -> dict | None:
    """The document in the layout of SQuAD; None for JSON lines."""
    try:
        document = parse_json(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: not UTF-8: byte {error.start}; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return None
        raise ValueError(
            f"{name}:{error.lineno}: not valid JSON: {error.msg} at character {error.colno}"
        ) from None
    if not isinstance(document, dict):
        raise ValueError(
            f"{name}: expected the layout of SQuAD, an object with the key 'data', "
            f"got {json_type(document)}"
        )
    return None if "question" in document and "data" not in document else document


def _in_document(document: dict, name: str, contexts: list[str]) -> Iterator[tuple[str, dict]]:
    """Where each question stands, and the question; adds its context before."""
    for a, article in enumerate(_field(document, "data", list, name)):
        place = f"{name}: data[{a}]"
        for p, paragraph in enumerate(_field(article, "paragraphs", list, place)):
            place = f"{name}: data[{a}].paragraphs[{p}]"
            contexts.append(_text(paragraph, "context", place))
            for q, entry in enumerate(_field(paragraph, "qas", list, place)):
                yield f"{place}.qas[{q}]", entry


def _in_lines(content: bytes, name: str, contexts: list[str]) -> Iterator[tuple[str, dict]]:
    """The same for JSON lines; a question without an id has the number of its row, from 0."""
    stream = io.BytesIO(content)
    stream.name = name
    for number, (line, entry) in enumerate(read_rows(stream, "jsonl")):
        where = f"{name}:{line}"
        context = _text(entry, "context", where)
        if not contexts or contexts[-1] != context:
            contexts.append(context)
        yield where, {"id": str(number), **entry}


def _field(entry, key: str, kind: type, where: str, default=None):
    """`entry[key]`, which has to be of a kind."""
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: expected an object, got {json_type(entry)}")
    if key not in entry and default is not None:
        return default
    if key not in entry:
        keys = ", ".join(map(repr, entry)) or "none"
        raise ValueError(
            f"{where}: expected the layout of SQuAD with the key {key!r}; keys: {keys}"
        )
    value = entry[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        expected = "a whole number" if kind is int else json_type(kind())
        received = value if isinstance(value, float) else json_type(value)
        raise ValueError(f"{where}: {key}: expected {expected}, got {received}")
    return value


def _text(entry, key: str, where: str, may_be_empty: bool = False) -> str:
    value = _field(entry, key, str, where)
    if not value.strip() and not may_be_empty:
        raise ValueError(f"{where}: {key}: expected a text, got an empty one")
    refuse_half_surrogates(value, f"{where}: {key}")
    return value


def _question(entry, context: int, where: str, labelled: bool) -> Question:
    text = _text(entry, "question", where, may_be_empty=True)
    number = _text(entry, "id", where)
    if not labelled:
        return Question(number, text, context)
    answers = []
    for i, answer in enumerate(_field(entry, "answers", list, where, [])):
        inside = f"{where}.answers[{i}]"
        start = _field(answer, "answer_start", int, inside, -1)
        answers.append(Answer(_text(answer, "text", inside, may_be_empty=True), start))
    is_impossible = _field(entry, "is_impossible", bool, where, False)
    if is_impossible and answers:
        raise ValueError(f"{where}: is_impossible is true, but there are answers")
    return Question(number, text, context, tuple(answers), is_impossible)


def _check_version(entry, question: Question, unanswerable, where: str) -> None:
    if unanswerable and "is_impossible" not in entry:
        raise ValueError(
            f"{where}: no is_impossible: expected SQuAD 2.0, where every question has it, "
            "got the layout of SQuAD 1.1"
        )
    if unanswerable is False and question.is_impossible:
        raise ValueError(
            f"{where}: is_impossible is true: expected SQuAD 1.1, where every question "
            "has an answer, got SQuAD 2.0"
        )
