"""Tagged words in files of columns, one word a line, as in CoNLL; and tagged files written.

A blank line ends a sentence. Only tabs and spaces separate columns: other white space of Unicode
may be a word.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from keras_bert_impl.data.rows import NoRowsError, read_bytes, source_name
from keras_bert_impl.data.tag_checks import check_tags
from keras_bert_impl.sources import atomic_write

__all__ = ["TaggedSentences", "read_tagged", "tagged_lines", "write_tagged"]

_logger = logging.getLogger(__name__)

# Numbers alone can look like characters with positions in a small file.
_FEWEST_POSITIONS = 20
_ODD_POSITIONS = 0.01
_BLANK = " \t\r\f\v"
_HEADER_WORDS = {"token", "tokens", "word", "words"}
_HEADER_TAGS = {"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags"}


@dataclass(frozen=True)
class TaggedSentences:
    """The sentences of one file.

    Attributes:
        words: words of each sentence.
        tags: a tag for each word, as IOB2, BIOES or plain; None for an unlabelled file.
        scheme: how the file wrote them: ``IOB1``, ``IOB2``, ``BIOES`` or ``plain``; None for an
            unlabelled file.
        lines: line number (from 1) of each word, for messages.
        path: the file.
        raw_lines: the file, line by line with line ends, for `write_tagged`.
        separator: what stands between columns.
    """

    words: list[list[str]]
    tags: list[list[str]] | None
    scheme: str | None
    lines: list[list[int]]
    path: str
    raw_lines: list[str]
    separator: str

    def __len__(self) -> int:
        return len(self.words)


def read_tagged(
    source: str | os.PathLike | BinaryIO,
    *,
    token: int = 0,
    tag: int | None = -1,
    separator: str | None = None,
    scheme: str | None = None,
    labelled: bool | None = None,
) -> TaggedSentences:
    """Reads a file of columns: CoNLL-2003, WNUT17, WikiGold, Weibo, Resume, MSRA and such.

    Lines ``-DOCSTART-`` are left out and end a sentence. So are comments: lines that start with
    ``#`` and have another number of columns than the rest. The position digits of Weibo's second
    version (a character and its place in the word) are taken off.

    Args:
        source: file or binary stream; UTF-8, with or without BOM, line ends of Unix or Windows.
        token: column of the words, from 0; negative counts from the end.
        tag: column of the tags.
        separator: by default tabs, or spaces in a file without tabs, or both where they are mixed.
        scheme: of `text.tag_schemes.SCHEMES`; by default told by all tags of the file.
        labelled: whether to read tags; by default where there are two columns or more.

    Raises:
        ValueError: no words, not UTF-8, ragged lines, no such column, or tags of mixed schemes.
            Messages start with the file and the line.
        FileNotFoundError: no such file.
    """
    name = source_name(source)
    lines = _read_lines(source, name)
    filled = [(n, line) for n, line in enumerate(lines, 1) if line.strip(_BLANK + "\n")]
    filled = [(n, line.rstrip("\r\n")) for n, line in filled]
    filled = [(n, line) for n, line in filled if not line.startswith("-DOCSTART-")]
    if not filled:
        raise ValueError(f"{name}: no words in the file")
    separator = separator or _separator([line for _, line in filled])
    rows = {n: _split(line, separator) for n, line in filled}
    rows = _same_width(rows, name)
    width = len(next(iter(rows.values())))
    _check_column(name, "token", token, width)
    if labelled is None:
        labelled = width > 1
    if labelled:
        _check_column(name, "tag", tag, width)
    if width > 1:
        first = next(iter(rows))
        header = rows[first][token].lower() in _HEADER_WORDS
        if header and rows[first][tag].lower() in _HEADER_TAGS:
            _logger.info("%s:%d: a header", name, first)
            del rows[first]
    if not rows:
        raise NoRowsError(f"{name}: the file has a header and no words")
    numbers = _sentences(rows)
    words = [[rows[n][token] for n in sentence] for sentence in numbers]
    words = _without_positions(words, name)
    tags = None
    if labelled:
        tags = [[rows[n][tag].strip(_BLANK) for n in sentence] for sentence in numbers]
        tags, scheme = check_tags(tags, numbers, name, scheme)
    _logger.info("%s: %d sentences, tags %s", name, len(words), scheme or "not read")
    scheme = scheme if labelled else None
    return TaggedSentences(words, tags, scheme, numbers, name, lines, separator)


def write_tagged(
    sentences: TaggedSentences, tags: Sequence[Sequence[str]], path: str | os.PathLike
) -> None:
    """Writes the file that was read with one column more: a tag behind each word.

    Args:
        sentences, tags: as `tagged_lines`.
        path: the new file; it appears at once and whole.

    Raises:
        ValueError: not one tag for each word.
    """
    atomic_write(path, "".join(tagged_lines(sentences, tags)))


def tagged_lines(sentences: TaggedSentences, tags: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the file that was read, with their ends, with a tag behind each word.

    Args:
        sentences: what `read_tagged` returned; all other lines stay as they are.
        tags: one for each word.

    Raises:
        ValueError: not one tag for each word.
    """
    if [len(part) for part in tags] != [len(part) for part in sentences.words]:
        raise ValueError(f"{sentences.path}: expected one tag for each word")
    lines = list(sentences.raw_lines)
    separator = "\t" if "\t" in sentences.separator else sentences.separator
    for numbers, part in zip(sentences.lines, tags, strict=True):
        for number, tag in zip(numbers, part, strict=True):
            line = lines[number - 1]
            body = line.rstrip("\r\n")
            end = line[len(body) :]
            lines[number - 1] = f"{body.rstrip(_BLANK) or body}{separator}{tag}{end}"
    return lines


def _read_lines(source: str | os.PathLike | BinaryIO, name: str) -> list[str]:
    try:
        text = read_bytes(source).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"{name}:{line}: not UTF-8; save the file as UTF-8") from None
    lines = text.removeprefix("\ufeff").split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    return lines if lines[-1] else lines[:-1]


def _separator(lines: list[str]) -> str:
    tabs = sum("\t" in line for line in lines)
    return " " if tabs == 0 else "\t" if tabs == len(lines) else " \t"


def _split(line: str, separator: str) -> list[str]:
    if separator.strip(_BLANK) or separator == "\t":
        return [field.strip(" ") or field for field in line.split(separator)]
    fields = re.split(f"[{separator}]+", line.rstrip(_BLANK))
    # A line that starts with a space has a space as its word.
    return [" ", *fields[1:]] if fields[0] == "" else fields


def _same_width(rows: dict[int, list[str]], name: str) -> dict[int, list[str]]:
    """Leaves comments out; every other line must have as many columns as most have."""
    counts = Counter(map(len, rows.values()))
    width = max(counts, key=counts.get)
    kept = {n: row for n, row in rows.items() if len(row) == width or not row[0].startswith("#")}
    for number, row in kept.items():
        if len(row) != width:
            raise ValueError(
                f"{name}:{number}: expected {width} columns as in most lines, got {len(row)}: {row}"
            )
    return kept


def _check_column(name: str, role: str, column: int, width: int) -> None:
    if not -width <= column < width:
        raise ValueError(f"{name}: no {role} column {column}: the file has {width} columns")


def _sentences(rows: dict[int, list[str]]) -> list[list[int]]:
    """Line numbers of the words of each sentence."""
    sentences: list[list[int]] = []
    before = None
    for number in rows:
        if before is None or number != before + 1:
            sentences.append([])
        sentences[-1].append(number)
        before = number
    return sentences


def _without_positions(words: list[list[str]], name: str) -> list[list[str]]:
    """Takes off the digits of a file in which each character is followed by its place in a word."""
    if not all(len(word) > 1 and word[-1] in "0123456789" for part in words for word in part):
        return words
    bare, odd = [], 0
    for sentence in words:
        place, part = -1, []
        for word in sentence:
            found = next((p for p in (place + 1, 0) if word[1:].endswith(str(p))), None)
            odd += found is None
            place = int(word[-1]) if found is None else found
            part.append(word[: -len(str(place))])
        bare.append(part)
    total = sum(map(len, bare))
    if total < _FEWEST_POSITIONS or odd > _ODD_POSITIONS * total:
        return words
    _logger.info("%s: took the position digits off the characters", name)
    return bare
