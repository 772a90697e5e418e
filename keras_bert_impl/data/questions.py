"""Questions about texts, in the JSON layout of SQuAD 1.1 and 2.0, XQuAD, CMRC 2018 and DRCD.

`data > paragraphs > context, qas (id, question, answers [text, answer_start], is_impossible)`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.data.rows import json_type

__all__ = ["Answer", "Question", "QuestionSet", "read_questions"]

_logger = logging.getLogger(__name__)

_NAMED_IDS = 20


class Answer(NamedTuple):
    """An answer and its first character in the context, or -1 where the file does not say."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about `contexts[context]` of its set.

    `answers` is empty for one without an answer (`is_impossible`), and where the file has none.
    """

    id: str
    text: str
    context: int
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False


@dataclass(frozen=True)
class QuestionSet:
    """Questions in the order of their file.

    Attributes:
        contexts: each paragraph once.
        questions: their `context` is an index into `contexts`.
        path: where they come from, for messages.
    """

    contexts: list[str]
    questions: list[Question]
    path: str = "<memory>"

    @classmethod
    def of(cls, questions: Sequence[str], contexts: Sequence[str]) -> QuestionSet:
        """Questions without answers, one a context; equal contexts are kept once.

        Raises:
            ValueError: the numbers differ, there is none, or one is empty.
        """
        if len(questions) != len(contexts) or not questions:
            raise ValueError(
                f"expected as many questions as contexts, and at least one, got {len(questions)} "
                f"and {len(contexts)}"
            )
        for name, texts in (("question", questions), ("context", contexts)):
            for row, text in enumerate(texts):
                if not text.strip():
                    raise ValueError(f"{name} {row}: expected a text, got an empty one")
        index = {text: number for number, text in enumerate(dict.fromkeys(contexts))}
        pairs = enumerate(zip(questions, contexts, strict=True))
        return cls(list(index), [Question(str(i), q, index[c]) for i, (q, c) in pairs])

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def has_impossible(self) -> bool:
        """Whether a question is marked as one without an answer (SQuAD 2.0)."""
        return any(question.is_impossible for question in self.questions)

    def for_training(self) -> QuestionSet:
        """The questions to train on, each with one answer that stands where its start says.

        Of several answers the first that can be found is taken. One that does not stand at its
        `answer_start` is looked for in the context, white space of any kind and length counting
        as equal, and the nearest place is taken. Questions with answers of which none is found,
        or with none although they are not marked as impossible, are left out.

        Both are counted in a warning, the second with the ids.

        Raises:
            ValueError: no question is left.
        """
        kept, moved, skipped = [], [], []
        for question in self.questions:
            context = self.contexts[question.context]
            located = (_locate(answer, context) for answer in question.answers)
            answer = next((answer for answer in located if answer is not None), None)
            if answer is None and not question.is_impossible:
                skipped.append(question.id)
                continue
            answers = () if answer is None else (answer,)
            if answers and answer not in question.answers:
                moved.append(question.id)
            kept.append(question._replace(answers=answers))
        if moved:
            _logger.warning(
                "%s: %d of %d questions: the answer does not stand at its answer_start; taken "
                "from the nearest place: %s",
                self.path, len(moved), len(self.questions), _some(moved),
            )  # fmt: skip
        if skipped:
            _logger.warning(
                "%s: %d of %d questions left out of training, as no answer was found in the "
                "context: %s",
                self.path, len(skipped), len(self.questions), _some(skipped),
            )  # fmt: skip
        if not kept:
            raise ValueError(f"{self.path}: no question has an answer in its context to train on")
        return replace(self, questions=kept)


def read_questions(path: str | os.PathLike, *, unanswerable: bool | None = None) -> QuestionSet:
    """Reads a file in the layout of SQuAD.

    Answers are taken as they stand, also where `answer_start` is wrong or the text is not in the
    context: evaluation compares texts. `QuestionSet.for_training` looks at that. Empty questions,
    of which published sets have some, are kept too, and named in a warning.

    Args:
        path: JSON file, UTF-8.
        unanswerable: True asks for the layout of SQuAD 2.0, where each question has
            `is_impossible`; False for one where every question has an answer; None takes both.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no JSON, another layout or version, a duplicate id or an empty
            context; the message names the file and the place inside.
    """
    name = os.fspath(path)
    data = _field(_load(Path(path), name), "data", list, name, "")
    contexts: list[str] = []
    questions: list[Question] = []
    places: dict[str, str] = {}
    for a, article in enumerate(data):
        place = f"data[{a}]"
        for p, paragraph in enumerate(_field(article, "paragraphs", list, name, place)):
            place = f"data[{a}].paragraphs[{p}]"
            context = _text(paragraph, "context", name, place)
            contexts.append(context)
            for q, entry in enumerate(_field(paragraph, "qas", list, name, place)):
                place = f"data[{a}].paragraphs[{p}].qas[{q}]"
                question = _question(entry, len(contexts) - 1, name, place)
                other = places.setdefault(question.id, place)
                if other != place:
                    raise ValueError(f"{name}: {place}: id {question.id!r} is that of {other} too")
                _check_version(entry, question, unanswerable, name, place)
                questions.append(question)
    if not questions:
        raise ValueError(f"{name}: the file has no questions")
    empty = [question.id for question in questions if not question.text.strip()]
    if empty:
        _logger.warning("%s: %d questions are empty: %s", name, len(empty), _some(empty))
    return QuestionSet(contexts, questions, name)


def _load(path: Path, name: str):
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: not UTF-8: byte {error.start}; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{name}:{error.lineno}: not valid JSON: {error.msg} at character {error.colno}"
        ) from None
    if not isinstance(content, dict):
        raise ValueError(
            f"{name}: expected the layout of SQuAD, an object with the key 'data', "
            f"got {json_type(content)}"
        )
    return content


_KINDS = {str: "a string", list: "an array", int: "a number", bool: "a boolean"}


def _field(entry, key: str, kind: type, name: str, place: str, default=None):
    """`entry[key]`, which has to be of a kind."""
    here = f"{name}: {place}: " if place else f"{name}: "
    if not isinstance(entry, dict):
        raise ValueError(f"{here}expected an object, got {json_type(entry)}")
    if key not in entry and default is not None:
        return default
    if key not in entry:
        keys = ", ".join(map(repr, entry)) or "none"
        raise ValueError(f"{here}expected the layout of SQuAD with the key {key!r}; keys: {keys}")
    value = entry[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{here}{key}: expected {_KINDS[kind]}, got {json_type(value)}")
    return value


def _text(entry, key: str, name: str, place: str, may_be_empty: bool = False) -> str:
    value = _field(entry, key, str, name, place)
    if not value.strip() and not may_be_empty:
        raise ValueError(f"{name}: {place}: {key}: expected a text, got an empty one")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name}: {place}: {key}: half of a surrogate pair is not text")
    return value


def _question(entry, context: int, name: str, place: str) -> Question:
    text = _text(entry, "question", name, place, may_be_empty=True)
    number = _text(entry, "id", name, place)
    answers = []
    for i, answer in enumerate(_field(entry, "answers", list, name, place, [])):
        inside = f"{place}.answers[{i}]"
        start = _field(answer, "answer_start", int, name, inside, -1)
        answers.append(Answer(_field(answer, "text", str, name, inside), start))
    is_impossible = _field({"is_impossible": False, **entry}, "is_impossible", bool, name, place)
    if is_impossible and answers:
        raise ValueError(f"{name}: {place}: is_impossible is true, but there are answers")
    return Question(number, text, context, tuple(answers), is_impossible)


def _check_version(entry, question: Question, unanswerable, name: str, place: str) -> None:
    if unanswerable and "is_impossible" not in entry:
        raise ValueError(
            f"{name}: {place}: no is_impossible: expected SQuAD 2.0, where every question has it, "
            "got the layout of SQuAD 1.1"
        )
    if unanswerable is False and question.is_impossible:
        raise ValueError(
            f"{name}: {place}: is_impossible is true: expected SQuAD 1.1, where every question "
            "has an answer, got SQuAD 2.0"
        )


def _locate(answer: Answer, context: str) -> Answer | None:
    """The answer where it stands in the context, nearest to its `start`."""
    text, start = answer
    if text and start >= 0 and context.startswith(text, start):
        return answer
    words = text.split()
    if not words:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = min(
        pattern.finditer(context), key=lambda match: abs(match.start() - start), default=None
    )
    return None if found is None else Answer(found.group(), found.start())


def _some(ids: Iterable[str]) -> str:
    ids = list(ids)
    more = f" and {len(ids) - _NAMED_IDS} more" if len(ids) > _NAMED_IDS else ""
    return ", ".join(ids[:_NAMED_IDS]) + more
