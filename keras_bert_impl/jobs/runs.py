"""A run: the folder that fine-tuning writes, and what can be done with it from Python.

Shapes: N texts, C classes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import keras
import numpy as np

from keras_bert_impl import checkpoints, sources
from keras_bert_impl.checkpoints.store import LABELS_FILE
from keras_bert_impl.data.choices import ChoiceExamples
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.data.encoding import check_length, check_string_lists, check_strings
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.data.readers import LabelledExamples
from keras_bert_impl.data.tagged_json import split_texts
from keras_bert_impl.data.tagging import TaggedSentences
from keras_bert_impl.decoding.spans import SpanAnswer
from keras_bert_impl.jobs.run_file import FORMAT_VERSION, RUN_FILE, read_run_file
from keras_bert_impl.tasks import TASKS, Choice, LabelSet, Prediction, Score, Task, TaskOptions
from keras_bert_impl.tasks.tagging import TaggedText
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = [
    "FORMAT_VERSION",
    "RUN_FILE",
    "ChoiceRun",
    "Prediction",
    "QuestionRun",
    "Run",
    "TaggingRun",
    "TextRun",
    "load",
]


@dataclass(frozen=True)
class Run:
    """A fine-tuned model with all that it needs.

    Attributes:
        model: the model.
        tokenizer: its `BertTokenizer`.
        labels: what its outputs are called; empty for tasks without labels.
        pairs: whether it takes pairs of texts; None where the folder does not say.
        columns: where the training file had its texts and labels.
        folder: where it was read from.
        task: the kind of task.
        options: how texts become rows.
        layout: name of the set of data whose layout the files have.
    """

    model: keras.Model
    tokenizer: BertTokenizer
    labels: tuple[str, ...]
    pairs: bool | None
    columns: Columns
    folder: Path
    task: Task = TASKS["classification"]
    options: TaskOptions = field(default_factory=TaskOptions)
    layout: str | None = None

    @property
    def max_length(self) -> int:
        """Tokens a row was cut to in training, special tokens included."""
        return self.options.max_length

    def predictions_of(self, examples, batch_size: int = 64) -> list:
        """One prediction for each of what the task's reader, or its `examples_of`, returns."""
        encoded, outputs = self._outputs(examples, batch_size)
        return self.task.predictions(outputs, encoded, self.labels, self.options)

    def report_of(self, examples, batch_size: int = 64) -> tuple[dict, list]:
        """Scores on labelled examples, and the predictions."""
        encoded, outputs = self._outputs(examples, batch_size)
        report = self.task.score(examples, outputs, encoded, self.labels, self.options)
        return report, self.task.predictions(outputs, encoded, self.labels, self.options)

    def _outputs(self, examples, batch_size: int) -> tuple:
        encoded = self.task.encode(self.tokenizer, examples, self.labels, self.options)
        return encoded, self.task.outputs(self.model, encoded, batch_size)


class TextRun(Run):
    """A run that gives each text, or pair of texts, a label, a score or a set of labels."""

    def predict(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        *,
        batch_size: int = 64,
    ) -> list[Prediction] | list[Score] | list[LabelSet]:
        """Label and probability (or score, or labels) of each text, in the order of the texts.

        Args:
            texts: texts; one string is one text.
            pairs: second texts, where the run takes pairs.
            batch_size: texts a step.

        Raises:
            ValueError: an element is not a string, the numbers of texts and pairs differ, or
                pairs are missing or not wanted.
        """
        examples = self._examples(texts, pairs)
        return self.predictions_of(examples, batch_size) if len(examples) else []

    def probabilities(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        *,
        batch_size: int = 64,
    ) -> np.ndarray:
        """Probability of each class, float32 [N, C], in the order of texts and `labels`.

        Raises:
            ValueError: as `predict`; or the task has no classes.
        """
        if self.task.name != "classification":
            raise ValueError(f"{self.folder} is a run of {self.task.name}: use predict")
        examples = self._examples(texts, pairs)
        if not len(examples):
            return np.zeros((0, len(self.labels)), np.float32)
        return self.task.all_probabilities(self._outputs(examples, batch_size)[1])

    def _examples(self, texts, pairs) -> LabelledExamples:
        texts = [texts] if isinstance(texts, str) else texts
        pairs = [pairs] if isinstance(pairs, str) else pairs
        if self.pairs is not None and self.pairs != (pairs is not None):
            kind, hint = ("pairs of texts", "give") if self.pairs else ("single texts", "leave out")
            raise ValueError(f"{self.folder} classifies {kind}: {hint} pairs")
        check_length("pairs", pairs, texts)
        check_strings("texts", texts)
        check_strings("pairs", () if pairs is None else pairs)
        return LabelledExamples(texts, pairs, None, [], "<memory>")


class ChoiceRun(Run):
    """A run that chooses among texts."""

    def predict(
        self,
        prompts: str | Sequence[str],
        choices: Sequence[str] | Sequence[Sequence[str]],
        *,
        batch_size: int = 64,
    ) -> list[Choice]:
        """The choice for each prompt.

        Args:
            prompts: texts; one string is one text, whose choices are then one list of strings.
            choices: as many lists of as many choices.
            batch_size: examples a step.

        Raises:
            ValueError: numbers differ, or an element is not a string.
        """
        if isinstance(prompts, str):
            prompts, choices = [prompts], [choices]
        if not len(prompts):
            return []
        check_strings("prompts", prompts)
        check_string_lists("choices", choices)
        examples = ChoiceExamples(list(prompts), [tuple(row) for row in choices])
        return self.predictions_of(examples, batch_size)


class QuestionRun(Run):
    """A run that answers questions with a part of a text."""

    def predict(
        self,
        questions: str | Sequence[str],
        contexts: str | Sequence[str],
        *,
        batch_size: int = 64,
    ) -> list[SpanAnswer]:
        """The answer to each question; `context[start:end] == text`.

        Args:
            questions: questions; one string is one question.
            contexts: as many texts, or one for all questions.
            batch_size: windows a step.

        Raises:
            ValueError: numbers differ, or an element is not a string, or is empty.
        """
        questions = [questions] if isinstance(questions, str) else questions
        contexts = [contexts] * len(questions) if isinstance(contexts, str) else contexts
        if not len(questions):
            return []
        check_strings("questions", questions)
        check_strings("contexts", contexts)
        return self.predictions_of(QuestionSet.of(questions, contexts), batch_size)


class TaggingRun(Run):
    """A run that tags words."""

    def predictions_of(self, examples, batch_size=64):
        if not any(examples.words):
            return [([], []) for _ in examples.words]
        return super().predictions_of(examples, batch_size)

    def predict(
        self, texts: str | Sequence[str] | Sequence[Sequence[str]], *, batch_size: int = 64
    ) -> list[TaggedText]:
        """Words, tags and entities of each text, in the order of the texts.

        Args:
            texts: texts, which are split into words (see `data.tagged_json.split_words`); one
                string is one text. Or lists of words.
            batch_size: rows a step.

        Raises:
            ValueError: an element is not a string, or not a list of words as the first one is.
        """
        texts = [texts] if isinstance(texts, str) else list(texts)
        if texts and isinstance(texts[0], Iterable) and not isinstance(texts[0], str):
            check_string_lists("texts", texts)
            examples, places = TaggedSentences(texts, None, None, [], "<memory>", [], " "), ()
        else:
            check_strings("texts", texts)
            examples = split_texts(texts, [])
            places = (texts, examples.offsets)
        found = self.predictions_of(examples, batch_size)
        return self.task.tagged_texts(examples.words, found, *places)


_RUNS = {
    "multiple-choice": ChoiceRun,
    "question-answering": QuestionRun,
    "token-classification": TaggingRun,
}
# Class of a checkpoint that says no task -> the task.
_TASK_OF_MODEL = {
    "BertClassifier": "classification",
    "BertMultipleChoice": "multiple-choice",
    "BertSpanPredictor": "question-answering",
    "BertTokenClassifier": "token-classification",
}


def load(source: str | os.PathLike) -> Run:
    """Loads what `keras-bert finetune` wrote, or another classifier with its tokenizer.

    Args:
        source: a run folder; also a Hugging Face folder or ``hf:ORG/NAME`` with a sequence
            classifier.

    Raises:
        FileNotFoundError: there is no such folder, or a file of it is missing.
        ValueError: a file is damaged or of a newer format, or there is no classifier.
    """
    folder = sources.resolve(source)
    checkpoint = checkpoints.open_checkpoint(folder)
    content = read_run_file(folder / RUN_FILE)
    name = content.get("task", _TASK_OF_MODEL.get(checkpoint.model_name))
    if str(name) not in TASKS or checkpoint.model_name not in _TASK_OF_MODEL:
        raise ValueError(
            f"{folder} holds no classifier: fine-tune it first "
            f"(keras-bert finetune --weights {folder} ...)"
        )
    task = TASKS[name]
    tokenizer = BertTokenizer.from_pretrained(folder)
    model = task.model_class.from_pretrained(folder)
    if "task" not in content and getattr(model, "problem", None) in _TASK_OF_PROBLEM:
        task = TASKS[_TASK_OF_PROBLEM[model.problem]]
    labels = getattr(model, "labels", None)
    if labels is None and content and getattr(model, "num_classes", 1) > 1:
        raise FileNotFoundError(
            f"{folder / LABELS_FILE}: no such file: without it nobody knows what the "
            f"{model.num_classes} outputs of the model stand for (one label a line, in their order)"
        )
    if labels is None:
        labels = tuple(str(index) for index in range(getattr(model, "num_classes", 0)))
    longest = model.config.max_position_embeddings
    options = {"max_length": min(longest, task.defaults.get("max_length", longest))}
    options |= {"max_length": content["max_length"]} if "max_length" in content else {}
    options |= content.get("options", {})
    try:
        columns, options = Columns(**content.get("columns", {})), TaskOptions(**options)
    except TypeError as error:
        raise ValueError(f"{folder / RUN_FILE}: not written by this package: {error}") from None
    return _RUNS.get(task.name, TextRun)(
        model=model,
        tokenizer=tokenizer,
        labels=labels,
        pairs=content.get("pairs"),
        columns=columns,
        folder=folder,
        task=task,
        options=options,
        layout=content.get("layout"),
    )


_TASK_OF_PROBLEM = {"regression": "regression", "multi_label": "multi-label"}
