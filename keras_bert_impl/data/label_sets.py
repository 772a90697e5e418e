"""Texts with any number of labels each: JSON lines with a list, or a table of 0/1 columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_bert_impl.data.columns import (
    Column,
    Columns,
    Table,
    find_columns,
    is_other_column,
    refuse_twice,
)
from keras_bert_impl.data.json_values import refuse_half_surrogates
from keras_bert_impl.data.rows import (
    Row,
    csv_line,
    file_format,
    json_type,
    read_rows,
    source_name,
    split_csv_line,
    value_of,
)

__all__ = ["LabelSetExamples", "encode_label_sets", "known_labels", "read_label_sets"]

_LABEL_KEYS = ("labels", "label")


@dataclass(frozen=True)
class LabelSetExamples:
    """The examples of one file; all lists have one entry an example.

    Attributes:
        texts: the texts.
        labels: the labels of each text, which may be none.
        lines: line numbers (from 1) on which the examples start.
        path: the file.
        columns: where they were found.
        names: the label columns of a table; None for JSON lines.
        pairs: always None.
    """

    texts: list[str]
    labels: list[tuple[str, ...]]
    lines: list[int]
    path: str
    columns: Columns
    names: tuple[str, ...] | None = None
    pairs: None = None

    def __len__(self) -> int:
        return len(self.texts)


def read_label_sets(
    path: str | os.PathLike,
    *,
    text: Column | None = None,
    label: Column | None = None,
    format: str | None = None,
) -> LabelSetExamples:
    """Reads a file.

    Args:
        path: JSON lines, or a TSV or CSV table with a header.
        text: column (key) of the text; by default a well-known name.
        label: JSON lines: key of the list, by default ``labels`` or ``label``. A table: names of
            the label columns, separated by commas (one that has a comma in it in quotes, as in
            CSV); by default all but the text and well-known others (id, index ...).
        format: as `read_labelled`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a list is not one of strings, a cell is neither 0 nor 1, or a column is not
            there or twice; file and line are named.
    """
    rows = list(read_rows(path, format))
    name = source_name(path)
    if not rows:
        raise ValueError(f"{name}: the file is empty")
    if file_format(path, format) == "jsonl":
        return _from_lists(rows, name, text, label)
    return _from_table(rows, name, text, label)


def _from_lists(rows: list[Row], name: str, text, label) -> LabelSetExamples:
    keys = list(rows[0].fields)
    table = Table(name, keys, [[str(value) for value in rows[0].fields.values()]], by_number=False)
    text_key = keys[find_columns(table, Columns(text)).text]
    wanted = (label,) if label is not None else _LABEL_KEYS
    label_key = next((key for key in wanted if key in keys), None)
    if label_key is None:
        raise ValueError(f"{name}: no labels: expected the key {' or '.join(wanted)!r}, got {keys}")
    texts, labels = [], []
    for row in rows:
        where = f"{name}:{row.line}"
        for key, kind in ((text_key, str), (label_key, list)):
            value = value_of(row.fields, key, where)
            if not isinstance(value, kind):
                expected = {str: "a string", list: "an array of strings"}[kind]
                raise ValueError(
                    f"{where}: key {key!r}: expected {expected}, got {json_type(value)}"
                )
            refuse_half_surrogates(value, f"{where}: key {key!r}")
        given = row.fields[label_key]
        for value in given:
            if not isinstance(value, str):
                raise ValueError(
                    f"{where}: key {label_key!r}: expected strings, got {json_type(value)}"
                )
        texts.append(row.fields[text_key])
        labels.append(tuple(dict.fromkeys(given)))
    columns = Columns(text_key, None, label_key)
    return LabelSetExamples(texts, labels, [row.line for row in rows], name, columns)


def _from_table(rows: list[Row], name: str, text, label) -> LabelSetExamples:
    header = [field.strip() for field in rows[0].fields]
    rows = rows[1:]
    if not rows:
        raise ValueError(f"{name}: the file has a header ({', '.join(header)}) and no rows")
    chosen = None if label is None else split_csv_line(str(label))
    unknown = [column for column in chosen or () if column not in header]
    if unknown:
        raise ValueError(f"{name}: no column {unknown[0]!r}; columns: {', '.join(header)}")
    table = Table(name, header, [rows[0].fields])
    text_column = find_columns(table, Columns(text), labelled=False).text
    if chosen is None:
        rest = [column for i, column in enumerate(header) if i != text_column]
        chosen = [column for column in rest if not is_other_column(column)]
    if len(chosen) < 2:
        raise ValueError(
            f"{name}: expected two label columns or more, got {chosen}: columns: "
            f"{', '.join(header)}: name them, separated by commas (--label-column)"
        )
    refuse_twice(header, chosen, name)
    places = [(column, header.index(column)) for column in chosen]
    labels = []
    for row in rows:
        cells = [(column, row.fields[place].strip()) for column, place in places]
        for column, cell in cells:
            if cell not in ("0", "1"):
                raise ValueError(
                    f"{name}:{row.line}: column {column!r}: expected 0 or 1, got {cell!r}"
                )
        labels.append(tuple(column for column, cell in cells if cell == "1"))
    return LabelSetExamples(
        [row.fields[text_column] for row in rows],
        labels,
        [row.line for row in rows],
        name,
        Columns(table.column(text_column), None, csv_line(chosen)),
        tuple(chosen),
    )


def known_labels(examples: LabelSetExamples) -> list[str]:
    """The label columns of a table in their order, else all labels that occur, sorted.

    Raises:
        ValueError: there are fewer than two.
    """
    found = examples.names or sorted({label for row in examples.labels for label in row})
    if len(found) < 2:
        raise ValueError(
            f"{examples.path}: training needs at least two labels, got {list(found)} (label column "
            f"{examples.columns.label!r})"
        )
    return list(found)


def encode_label_sets(examples: LabelSetExamples, labels: Sequence[str]) -> np.ndarray:
    """1 where a text has a label, float32 [N, C].

    Raises:
        ValueError: a label is not among `labels`; file and line are named.
    """
    places = {label: place for place, label in enumerate(labels)}
    table = np.zeros((len(examples), len(labels)), np.float32)
    for row, (line, given) in enumerate(zip(examples.lines, examples.labels, strict=True)):
        for label in given:
            if label not in places:
                raise ValueError(
                    f"{examples.path}:{line}: unknown label {label!r}; known labels: "
                    f"{', '.join(map(repr, labels))}"
                )
            table[row, places[label]] = 1
    return table
