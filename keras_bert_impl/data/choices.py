"""Texts with choices of how they go on: SWAG's CSV, and JSON lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from keras_bert_impl.data.columns import refuse_twice
from keras_bert_impl.data.encoding import EncodedTexts, encode_texts
from keras_bert_impl.data.json_values import refuse_half_surrogates
from keras_bert_impl.data.rows import (
    NoRowsError,
    Row,
    file_format,
    json_type,
    read_rows,
    source_name,
)

__all__ = ["ChoiceExamples", "encode_choices", "encode_right_choices", "read_choices"]

_PROMPTS = ("prompt", "question", "context", "text", "sentence")


@dataclass(frozen=True)
class ChoiceExamples:
    """Examples with C choices each; all lists have one entry an example.

    Attributes:
        prompts: the texts that go on.
        choices: C texts each.
        labels: index of the right choice as written; None for a file without.
        lines: line numbers (from 1).
        path: the file.
    """

    prompts: list[str]
    choices: list[tuple[str, ...]]
    labels: list[str] | None = None
    lines: Sequence[int] = ()
    path: str = "<memory>"

    def __post_init__(self) -> None:
        if len(self.prompts) != len(self.choices) or not self.prompts:
            raise ValueError(
                f"{self.path}: expected as many lists of choices as prompts, and at least one, "
                f"got {len(self.choices)} and {len(self.prompts)}"
            )
        for row, choices in enumerate(self.choices):
            if len(choices) != self.number or self.number < 2:
                where = f"{self.path}:{self.lines[row]}" if self.lines else f"example {row}"
                raise ValueError(
                    f"{where}: expected {max(self.number, 2)} choices, got {len(choices)}"
                )

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def number(self) -> int:
        """C."""
        return len(self.choices[0])


def read_choices(path: str | os.PathLike | BinaryIO, format: str | None = None) -> ChoiceExamples:
    """Reads a file or a binary stream.

    A table has the header of SWAG: ``sent1``, ``sent2`` (the beginning of each choice), ``ending0``
    to ``ending3`` (any number from 2 on) and ``label``. JSON lines have ``prompt`` (or
    ``question``, ``context`` ...), ``choices``, a list of strings, and ``label``, the index of the
    right one. Without labels (or with empty ones, all of them) it is a file to predict.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a column or key is missing or of another type, or the numbers of choices
            differ; file and line are named.
    """
    name, rows = source_name(path), list(read_rows(path, format))
    if not rows:
        raise ValueError(f"{name}: the file is empty")
    is_json = file_format(path, format) == "jsonl"
    found = _from_json(rows, name) if is_json else _from_table(rows, name)
    prompts, choices, labels, lines = (list(column) for column in zip(*found, strict=True))
    return ChoiceExamples(prompts, choices, labels if any(labels) else None, lines, name)


def _from_table(rows: list[Row], name: str) -> list[tuple]:
    header = [field.strip() for field in rows[0].fields]
    endings = sorted(
        (column for column in header if column.startswith("ending") and column[6:].isdigit()),
        key=lambda column: int(column[6:]),
    )
    if "sent1" not in header or len(endings) < 2:
        raise ValueError(
            f"{name}: expected the columns of SWAG (sent1, sent2, ending0, ending1 ..., label), "
            f"got {', '.join(header)}"
        )
    if len(rows) == 1:
        raise NoRowsError(f"{name}: the file has a header ({', '.join(header)}) and no rows")
    refuse_twice(header, ("sent1", "sent2", *endings, "label"), name)
    found = []
    for row in rows[1:]:
        fields = dict(zip(header, row.fields, strict=True))
        start = fields.get("sent2", "").strip()
        choices = tuple(f"{start} {fields[ending]}".strip() for ending in endings)
        found.append((fields["sent1"], choices, fields.get("label", "").strip(), row.line))
    return found


def _from_json(rows: list[Row], name: str) -> list[tuple]:
    key = next((key for key in _PROMPTS if key in rows[0].fields), None)
    if key is None:
        raise ValueError(
            f"{name}: expected a key {', '.join(_PROMPTS)}; keys: {', '.join(rows[0].fields)}"
        )
    found = []
    for row in rows:
        where = f"{name}:{row.line}"
        prompt, choices = row.fields.get(key), row.fields.get("choices")
        if not isinstance(prompt, str):
            raise ValueError(f"{where}: key {key!r}: expected a string, got {json_type(prompt)}")
        if not isinstance(choices, list):
            raise ValueError(
                f"{where}: key 'choices': expected an array of strings, got {json_type(choices)}"
            )
        for number, choice in enumerate(choices):
            if not isinstance(choice, str):
                raise ValueError(
                    f"{where}: key 'choices': element {number}: expected a string, got "
                    f"{json_type(choice)}"
                )
        label = row.fields.get("label")
        refuse_half_surrogates([prompt, choices, label], where)
        found.append((prompt, tuple(choices), "" if label is None else str(label), row.line))
    return found


def encode_choices(tokenizer, examples: ChoiceExamples, *, max_length: int = 128) -> EncodedTexts:
    """Rows `[CLS] prompt [SEP] choice [SEP]`, C an example, one behind the other."""
    prompts = [prompt for prompt in examples.prompts for _ in range(examples.number)]
    choices = [choice for choices in examples.choices for choice in choices]
    return encode_texts(tokenizer, prompts, choices, max_length=max_length)


def encode_right_choices(examples: ChoiceExamples) -> np.ndarray:
    """Index of the right choice of each example, int32 [N].

    Raises:
        ValueError: there are no labels, or one is no such index; file and line are named.
    """
    if examples.labels is None:
        raise ValueError(f"{examples.path}: no labels: expected a column (key) 'label'")
    known = [str(index) for index in range(examples.number)]
    for line, label in zip(examples.lines, examples.labels, strict=True):
        if label not in known:
            raise ValueError(
                f"{examples.path}:{line}: expected the index of a choice, 0 to {known[-1]}, as "
                f"label, got {label!r}"
            )
    return np.array([int(label) for label in examples.labels], np.int32)
