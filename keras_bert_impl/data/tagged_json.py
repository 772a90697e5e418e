"""Texts with spans in JSON lines, as CLUENER, and raw texts cut into words.

``{"text": "...", "label": {"name": {"surface": [[first, last], ...]}}}``, last included.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from keras_bert_impl.data.json_values import refuse_half_surrogates
from keras_bert_impl.data.rows import json_type, read_rows, source_name, value_of
from keras_bert_impl.sources import atomic_write
from keras_bert_impl.text.code_points import CHINESE, DELETED, PUNCTUATION, SPACE, load_code_points
from keras_bert_impl.text.tag_schemes import Span, tags_of_spans

__all__ = [
    "TaggedTexts",
    "label_of_spans",
    "read_spans",
    "split_texts",
    "split_words",
    "write_spans",
]

_logger = logging.getLogger(__name__)

Offsets = list[tuple[int, int]]


@dataclass(frozen=True)
class TaggedTexts:
    """The texts of one file.

    Attributes:
        texts: the texts.
        words: words of each text, as `split_words`.
        offsets: first character of each word and the one after its last.
        tags: IOB2, one a word; None for an unlabelled file.
        spans: the spans of each text in characters, as the file has them, for `span_scores`; None
            for an unlabelled file.
        lines: line number (from 1) of each text.
        path: the file.
    """

    texts: list[str]
    words: list[list[str]]
    offsets: list[Offsets]
    tags: list[list[str]] | None
    spans: list[list[Span]] | None
    lines: list[int]
    path: str

    def __len__(self) -> int:
        return len(self.texts)


def split_words(text: str) -> tuple[list[str], Offsets]:
    """Words of a raw text, and where in it they lie; ``text[start:end] == word``.

    White space parts words; a Chinese character is a word; so is each punctuation mark at the
    edge of a word, while one within stays (``U.S``, ``British-born``). White space and Chinese
    characters are BERT's. What consists of characters that BERT deletes is no word.

    >>> split_words('He likes "北京", U.S.')[0]
    ['He', 'likes', '"', '北', '京', '"', ',', 'U.S', '.']
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = load_code_points().kind[codes].tolist()
    offsets: Offsets = []
    start = 0
    for place in range(len(text) + 1):
        kind = kinds[place] if place < len(text) else SPACE
        if kind not in (SPACE, CHINESE):
            continue
        _split_edges(kinds, start, place, offsets)
        if kind == CHINESE:
            offsets.append((place, place + 1))
        start = place + 1
    return [text[first:last] for first, last in offsets], offsets


def _split_edges(kinds: list[int], start: int, end: int, offsets: Offsets) -> None:
    """Adds the word between two places, and the punctuation marks at its edges by themselves."""
    first, last = start, end
    while first < last and kinds[first] == PUNCTUATION:
        offsets.append((first, first + 1))
        first += 1
    while last > first and kinds[last - 1] == PUNCTUATION:
        last -= 1
    if any(kind != DELETED for kind in kinds[first:last]):
        offsets.append((first, last))
    offsets.extend((place, place + 1) for place in range(last, end))


def split_texts(texts: list[str], lines: list[int], path: str = "<memory>") -> TaggedTexts:
    """Texts without tags, cut into words."""
    split = [split_words(text) for text in texts]
    words, offsets = [part[0] for part in split], [part[1] for part in split]
    return TaggedTexts(texts, words, offsets, None, None, lines, path)


def read_spans(source: str | os.PathLike | BinaryIO, *, labelled: bool = True) -> TaggedTexts:
    """Reads JSON lines with the keys ``text`` and, where `labelled`, ``label``.

    A span that cuts a word gets the tag of the whole word, and of overlapping spans the longest
    is tagged; both are counted in a warning. `spans` keeps all as they are.

    Raises:
        ValueError: a line is no object of this form, or a surface is not what lies at its place.
            Messages start with the file and the line.
        FileNotFoundError: no such file.
    """
    name = source_name(source)
    texts, spans, lines = [], [], []
    for number, fields in read_rows(source, "jsonl"):
        where = f"{name}:{number}"
        text = value_of(fields, "text", where)
        if not isinstance(text, str):
            raise ValueError(f"{where}: expected a string as 'text', got {json_type(text)}")
        refuse_half_surrogates(fields, where)
        texts.append(text)
        lines.append(number)
        if labelled:
            spans.append(_spans_of(value_of(fields, "label", where), text, where))
    if not texts:
        raise ValueError(f"{name}: the file is empty")
    found = split_texts(texts, lines, name)
    if not labelled:
        return found
    tags, changed = [], []
    for line, part, places in zip(lines, spans, found.offsets, strict=True):
        kept, exact = _word_spans(part, places)
        tags.append(tags_of_spans(kept, len(places)))
        changed += [line] * (not exact)
    if changed:
        _logger.warning(
            "%s: %d texts have spans that overlap or cut a word, which tags cannot tell, first in "
            "line %d",
            name,
            len(changed),
            changed[0],
        )
    return replace(found, tags=tags, spans=spans)


def write_spans(
    texts: Sequence[str], spans: Sequence[Sequence[Span]], path: str | os.PathLike
) -> None:
    """Writes texts with spans of characters in the form that `read_spans` reads."""
    lines = []
    for text, part in zip(texts, spans, strict=True):
        row = {"text": text, "label": label_of_spans(text, part)}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    atomic_write(path, "".join(lines))


def label_of_spans(text: str, spans: Sequence[Span]) -> dict[str, dict[str, list[list[int]]]]:
    """Spans of characters as the value of ``label``."""
    label: dict[str, dict[str, list[list[int]]]] = {}
    for kind, start, end in spans:
        places = label.setdefault(kind, {}).setdefault(text[start:end], [])
        places.append([start, end - 1])
    return label


def _spans_of(label: object, text: str, where: str) -> list[Span]:
    spans = []
    try:
        for kind, surfaces in label.items():
            for surface, places in surfaces.items():
                spans += [(kind, surface, int(first), int(last)) for first, last in places]
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            f"{where}: expected 'label' as {{type: {{surface: [[first, last], ...]}}}}, got {label}"
        ) from None
    for kind, surface, first, last in spans:
        found = text[first : last + 1] if 0 <= first <= last < len(text) else None
        if found != surface:
            raise ValueError(
                f"{where}: {kind} {surface!r} at [{first}, {last}] (last included): the text has "
                f"{found!r} there"
            )
    return sorted((Span(kind, first, last + 1) for kind, _, first, last in spans), key=_place)


def _place(span: Span) -> tuple[int, int]:
    return span.start, span.end


def _word_spans(spans: list[Span], offsets: Offsets) -> tuple[list[Span], bool]:
    """Spans in words, sorted and apart; whether they say the same."""
    starts = [start for start, _ in offsets]
    ends = [end for _, end in offsets]
    kept: list[Span] = []
    exact = True
    for span in sorted(spans, key=lambda s: s.start - s.end):
        first = int(np.searchsorted(ends, span.start, side="right"))
        last = int(np.searchsorted(starts, span.end, side="left"))
        apart = all(last <= other.start or first >= other.end for other in kept)
        if first < last and apart:
            kept.append(Span(span.type, first, last))
            exact &= (starts[first], ends[last - 1]) == (span.start, span.end)
        else:
            exact = False
    return sorted(kept, key=_place), exact
