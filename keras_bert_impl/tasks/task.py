"""What a kind of task is made of; `TASKS` has one of each."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

import keras
import numpy as np

from keras_bert_impl.data.batches import Targets, row_batches
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.data.encoding import EncodedTexts
from keras_bert_impl.tasks.inputs import InputOptions

__all__ = ["Encoded", "Task", "TaskOptions", "chunks", "row_losses"]


@dataclass(frozen=True)
class TaskOptions:
    """How texts become rows and outputs become answers.

    Attributes:
        max_length: longest row in tokens, special tokens included.
        doc_stride: tokens from one window over a text to the next (questions).
        max_query_length: tokens of a question.
        max_answer_length: tokens of an answer.
        n_best: answers that are compared.
        unanswerable: whether "no answer" is an answer.
        null_threshold: how much better than the best answer "no answer" has to be.
    """

    max_length: int = 128
    doc_stride: int = 128
    max_query_length: int = 64
    max_answer_length: int = 30
    n_best: int = 20
    unanswerable: bool = False
    null_threshold: float = 0.0


@dataclass(frozen=True)
class Encoded:
    """Examples as packed rows.

    Attributes:
        rows: the rows; an example has one, or one a choice, or one a window.
        targets: what `row_batches` takes; None without labels.
        weights: weight of each example, likewise.
        choices: rows an example that are shown to the model together; None: one by one.
        source: what the task needs to turn outputs into answers.
    """

    rows: EncodedTexts
    targets: Targets = None
    weights: Targets = None
    choices: int | None = None
    source: Any = None

    def batches(self, *, batch_size: int, shuffle: bool = False, seed: int = 0, **options):
        """Batches for ``model.fit`` (tf.data); `options` are those of `row_batches`."""
        return row_batches(
            self.rows,
            self.targets,
            self.weights,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            choices=self.choices,
            **options,
        )


class Task(ABC):
    """A kind of task: reader, encoder, model, decoder, scorer, writer.

    `examples` are what `read` returned: they have `len()`, a `path` and, if they are read from
    columns, `columns`. `labels` are the names that the model's outputs stand for, or None.
    `outputs` are whatever `outputs` returned.
    """

    name: ClassVar[str]
    model_class: ClassVar[type[keras.Model]]
    # The word of the user -> key in the report; the first is the default.
    metrics: ClassVar[Mapping[str, str]]
    # A score -> how it is shown in a line.
    shown: ClassVar[Mapping[str, str]]
    defaults: ClassVar[Mapping[str, Any]] = {}
    takes_class_weights: ClassVar[bool] = False
    # Whether the outputs are logits of one distribution.
    has_distribution: ClassVar[bool] = True

    @abstractmethod
    def read(
        self, path: str | os.PathLike, inputs: InputOptions, before: Columns | None = None
    ) -> Any:
        """Reads a labelled file; `before` says where an earlier one had its columns."""

    def options_of(self, examples, options: TaskOptions) -> TaskOptions:
        """The options, with what the training file tells."""
        return options

    @abstractmethod
    def labels(self, examples, inputs: InputOptions) -> list[str] | None:
        """The labels of a training file in a fixed order."""

    @abstractmethod
    def check(self, examples, labels: Sequence[str] | None) -> None:
        """Raises ValueError, with file and line, where an example has no label that is known."""

    @abstractmethod
    def encode(
        self, tokenizer, examples, labels, options: TaskOptions, *, training: bool = False
    ) -> Encoded:
        """Rows, with targets where `training`."""

    @abstractmethod
    def model_arguments(self, labels: Sequence[str] | None) -> dict[str, Any]:
        """Keyword arguments of `model_class` and of its `from_pretrained`."""

    @abstractmethod
    def outputs(self, model, encoded: Encoded, batch_size: int):
        """The model's outputs for all rows, in their order."""

    @abstractmethod
    def predictions(self, outputs, encoded: Encoded, labels, options: TaskOptions) -> list:
        """One prediction an example, in their order."""

    @abstractmethod
    def score(self, examples, outputs, encoded: Encoded, labels, options: TaskOptions) -> dict:
        """All scores, ready for JSON."""

    def loss(self, examples, outputs, labels) -> float | None:
        """Mean loss on the examples, where it is cheap to have."""
        return None

    def is_collapsed(self, report: dict) -> bool:
        """Whether a model predicts the same for every example."""
        return bool(report.get("constant", False))

    @abstractmethod
    def counts(self, examples, labels) -> dict[str, int]:
        """How many examples of each kind there are."""

    @abstractmethod
    def read_inputs(
        self,
        source: str | os.PathLike | BinaryIO,
        inputs: InputOptions,
        run,
        size: int,
    ) -> Iterator[Any]:
        """Examples without labels, `size` at a time where they are independent of each other."""

    def cells(self, examples, predictions: list) -> Iterator[tuple[str, ...]]:
        """The predictions as rows of a table without a header."""
        raise ValueError(f"predictions of {self.name} are no table: write them as tsv or jsonl")

    def tsv_lines(self, examples, predictions: list) -> Iterator[str]:
        """The predictions in the form that people of the task know."""
        return ("\t".join(cells) for cells in self.cells(examples, predictions))

    @abstractmethod
    def json_lines(self, examples, predictions: list) -> Iterator[dict]:
        """An object an example."""

    def document(self, examples, predictions: list) -> Any:
        """All predictions as one JSON value, where people of the task know such a form."""
        raise ValueError(
            f"predictions of {self.name} are written as TSV or JSON lines, not as JSON"
        )

    def errors(self, examples, predictions: list) -> list[tuple[str, ...]]:
        """(line, label, prediction, text ...) of each wrong one, a header first; or nothing."""
        return []


def row_losses(logits: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Cross-entropy of each row, float64 [N], of logits [N, C] and class indices."""
    logits = logits.astype(np.float64)
    top = logits.max(axis=-1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(axis=-1)) + top[:, 0]
    return total - logits[np.arange(len(classes)), classes]


def chunks(rows: Iterator, size: int) -> Iterator[list]:
    """Lists of `size` rows, the last one shorter."""
    while chunk := list(itertools.islice(rows, size)):
        yield chunk
