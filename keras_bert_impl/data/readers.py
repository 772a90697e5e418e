"""Labelled and unlabelled texts from TSV, CSV and JSON lines files."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

from keras_bert_impl.data.columns import (
    Column,
    Columns,
    Table,
    find_columns,
    is_header,
    refuse_hidden_header,
)
from keras_bert_impl.data.json_values import refuse_half_surrogates
from keras_bert_impl.data.rows import (
    NoRowsError,
    Row,
    file_format,
    json_type,
    read_rows,
    source_name,
    value_of,
)

__all__ = ["LabelledExamples", "TextRow", "iterate_texts", "read_labelled"]

_logger = logging.getLogger(__name__)

_ROWS_TO_TELL_COLUMNS = 1000
_NO_COLUMNS = Columns()


@dataclass(frozen=True)
class LabelledExamples:
    """The examples of one file; all lists have one entry an example, in the order of the file.

    Attributes:
        texts: first (or only) texts.
        pairs: second texts; None for single texts.
        labels: labels as written, without surrounding white space; None for an unlabelled file.
        lines: line numbers (from 1) on which the examples start, for messages.
        path: the file.
        columns: where they were found (names where the file has such, else numbers); pass them on
            to read a second file in the same way: ``read_labelled(dev, **columns._asdict())``.
        description: the columns of the file in words, for messages.
    """

    texts: list[str]
    pairs: list[str] | None
    labels: list[str] | None
    lines: list[int]
    path: str
    columns: Columns = _NO_COLUMNS
    description: str = ""

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, kept: Sequence[int]) -> LabelledExamples:
        """Some of the examples, in the order of their numbers `kept`."""
        lists = {
            name: [values[row] for row in kept]
            for name in ("texts", "pairs", "labels", "lines")
            if (values := getattr(self, name)) is not None
        }
        return replace(self, **lists)


class TextRow(NamedTuple):
    """One text to classify: the line on which it starts (from 1), the text and its pair."""

    line: int
    text: str
    pair: str | None


def read_labelled(
    path: str | os.PathLike | BinaryIO,
    *,
    text: Column | None = None,
    pair: Column | None = None,
    label: Column | None = None,
    format: str | None = None,
    header: bool | None = None,
    skip_short: bool = False,
) -> LabelledExamples:
    """Reads a whole file of examples.

    Args:
        path: a file (``.gz`` too), ``"-"`` for standard input, or a binary stream.
        text: column of the text: a name in the header (JSON lines: a key) or a number from 0. By
            default a well-known name (sentence, text, text_a, sentence1, premise ...), and in a
            file of two columns by what the cells look like.
        pair: column of the second text, given in the same way.
        label: column of the label, given in the same way. Where there is none, or an empty one,
            `labels` is None.
        format: ``"tsv"`` (a quote is an ordinary character), ``"csv"`` (quoted) or ``"jsonl"``;
            by default from the extension.
        header: whether the first row is a header; by default told by well-known names.
        skip_short: leave rows out that have fewer columns than the first, with a warning that
            counts them, where they are an error otherwise.

    Raises:
        ValueError: the file is empty or has a header only, is not UTF-8, has ragged rows or broken
            syntax, lacks a column or has two of its name, or has an empty label among others; or it
            cannot be told which column holds the text, or whether the first row is a header.
            Messages start with the file and, for one row, its line.
        FileNotFoundError: no such file.
    """
    layout, rows = _open(path, Columns(text, pair, label), format, header, skip_short)
    texts, pairs, labels, lines = [], [], [], []
    for row in rows:
        first, second = layout.texts_of(row)
        texts.append(first)
        pairs.append(second)
        labels.append(layout.label_of(row))
        lines.append(row.line)
    if layout.table.width == 1 and not any(text.strip() for text in texts):
        raise ValueError(f"{layout.table.name}: the file is empty")
    labelled = _are_labelled(labels, lines, layout)
    if labelled and header is None and layout.table.names is None:
        refuse_hidden_header(layout.table, labels)
    _logger.info("%s: %d examples; %s", layout.table.name, len(texts), layout.used())
    return LabelledExamples(
        texts=texts,
        pairs=pairs if layout.columns.pair is not None else None,
        labels=labels if labelled else None,
        lines=lines,
        path=layout.table.name,
        columns=layout.found(),
        description=layout.table.describe(),
    )


def iterate_texts(
    source: str | os.PathLike | BinaryIO,
    *,
    text: Column | None = None,
    pair: Column | None = None,
    format: str | None = None,
    header: bool | None = None,
) -> Iterator[TextRow]:
    """Yields the texts of a file one by one, as many as it has rows, without loading it whole.

    Labels are not looked at. A file of one column is one text a line, blank lines included. The
    arguments, and the errors raised while iterating, are those of `read_labelled`.
    """
    layout, rows = _open(source, Columns(text, pair), format, header, labelled=False)
    for row in rows:
        yield TextRow(row.line, *layout.texts_of(row))


@dataclass(frozen=True)
class _Layout:
    """Takes texts and label out of a row. `keys` are the column names of JSON lines."""

    table: Table
    columns: Columns
    keys: list[str] | None

    def found(self) -> Columns:
        return Columns(*(None if c is None else self.table.column(c) for c in self.columns))

    def used(self) -> str:
        pairs = zip(Columns._fields, self.found(), strict=True)
        return ", ".join(f"{role} column {c!r}" for role, c in pairs if c is not None)

    def texts_of(self, row: Row) -> tuple[str, str | None]:
        first = self._text(row, self.columns.text)
        return first, None if self.columns.pair is None else self._text(row, self.columns.pair)

    def _text(self, row: Row, column: int) -> str:
        if self.keys is None:
            return row.fields[column]
        key, where = self.keys[column], f"{self.table.name}:{row.line}"
        value = value_of(row.fields, key, where)
        if not isinstance(value, str):
            raise ValueError(f"{where}: key {key!r}: expected a string, got {json_type(value)}")
        refuse_half_surrogates(value, f"{where}: key {key!r}")
        return value

    def label_of(self, row: Row) -> str:
        """The label as a string, empty where there is none."""
        column = self.columns.label
        if column is None:
            return ""
        if self.keys is None:
            return row.fields[column].strip()
        key = self.keys[column]
        value, where = row.fields.get(key), f"{self.table.name}:{row.line}: key {key!r}"
        if isinstance(value, list | dict):
            raise ValueError(
                f"{where}: expected a string or a number as label, got {json_type(value)}"
            )
        refuse_half_surrogates(value, where)
        return _plain(value).strip()


def _open(
    source: str | os.PathLike | BinaryIO,
    asked: Columns,
    format: str | None,
    header: bool | None,
    skip_short: bool = False,
    labelled: bool = True,
) -> tuple[_Layout, Iterator[Row]]:
    """Finds the columns of a file; returns them and an iterator over its rows of data."""
    name = source_name(source)
    format = file_format(source, format)
    rows = read_rows(source, format, skip_short=skip_short)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{name}: the file is empty")
    keys = names = None
    if format == "jsonl":
        keys = names = list(first.fields)
    elif is_header(first.fields, asked, header, name):
        names = [field.strip() for field in first.fields]
        first = next(rows, None)
        if first is None:
            raise NoRowsError(f"{name}: the file has a header ({', '.join(names)}) and no rows")
        _logger.info("%s: line 1 is a header: %s", name, ", ".join(names))
    wanted = _ROWS_TO_TELL_COLUMNS if len(names or first.fields) == 2 else 1
    head = [first, *itertools.islice(rows, wanted - 1)]
    sample = [row.fields if keys is None else _cells(row.fields, keys) for row in head]
    table = Table(name, names, sample, by_number=keys is None)
    layout = _Layout(table, find_columns(table, asked, labelled=labelled), keys)
    return layout, itertools.chain(head, rows)


def _cells(fields: dict[str, object], keys: list[str]) -> list[str]:
    return [_plain(fields.get(key)) for key in keys]


def _plain(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _are_labelled(labels: list[str], lines: list[int], layout: _Layout) -> bool:
    if not any(labels):
        return False
    if "" in labels:
        row = labels.index("")
        raise ValueError(
            f"{layout.table.name}:{lines[row]}: empty label (label column "
            f"{layout.found().label!r}; other rows have one)"
        )
    return True
