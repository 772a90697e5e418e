"""Questions about texts, with their answers where they have some."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = ["Answer", "Question", "QuestionSet", "some_of"]

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
                self.path, len(moved), len(self.questions), some_of(moved),
            )  # fmt: skip
        if skipped:
            _logger.warning(
                "%s: %d of %d questions left out of training, as no answer was found in the "
                "context: %s",
                self.path, len(skipped), len(self.questions), some_of(skipped),
            )  # fmt: skip
        if not kept:
            raise ValueError(f"{self.path}: no question has an answer in its context to train on")
        return replace(self, questions=kept)


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


def some_of(ids: Iterable[str]) -> str:
    """The first ids, for messages."""
    ids = list(ids)
    more = f" and {len(ids) - _NAMED_IDS} more" if len(ids) > _NAMED_IDS else ""
    return ", ".join(ids[:_NAMED_IDS]) + more
