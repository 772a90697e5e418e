"""Documents of plain text, JSON lines and WikiExtractor's output."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from keras_bert_impl.data.corpus.documents import (
    LONG_JSON_LINE,
    NO_TEXT,
    OnSkip,
    RawDocument,
    in_parts,
)
from keras_bert_impl.data.corpus.files import Line, read_lines, reading
from keras_bert_impl.data.json_values import refuse_half_surrogates

__all__ = ["read_json_lines", "read_plain", "read_wikiextractor"]

_LONGEST_JSON_LINE = 64 << 20
_DOC = re.compile(r"<doc\s[^>]*>\s*$")
_TITLE = re.compile(r'\btitle="([^"]*)"')


def read_plain(path: str, kind: str, on_skip: OnSkip) -> Iterator[RawDocument]:
    """Yields the documents of a text file, between which stand blank lines.

    Args:
        path: the file.
        kind: ``"sentences"`` or ``"paragraphs"``: what a line is.
        on_skip: told of what had to be cut.

    Raises:
        ValueError: not UTF-8 text (see `read_lines`), or nothing but blank lines.
    """
    empty = True
    with reading(path) as stream:
        lines = read_lines(stream, path, on_skip)
        for first in lines:
            if first.text.strip():
                empty = False
                yield from in_parts(chain([first], _until_blank(lines)), path, kind, on_skip)
    if empty:
        raise ValueError(f"{path}: the file has blank lines only")


def _until_blank(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        if not line.text.strip():
            return
        yield line


def read_json_lines(path: str, on_skip: OnSkip) -> Iterator[RawDocument]:
    """Yields a document of paragraphs for each line, a JSON object with the text as ``"text"``.

    Raises:
        ValueError: not UTF-8, broken JSON, no object, or no string as ``"text"``; with file:line.
    """
    with reading(path) as stream:
        number = 0
        while raw := stream.readline(_LONGEST_JSON_LINE):
            number += 1
            if len(raw) == _LONGEST_JSON_LINE and not raw.endswith(b"\n"):
                on_skip(f"{path}:{number}", LONG_JSON_LINE)
                while raw and not raw.endswith(b"\n"):
                    raw = stream.readline(_LONGEST_JSON_LINE)
                continue
            if raw.strip():
                text = _text_of(raw, path, number)
                yield from _paragraphs(text, path, number, on_skip)


def _text_of(raw: bytes, path: str, number: int) -> str:
    where = f"{path}:{number}"
    try:
        record = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: not UTF-8: byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the "
            "line; save the file as UTF-8"
        ) from None
    except RecursionError:
        raise ValueError(f"{where}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        # Its own line number counts within this line.
        raise ValueError(
            f"{where}: broken JSON: {error.msg} at character {error.pos + 1}"
        ) from None
    if not isinstance(record, dict):
        raise ValueError(f"{where}: expected a JSON object, got {type(record).__name__}")
    if "text" not in record:
        raise ValueError(f"{where}: no key 'text'; keys: {', '.join(map(repr, record))}")
    text = record["text"]
    if not isinstance(text, str):
        raise ValueError(f"{where}: key 'text': expected a string, got {type(text).__name__}")
    refuse_half_surrogates(text, f"{where}: key 'text'")
    return text


def _paragraphs(text: str, path: str, number: int, on_skip: OnSkip) -> Iterator[RawDocument]:
    if not text.strip():
        on_skip(f"{path}:{number}", NO_TEXT)
        return
    lines = ((number, line.removesuffix("\r")) for line in _short(text.split("\n")))
    yield from in_parts((line for line in lines if line[1].strip()), path, "paragraphs", on_skip)


def _short(lines: Iterable[str], longest: int = 1_000_000) -> Iterator[str]:
    """Cuts lines that would be too long for a document, at a space where there is one."""
    for line in lines:
        start = 0
        while len(line) - start > longest:
            space = line.rfind(" ", start + longest // 2, start + longest) + 1
            yield line[start : space or start + longest]
            start = space or start + longest
        yield line[start:]


def read_wikiextractor(path: str, on_skip: OnSkip) -> Iterator[RawDocument]:
    """Yields the documents of WikiExtractor's output: ``<doc ...>`` blocks or JSON lines.

    The title, which it repeats on the first line of a block, is left out, and so are tags that it
    leaves in the text; entities are decoded.

    Raises:
        ValueError: as `read_lines`; a line outside of blocks; a block without its end.
    """
    with reading(path) as stream:
        lines = read_lines(stream, path, on_skip)
        for line in lines:
            if not line.text.strip():
                continue
            if line.text.lstrip().startswith("{"):
                break
            if not _DOC.match(line.text):
                raise ValueError(
                    f"{path}:{line.number}: expected '<doc ...>' as WikiExtractor writes it, got "
                    f"{line.text[:40]!r}"
                )
            parts = list(in_parts(_block(line, lines, path), path, "paragraphs", on_skip))
            if not parts:
                on_skip(f"{path}:{line.number}", NO_TEXT)
            yield from parts
        else:
            return
    yield from read_json_lines(path, on_skip)


def _block(start: Line, lines: Iterator[Line], path: str) -> Iterator[Line]:
    title = _TITLE.search(start.text)
    title = html.unescape(title[1]) if title else None
    first = True
    for number, text in lines:
        if text.rstrip() == "</doc>":
            return
        text = html.unescape(text).strip()
        if text and not (first and text == title):
            yield Line(number, text)
        first = first and not text
    raise ValueError(f"{path}:{start.number}: '<doc ...>' has no '</doc>' (a truncated file?)")
