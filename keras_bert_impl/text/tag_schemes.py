"""Tags of words (``B-PER``, ``I-PER``, ``O``) and the spans that they stand for.

Schemes: IOB2 (a span begins with ``B``), IOB1 (with ``I``; with ``B`` only right after a span of
the same type), BIOES (``B I E``, or ``S`` for a span of one word; BMES, BMEWO and BILOU are its
other spellings) and ``plain`` (the tag of a word stands alone, as in POS tagging). Tags without a
type (``B``, ``M``, ``E``, ``S`` of word segmentation) have the type ``""``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = [
    "SCHEMES",
    "Span",
    "Transitions",
    "find_spans",
    "scheme_of_labels",
    "split_tag",
    "tags_of_spans",
    "transitions",
]

SCHEMES = ("IOB1", "IOB2", "BIOES", "plain")
# The spellings of BIOES' letters.
LETTERS = {"B": "B", "I": "I", "O": "O", "E": "E", "S": "S", "M": "I", "L": "E", "U": "S", "W": "S"}


class Span(NamedTuple):
    """Words (or characters) `start` to `end`, the end excluded."""

    type: str
    start: int
    end: int


class Transitions(NamedTuple):
    """Which tags may begin a sentence, follow each other ([before, after]) and end it; bool."""

    first: np.ndarray
    next: np.ndarray
    last: np.ndarray


def split_tag(tag: str) -> tuple[str, str] | None:
    """Letter (one of B I O E S) and type of a tag; None where it has no such letter.

    >>> split_tag("M-ORG"), split_tag("O"), split_tag("NN")
    (('I', 'ORG'), ('O', ''), None)
    """
    letter, dash, kind = tag.partition("-")
    if letter not in LETTERS or (letter == "O" and dash) or (dash and not kind):
        return None
    return LETTERS[letter], kind


def find_spans(tags: Sequence[str], *, strict: str | None = None) -> list[Span]:
    """The spans of one sentence.

    Lenient, as CoNLL's `conlleval` and seqeval's default: a span also begins with ``I`` or ``E``
    where none of its type goes on, and ends where the next one begins.

    Args:
        tags: of any scheme but ``plain``; a tag without a letter counts as ``O``.
        strict: ``IOB2`` or ``BIOES``: leave out spans that are not written as that prescribes.

    >>> find_spans(["I-PER", "I-PER", "O", "B-LOC"])
    [Span(type='PER', start=0, end=2), Span(type='LOC', start=3, end=4)]
    """
    spans = []
    letter_before, type_before, start = "O", "", 0
    split = [split_tag(tag) or ("O", "") for tag in tags]
    for place, (letter, kind) in enumerate([*split, ("O", "")]):
        goes_on = letter in "IE" and letter_before in "BI" and kind == type_before
        if not goes_on:
            if letter_before != "O":
                spans.append(Span(type_before, start, place))
            start = place
        letter_before, type_before = letter, kind
    if strict is None:
        return spans
    letters = "".join(letter for letter, _ in split)
    return [s for s in spans if letters[s.start : s.end] == _letters(s.end - s.start, strict)]


def _letters(length: int, scheme: str) -> str:
    if scheme == "BIOES":
        return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    return "B" + "I" * (length - 1)


def tags_of_spans(spans: Sequence[Span], length: int, scheme: str = "IOB2") -> list[str]:
    """The tags of a sentence of `length` words; spans are sorted and do not overlap.

    Args:
        spans: what `find_spans` returns.
        length: number of words.
        scheme: ``IOB1``, ``IOB2`` or ``BIOES``.
    """
    tags = ["O"] * length
    before = Span("", -1, -1)
    for span in spans:
        letters = _letters(span.end - span.start, scheme)
        if scheme == "IOB1" and not (before.end == span.start and before.type == span.type):
            letters = "I" * len(letters)
        for place, letter in zip(range(span.start, span.end), letters, strict=True):
            tags[place] = f"{letter}-{span.type}" if span.type else letter
        before = span
    return tags


def scheme_of_labels(labels: Sequence[str]) -> str:
    """The scheme in which a model with these labels writes.

    ``IOB1`` where a type has an ``I`` and no ``B``: such a model begins spans with ``I``.
    """
    split = [split_tag(label) for label in labels]
    if None in split or all(letter == "O" for letter, _ in split):
        return "plain"
    if any(letter in "ES" for letter, _ in split):
        return "BIOES"
    inside = {kind for letter, kind in split if letter == "I"}
    return "IOB2" if inside <= {kind for letter, kind in split if letter == "B"} else "IOB1"


def transitions(labels: Sequence[str]) -> Transitions:
    """What the scheme of the labels allows: all of it for ``plain`` and ``IOB1``."""
    count, scheme = len(labels), scheme_of_labels(labels)
    allowed = Transitions(np.ones(count, bool), np.ones((count, count), bool), np.ones(count, bool))
    if scheme in ("plain", "IOB1"):
        return allowed
    split = [split_tag(label) for label in labels]
    open_letters = "BI" if scheme == "BIOES" else ""
    for after, (letter, kind) in enumerate(split):
        inside = letter in "IE"
        allowed.first[after] = not inside
        allowed.last[after] = letter not in open_letters
        for before, (letter_before, type_before) in enumerate(split):
            same = letter_before in "BI" and type_before == kind
            must_go_on = letter_before in open_letters
            allowed.next[before, after] = same if inside else not must_go_on
    return allowed
