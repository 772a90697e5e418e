"""Rows of a TSV, CSV or JSON lines file with their line numbers, read as a stream.

Lines end at a line feed only (a carriage return before it is dropped), so that U+2028, U+0085 and
the other separators that ``str.splitlines`` knows stay inside their field. TSV has no quoting, as
in the GLUE files: a quote is an ordinary character. CSV has the quoting of RFC 4180.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from keras_bert_impl.data.json_values import parse_json

__all__ = [
    "FORMATS",
    "NoRowsError",
    "Row",
    "csv_line",
    "file_format",
    "json_type",
    "read_bytes",
    "read_lines",
    "read_rows",
    "source_name",
    "split_csv_line",
    "value_of",
]

_logger = logging.getLogger(__name__)

FORMATS = ("tsv", "csv", "jsonl")
_EXTENSIONS = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_LARGEST_CSV_FIELD = 2**31 - 1
_UNCLOSED = (
    'a quote that opens a field must be closed and a literal one doubled (""); '
    'for a file without quoting give format="tsv" (--format tsv)'
)


class NoRowsError(ValueError):
    """A file that has what belongs around its rows, a header say, and none of them."""


class Row(NamedTuple):
    """One record: the number of the line on which it starts (from 1) and its fields.

    ``fields`` is a list of str for TSV and CSV and a dict for JSON lines.
    """

    line: int
    fields: list[str] | dict[str, object]


def source_name(source: str | os.PathLike | BinaryIO) -> str:
    """Name of a source for messages: the path, or ``<stdin>`` for ``"-"``."""
    if hasattr(source, "read"):
        return str(getattr(source, "name", "<stream>"))
    return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)


def file_format(source: str | os.PathLike | BinaryIO, format: str | None = None) -> str:
    """Format of a source: as said, or by the extension; TSV for standard input and streams.

    Raises:
        ValueError: `format` is not one of `FORMATS`, or the extension is not known.
    """
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
        return format
    if hasattr(source, "read") or os.fspath(source) == "-":
        return "tsv"
    _, extension = os.path.splitext(os.fspath(source).lower().removesuffix(".gz"))
    if extension not in _EXTENSIONS:
        raise ValueError(
            f"{source_name(source)}: cannot tell the format from the extension {extension!r}: "
            f"give format= (--format), one of {', '.join(FORMATS)}"
        )
    return _EXTENSIONS[extension]


def read_bytes(source: str | os.PathLike | BinaryIO) -> bytes:
    """All of a file (``.gz`` is decompressed), of standard input (``"-"``), or of a stream.

    Raises:
        ValueError: the file cannot be decompressed.
        FileNotFoundError: no such file.
    """
    with _open(source) as stream:
        return b"".join(stream)


def read_lines(source: str | os.PathLike | BinaryIO) -> Iterator[tuple[int, str]]:
    """Yields number (from 1) and text of each line, blank ones too, without its end.

    Raises:
        ValueError: a line is not UTF-8, or the file cannot be decompressed.
        FileNotFoundError: no such file.
    """
    with _open(source) as stream:
        for number, line in _decoded(stream, source_name(source)):
            yield number, _without_end(line)


def read_rows(
    source: str | os.PathLike | BinaryIO, format: str | None = None, *, skip_short: bool = False
) -> Iterator[Row]:
    """Yields the rows of a file one by one.

    Args:
        source: path (``.gz`` is decompressed), ``"-"`` for standard input, or a binary stream.
        format: one of `FORMATS`; by default from the extension.
        skip_short: leave rows of fewer columns than the first out, and count them in a warning.

    Blank lines at the end are dropped. In a TSV or CSV file of one column a blank line is a row
    with an empty field, also where all are blank; elsewhere a blank line between rows is an error.

    Raises:
        ValueError: a line is not UTF-8, a row is ragged, or CSV or JSON syntax is broken; the
            message starts with ``file:line``. Or the file cannot be decompressed.
        FileNotFoundError: no such file.
    """
    name = source_name(source)
    format = file_format(source, format)
    with _open(source) as stream:
        lines = _decoded(stream, name)
        if format == "jsonl":
            yield from _objects(lines, name)
        else:
            split = _split_csv if format == "csv" else _split_tsv
            rows = split(lines, name)
            yield from _rectangular(_long_enough(rows, name) if skip_short else rows, name)


def csv_line(cells: Iterable[str]) -> str:
    """A row of CSV, without its end."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().removesuffix("\r\n")


def split_csv_line(line: str) -> list[str]:
    """Cells of a row of CSV, without white space around them."""
    return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]


@contextmanager
def _open(source: str | os.PathLike | BinaryIO) -> Iterator[BinaryIO]:
    try:
        with _stream_of(source) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{source_name(source)}: cannot be decompressed: {error}") from None


@contextmanager
def _stream_of(source: str | os.PathLike | BinaryIO) -> Iterator[BinaryIO]:
    if hasattr(source, "read"):
        yield source
    elif os.fspath(source) == "-":
        yield sys.stdin.buffer
    elif os.fspath(source).lower().endswith(".gz"):
        with gzip.open(source, "rb") as stream:
            yield stream
    else:
        with open(source, "rb") as stream:
            yield stream


def _decoded(stream: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """Line number and text of every line, its end included."""
    offset = 0
    try:
        for number, raw in enumerate(stream, 1):
            line = raw.decode("utf-8")
            yield number, line.removeprefix("\ufeff") if number == 1 else line
            offset += len(raw)
    except UnicodeDecodeError as error:
        hint = "save the file as UTF-8"
        if offset == 0 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hint = "the file looks like UTF-16: " + hint
        raise ValueError(
            f"{name}:{number}: not UTF-8: byte 0x{raw[error.start]:02x} at byte {error.start + 1} "
            f"of the line (byte {offset + error.start + 1} of the file); {hint}"
        ) from None


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _split_tsv(lines: Iterable[tuple[int, str]], name: str) -> Iterator[Row]:
    for number, line in lines:
        yield Row(number, _without_end(line).split("\t"))


def _split_csv(lines: Iterable[tuple[int, str]], name: str) -> Iterator[Row]:
    # The limit belongs to the module; a larger one cannot break another reader.
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CSV_FIELD))
    reader = csv.reader((line for _, line in lines), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{name}:{start}: broken CSV row: {error}; {_UNCLOSED}") from None
        yield Row(start, fields or [""])


def _rectangular(rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Passes rows of equal width on; holds blank ones back until it is known what they are."""
    first: Row | None = None
    blank: list[Row] = []
    for row in rows:
        if (first is None or len(first.fields) > 1) and _is_blank(row):
            blank.append(row)
            continue
        if first is None:
            first = row
        if len(first.fields) == 1:
            yield from blank
            blank.clear()
        elif blank:
            raise ValueError(
                f"{name}:{blank[0].line}: blank line between rows: expected "
                f"{len(first.fields)} columns as in line {first.line}"
            )
        if len(row.fields) != len(first.fields):
            raise ValueError(
                f"{name}:{row.line}: expected {_columns(len(first.fields))} as in line "
                f"{first.line}, got {len(row.fields)}"
            )
        yield row
    if first is None:
        yield from blank


def _long_enough(rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Passes on the rows that have as many columns as the first."""
    width = short = 0
    for row in rows:
        width = width or len(row.fields)
        if len(row.fields) < width and not _is_blank(row):
            short += 1
        else:
            yield row
    if short:
        _logger.warning("%s: %d rows have fewer than %d columns: left out", name, short, width)


def _is_blank(row: Row) -> bool:
    return len(row.fields) == 1 and not row.fields[0].strip()


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"


def _objects(lines: Iterable[tuple[int, str]], name: str) -> Iterator[Row]:
    blank = 0
    for number, line in lines:
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise ValueError(f"{name}:{blank}: blank line between rows: expected a JSON object")
        try:
            fields = parse_json(_without_end(line), f"{name}:{number}")
        except json.JSONDecodeError as error:
            what = "one JSON object on every line, not a JSON document over several lines"
            hint = f" (expected {what})" if number == 1 and line.strip() in ("[", "{") else ""
            raise ValueError(
                f"{name}:{number}: not valid JSON: {error.msg} at character {error.colno}{hint}"
            ) from None
        if not isinstance(fields, dict):
            raise ValueError(f"{name}:{number}: expected a JSON object, got {json_type(fields)}")
        yield Row(number, fields)


_JSON_TYPES: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def json_type(value: object) -> str:
    """JSON's word for the type of a value, for messages."""
    return _JSON_TYPES[type(value)]


def value_of(fields: dict[str, object], key: str, where: str) -> object:
    """The value of a key of a JSON object.

    Raises:
        ValueError: there is no such key.
    """
    if key not in fields:
        raise ValueError(f"{where}: no key {key!r}; keys: {', '.join(map(repr, fields))}")
    return fields[key]
