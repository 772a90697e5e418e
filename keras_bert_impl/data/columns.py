"""Which column of a table holds the text, its pair and the label.

A column is found by what the caller says, else by a well-known name in the header, else, in a file
of two columns, by what its cells look like. What cannot be told is an error that lists the columns:
a wrong guess would train on the wrong text without a sign.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = [
    "Columns",
    "Table",
    "find_columns",
    "is_header",
    "is_other_column",
    "refuse_hidden_header",
    "refuse_twice",
]

_PAIRS = (
    ("sentence1", "sentence2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text", "text_pair"),
    ("text", "pair"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("premise", "hypo"),
    ("question", "sentence"),
    ("question", "passage"),
    ("query", "passage"),
    ("#1 string", "#2 string"),
)
_TEXTS = (
    ("sentence", "text", "text_a", "sentence1", "text1"),
    ("review", "content", "comment", "question", "title", "body", "tweet", "message", "query"),
)
_LABELS = (
    ("label", "gold_label"),
    (
        *("labels", "class", "category", "sentiment", "target", "score", "rating", "stars"),
        *("polarity", "intent", "quality", "is_duplicate"),
    ),
)
_OTHERS = (
    *("", "index", "id", "idx", "guid", "uid", "pairid", "promptid", "qid1", "qid2"),
    *("#1 id", "#2 id", "genre", "filename", "year", "old_index", "source", "source1", "source2"),
    *("language", "label_desc", "keywords", "label1", "label2", "label3", "label4", "label5"),
)
_KNOWN_TEXTS = {name for tier in _TEXTS + _PAIRS for name in tier}
_KNOWN_LABELS = {name for tier in _LABELS for name in tier}
_KNOWN = _KNOWN_TEXTS | _KNOWN_LABELS | set(_OTHERS)

_NAME = re.compile(r"[^\W\d][\w .#-]{0,39}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST_LABEL = 64

Column = str | int


class Columns(NamedTuple):
    """A text, a pair and a label column, by name or by number from 0; None where there is none."""

    text: Column | None = None
    pair: Column | None = None
    label: Column | None = None


@dataclass(frozen=True)
class Table:
    """What is known of a file before its columns are.

    Attributes:
        name: file name for messages.
        names: names of the columns; None for a file without a header.
        sample: the first rows, at least one, as strings.
        by_number: whether columns may be given by number (they cannot in JSON lines).
    """

    name: str
    names: list[str] | None
    sample: list[list[str]]
    by_number: bool = True

    @property
    def width(self) -> int:
        return len(self.names if self.names is not None else self.sample[0])

    def column(self, number: int) -> Column:
        """The name of a column, or its number where it has none of its own."""
        if self.names is None or self.names.count(self.names[number]) > 1:
            return number
        return self.names[number]

    def describe(self) -> str:
        """The columns as a list for messages."""
        if self.names is not None:
            return "columns: " + ", ".join(repr(name) for name in self.names)
        cells = (cell if len(cell) <= 30 else cell[:29] + "…" for cell in self.sample[0])
        shown = ", ".join(f"{number}: {cell!r}" for number, cell in enumerate(cells))
        return f"no header; columns of the first row: {shown}"


def is_header(fields: list[str], asked: Columns, header: bool | None, name: str) -> bool:
    """Whether the first row of a TSV or CSV file is a header.

    Args:
        fields: the first row.
        asked: the columns that the caller named; a name can only stand in a header.
        header: the caller's word; None to find out.
        name: file name for messages.

    Raises:
        ValueError: columns are given by name and `header` is False, or the row has a well-known
            column name in it but may as well be data.
    """
    by_name = [c for c in asked if isinstance(c, str) and not _INTEGER.fullmatch(c)]
    if header is False and by_name:
        raise ValueError(
            f"{name}: column {by_name[0]!r} is a name, and a file without a header has numbers only"
        )
    if header is not None or by_name:
        return header is not False
    words = [field.strip().lower() for field in fields]
    known = [word in _KNOWN and word != "" for word in words]
    if not any(known) or (len(words) == 1 and words[0] not in _TEXTS[0]):
        return False
    has_text = any(word in _KNOWN_TEXTS for word in words)
    has_label = any(word in _KNOWN_LABELS for word in words)
    if all(word in _KNOWN for word in words) or (has_text and has_label) or _pair(words):
        return True
    if all(_NAME.fullmatch(word) for word in words):
        raise ValueError(_doubt(name, fields))
    return False


def is_other_column(name: str) -> bool:
    """Whether a name is well known for what is neither text nor label: an id, a source ..."""
    return name.lower() in _OTHERS


def refuse_hidden_header(table: Table, labels: list[str]) -> None:
    """Refuses a first row, taken for an example, that looks like a header of unknown names.

    Its cells are single words, its label occurs nowhere else, and the other labels are numbers or
    occur several times each. Left in, the header would be an example with a class of its own.

    Raises:
        ValueError: so it is.
    """
    others = labels[1:]
    if labels[0] in others or not all(
        _NAME.fullmatch(cell) and " " not in cell for cell in table.sample[0]
    ):
        return
    repeated = len(others) >= 4 and min(Counter(others).values()) > 1
    if repeated or (others and _is_numeric(others)):
        raise ValueError(_doubt(table.name, table.sample[0]))


def refuse_twice(names: list[str], used: Iterable[str], file: str) -> None:
    """Raises ValueError where a header, in the first line, has a name that is used twice."""
    for column in used:
        if names.count(column) > 1:
            shown = ", ".join(map(repr, names))
            raise ValueError(f"{file}:1: column {column!r} occurs twice; columns: {shown}")


def _doubt(name: str, fields: list[str]) -> str:
    shown = ", ".join(repr(field) for field in fields)
    return (
        f"{name}: the first row ({shown}) may be a header or an example: "
        "give header=True or header=False (--header or --no-header)"
    )


def find_columns(table: Table, asked: Columns, *, labelled: bool = True) -> Columns:
    """Numbers (from 0) of the text, pair and label columns of a table.

    Raises:
        ValueError: a column does not exist or is asked for twice, or the text column cannot be
            told; or another column has the name of one that is not given by number (of the label,
            only where the file is to be `labelled`). A label column that cannot be told is None: it
            is the caller's to insist on one.
    """
    text, pair, label = (_locate(table, *item) for item in zip(asked._fields, asked, strict=True))
    if table.names is not None:
        text, pair, label = _by_name(table.names, text, pair, label)
        words = [name.lower() for name in table.names]
        needed = zip((text, pair, label if labelled else None), asked, strict=True)
        told = [words[column] for column, given in needed if column is not None and given is None]
        refuse_twice(words, told, table.name)
    if table.width == 1 and text is None and label is None:
        text = 0
    if table.width == 2 and pair is None and (text is None or label is None):
        given = text, label
        text, label = _by_content(table, *given)
        if text is None and table.names is None and len(table.sample) >= 4:
            # The first row may be a header of unknown names (see `refuse_hidden_header`).
            text, label = _by_content(replace(table, sample=table.sample[1:]), *given)
    if text is None:
        raise ValueError(
            f"{table.name}: cannot tell which column holds the text ({table.describe()}): "
            "give text= (--text-column), and label= (--label-column) and pair= (--pair-column) "
            "where there are such"
        )
    used = [number for number in (text, pair, label) if number is not None]
    if len(set(used)) < len(used):
        raise ValueError(
            f"{table.name}: the same column serves twice: text={asked.text!r}, "
            f"pair={asked.pair!r}, label={asked.label!r} ({table.describe()})"
        )
    return Columns(text, pair, label)


def _locate(table: Table, role: str, column: Column | None) -> int | None:
    if column is None:
        return None
    option = f"{role}={column!r} (--{role}-column)"
    if isinstance(column, str) and table.names is not None and column in table.names:
        refuse_twice(table.names, [column], table.name)
        return table.names.index(column)
    if table.by_number and _INTEGER.fullmatch(str(column)):
        if not 0 <= int(column) < table.width:
            raise ValueError(
                f"{table.name}: {option}: expected a number from 0 to {table.width - 1} "
                f"({table.describe()})"
            )
        return int(column)
    raise ValueError(f"{table.name}: {option}: no such column ({table.describe()})")


def _by_name(
    names: list[str], text: int | None, pair: int | None, label: int | None
) -> tuple[int | None, int | None, int | None]:
    words = [name.lower() for name in names]
    if text is None and (both := _pair(words)) and pair in (None, words.index(both[1])):
        text, pair = words.index(both[0]), words.index(both[1])
    free = ["" if i in (text, pair, label) else word for i, word in enumerate(words)]
    if text is None:
        text = _only(free, _TEXTS)
    if label is None:
        label = _only(free, _LABELS)
    return text, pair, label


def _pair(words: list[str]) -> tuple[str, str] | None:
    return next((pair for pair in _PAIRS if pair[0] in words and pair[1] in words), None)


def _only(words: list[str], tiers: tuple[tuple[str, ...], ...]) -> int | None:
    """The one column of the first tier that has any; None where a tier has several."""
    for tier in tiers:
        found = [name for name in tier if name in words]
        if found:
            return words.index(found[0]) if len(found) == 1 else None
    return None


def _by_content(table: Table, text: int | None, label: int | None) -> tuple[int | None, int | None]:
    """Text and label of a file of two columns; None for what cannot be told."""
    if label is not None:
        return 1 - label if text is None else text, label
    cells = [[row[column].strip() for row in table.sample] for column in (0, 1)]
    names = table.names or ["", ""]
    labels = [
        column
        for column in (0, 1)
        if column != text
        and (not names[column] or names[column].lower() not in _KNOWN_TEXTS | set(_OTHERS))
        and _like_labels(cells[column])
    ]
    for telling in (_is_numeric, _has_no_space):
        if len(labels) == 2 and telling(cells[0]) != telling(cells[1]):
            labels = [0 if telling(cells[0]) else 1]
    if text is not None:
        return text, labels[0] if labels else None
    if len(labels) != 1 or all(_INTEGER.fullmatch(cell) for cell in cells[1 - labels[0]]):
        return None, None
    return 1 - labels[0], labels[0]


def _like_labels(cells: list[str]) -> bool:
    """Whether cells may be labels: short, and few for the number of rows; or scores.

    Whole numbers that are all different are a running index; empty cells say nothing.
    """
    cells = [cell for cell in cells if cell]
    if not cells:
        return True
    distinct = set(cells)
    if max(map(len, distinct)) > _LONGEST_LABEL:
        return False
    if _is_numeric(cells):
        index = all(_INTEGER.fullmatch(cell) for cell in cells) and len(distinct) == len(cells)
        return not index or len(cells) <= 2
    return len(distinct) <= max(2, len(cells) // 2)


def _is_numeric(cells: list[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells)


def _has_no_space(cells: list[str]) -> bool:
    return not any(" " in cell for cell in cells)
