"""Every kind of fine-tuning: one row a kind, with its reader, model, decoder and scorer."""

from __future__ import annotations

from keras_bert_impl.data.glue import TEXT_SETS
from keras_bert_impl.tasks.choices import Choice, MultipleChoice
from keras_bert_impl.tasks.inputs import InputOptions
from keras_bert_impl.tasks.questions import QuestionAnswering
from keras_bert_impl.tasks.tagging import TaggedText, TokenClassification
from keras_bert_impl.tasks.task import Encoded, Task, TaskOptions
from keras_bert_impl.tasks.texts import (
    Classification,
    LabelSet,
    MultiLabel,
    Prediction,
    Regression,
    Score,
)

__all__ = [
    "TASKS",
    "Choice",
    "Encoded",
    "InputOptions",
    "LabelSet",
    "Prediction",
    "Score",
    "TaggedText",
    "Task",
    "TaskOptions",
    "find_task",
    "task_names",
]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Classification(),
        Regression(),
        MultiLabel(),
        MultipleChoice(),
        QuestionAnswering(),
        TokenClassification(),
    )
}
# Names of sets and other words for a kind.
_ALIASES = {
    **{name: layout.kind for name, layout in TEXT_SETS.items()},
    **dict.fromkeys(("qa", "squad", "squad2", "xquad", "cmrc", "drcd"), "question-answering"),
    "swag": "multiple-choice",
    **dict.fromkeys(("ner", "pos"), "token-classification"),
}


def task_names() -> list[str]:
    """What `find_task` knows: kinds, then sets."""
    return [*TASKS, *_ALIASES]


def find_task(name: str) -> tuple[Task, str | None]:
    """The task of a kind or of a set of data, and the set's name where it has a layout of its own.

    Raises:
        ValueError: another name.
    """
    task = TASKS.get(_ALIASES.get(name, name))
    if task is None:
        raise ValueError(f"task must be one of {', '.join(task_names())}, got {name!r}")
    return task, name if name in TEXT_SETS else None
