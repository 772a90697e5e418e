"""Reads files of labelled texts: which columns, and a second file in the way of the first."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from keras_bert_impl.data.columns import Column, Columns, is_header
from keras_bert_impl.data.glue import columns_of_set, read_text_set
from keras_bert_impl.data.readers import LabelledExamples, TextRow, iterate_texts, read_labelled
from keras_bert_impl.data.rows import read_rows

__all__ = ["FOUND_OUT", "InputOptions", "ReplayedStream", "iterate_inputs", "read_examples"]

_UNKNOWN = Columns()


@dataclass(frozen=True)
class InputOptions:
    """What the user said about a file; None: find out. See `read_labelled`.

    `layout` is a key of `keras_bert_impl.data.glue.TEXT_SETS`: columns are those of that set,
    unless some are named.
    """

    text: Column | None = None
    pair: Column | None = None
    label: Column | None = None
    format: str | None = None
    header: bool | None = None
    layout: str | None = None

    @property
    def names_columns(self) -> bool:
        return not self.text is self.pair is self.label is None

    def read(self, path: str | os.PathLike, columns: Columns) -> LabelledExamples:
        """Reads a file with columns that are known."""
        options = {"format": self.format, "header": self.header}
        return read_labelled(path, **columns._asdict(), **options)


FOUND_OUT = InputOptions()


def read_examples(
    path: str | os.PathLike, options: InputOptions, before: Columns = _UNKNOWN
) -> LabelledExamples:
    """Reads a labelled file.

    Args:
        path: the file.
        options: what the user said about it.
        before: where an earlier file of the same task had its columns. They are looked for in the
            same place, unless the user named columns or the file has a header with other names.

    Raises:
        ValueError, FileNotFoundError: as `read_labelled`.
    """
    asked = Columns(options.text, options.pair, options.label)
    if options.layout is not None and not options.names_columns:
        return read_text_set(path, options.layout, options.format)
    if not options.names_columns and before != _UNKNOWN:
        fields = next(read_rows(path, options.format), None)
        if fields is not None and _is_same_layout(fields.fields, options, before, str(path)):
            asked = before
    return options.read(path, asked)


def iterate_inputs(
    source: str | os.PathLike | BinaryIO,
    options: InputOptions,
    before: Columns = _UNKNOWN,
    pairs: bool | None = None,
) -> Iterator[TextRow]:
    """Yields texts without labels one by one, as many as the file has rows.

    Args:
        source: a file or a binary stream.
        options: what the user said about it; `label` is not looked at.
        before: where the training file had its columns.
        pairs: whether pairs of texts are needed (True), or single texts (False).

    Raises:
        ValueError: as `read_labelled`; or pairs are needed and not there, or the reverse.
        FileNotFoundError: as `read_labelled`.
    """
    if options.layout is not None and not options.names_columns and not hasattr(source, "read"):
        yield from _of_set(source, options)
        return
    if hasattr(source, "read"):
        source = ReplayedStream(source)
    name = getattr(source, "name", source)
    text, pair = options.text, options.pair
    if text is None and pair is None:
        text, pair = _text_columns(source, options, before, pairs)
    rows = iterate_texts(source, text=text, pair=pair, format=options.format, header=options.header)
    for row in rows:
        if pairs and row.pair is None:
            raise ValueError(
                f"{name}: the model classifies pairs of texts, and there is one text a row: "
                "give text= and pair= (--text-column, --pair-column)"
            )
        if pairs is False and row.pair is not None:
            raise ValueError(
                f"{name}: the model classifies single texts, and there are two a row: "
                "give text= (--text-column)"
            )
        yield row


def _of_set(path: str | os.PathLike, options: InputOptions) -> Iterator[TextRow]:
    """As many rows as the file has, the ones without a label too."""
    columns, header = columns_of_set(path, options.layout, options.format)
    yield from iterate_texts(
        path, text=columns.text, pair=columns.pair, format=options.format, header=header
    )


def _text_columns(source, options, before, pairs) -> tuple[Column | None, Column | None]:
    """The text and pair column where the training file or the width tells them, else None."""
    head = io.BytesIO(source.first) if isinstance(source, ReplayedStream) else source
    first = next(read_rows(head, options.format), None)
    if first is None or len(first.fields) == 1:
        return None, None
    if len(first.fields) == 2 and not isinstance(first.fields, dict):
        if is_header(first.fields, _UNKNOWN, options.header, str(source)):
            named = isinstance(before.text, str) and before.text in first.fields
            return (before.text, before.pair) if named else (None, None)
        # Two columns may be text and label, or number and text: only a pair is plain.
        return (0, 1) if pairs else (None, None)
    wanted = before._replace(label=None) if isinstance(before.text, str) else before
    if _is_same_layout(first.fields, options, wanted, str(source)):
        return before.text, before.pair
    return None, None


def _is_same_layout(
    fields: list[str] | dict, options: InputOptions, before: Columns, name: str
) -> bool:
    """Whether the first row of a file has the columns of an earlier one."""
    wanted = [column for column in before if column is not None]
    if not wanted:
        return False
    named = [column for column in wanted if isinstance(column, str)]
    if named:
        names = set(fields) if isinstance(fields, dict) else {field.strip() for field in fields}
        return options.header is not False and names.issuperset(named)
    if isinstance(fields, dict) or is_header(fields, _UNKNOWN, options.header, name):
        return False
    return len(fields) > max(wanted)


class ReplayedStream(io.RawIOBase):
    """A stream of lines whose `first` line (bytes) can be looked at before it is read."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self.first = stream.readline()
        self.name = "<stdin>"

    def __str__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[bytes]:
        if self.first:
            yield self.first
        yield from self._stream
