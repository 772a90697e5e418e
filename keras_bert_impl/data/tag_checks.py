"""Which scheme the tags of a file follow, and tags as IOB2 or BIOES whatever the file wrote."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from keras_bert_impl.text.tag_schemes import (
    SCHEMES,
    find_spans,
    scheme_of_labels,
    split_tag,
    tags_of_spans,
)

__all__ = ["check_tags", "discover_tags", "encode_tags"]

_logger = logging.getLogger(__name__)

# Up to this share of a file's spans, what does not fit its scheme is a slip, and repaired.
_SLIPS = 0.1
Tags = Sequence[Sequence[str]]


def check_tags(
    tags: Tags, lines: Sequence[Sequence[int]], name: str, scheme: str | None = None
) -> tuple[list[list[str]], str]:
    """Tags as IOB2 (also of a file in IOB1), BIOES or plain, and the scheme of the file.

    A span that is not written as the scheme prescribes (``I`` without ``B``) is repaired and
    counted in a warning; where more than a tenth are, the file mixes schemes.

    Args:
        tags: of each sentence.
        lines: line numbers of the tags.
        name: of the file.
        scheme: given by the caller: nothing is told from the tags, and any number is repaired.

    Raises:
        ValueError: empty tags, tags with and without a scheme's letters, or mixed schemes.
    """
    if scheme is not None and scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}")
    distinct: dict[str, int] = {}
    for number, tag in _pairs(tags, lines):
        if not tag:
            raise ValueError(f"{name}:{number}: empty tag")
        distinct.setdefault(tag, number)
    found = scheme or _family(distinct, name)
    if found == "plain":
        return [list(part) for part in tags], found
    if found == "IOB":
        found, wrong, total = _which_iob(tags, lines, name)
    else:
        wrong, total = _unlike(tags, lines, found)
    if wrong and scheme is None and len(wrong) > _SLIPS * total:
        raise ValueError(
            f"{name}:{wrong[0]}: the file mixes schemes: {len(wrong)} of {total} spans are not "
            f"written as {found} prescribes, the first one here; write them in one scheme "
            "(`read_tagged` repairs them where scheme= says which)"
        )
    if wrong:
        _logger.warning(
            "%s: repaired %d of %d spans that are not written as %s prescribes, first in line %d",
            name,
            len(wrong),
            total,
            found,
            wrong[0],
        )
    written = "BIOES" if found == "BIOES" else "IOB2"
    return [tags_of_spans(find_spans(part), len(part), written) for part in tags], found


def discover_tags(tags: Tags) -> list[str]:
    """The labels of a model for these tags: ``O`` first, then each type with all its letters.

    Plain tags are sorted by code point.
    """
    distinct = sorted({tag for part in tags for tag in part})
    scheme = scheme_of_labels(distinct)
    if scheme == "plain":
        return distinct
    letters = "BIES" if scheme == "BIOES" else "BI"
    types = sorted({kind for letter, kind in map(split_tag, distinct) if letter != "O"})
    return ["O", *(f"{a}-{kind}" if kind else a for kind in types for a in letters)]


def encode_tags(
    tags: Tags, lines: Sequence[Sequence[int]], name: str, labels: Sequence[str]
) -> np.ndarray:
    """Indices (int32 [W]) of the tags of all words among the labels of a model.

    Tags as IOB2 become BIOES, or the other way about, where the labels are such.

    Raises:
        ValueError: a tag that is not among the labels; the message has its line.
    """
    scheme = scheme_of_labels(labels)
    if scheme != "plain":
        tags = [tags_of_spans(find_spans(part), len(part), scheme) for part in tags]
    index = {label: number for number, label in enumerate(labels)}
    encoded = []
    for number, tag in _pairs(tags, lines):
        if tag not in index:
            raise ValueError(
                f"{name}:{number}: unknown tag {tag!r}; known tags: {', '.join(labels)}"
            )
        encoded.append(index[tag])
    return np.array(encoded, np.int32)


def _pairs(tags: Tags, lines: Sequence[Sequence[int]]) -> Iterator[tuple[int, str]]:
    for numbers, part in zip(lines, tags, strict=True):
        yield from zip(numbers, part, strict=True)


def _family(distinct: dict[str, int], name: str) -> str:
    """``IOB``, ``BIOES`` or ``plain``."""
    with_letter = {tag for tag in distinct if split_tag(tag) is not None}
    if not any("-" in tag for tag in with_letter) and len(with_letter) < len(distinct):
        return "plain"
    for tag, number in distinct.items():
        if tag not in with_letter:
            other = next(iter(with_letter - {"O"}), "O")
            raise ValueError(
                f"{name}:{number}: tag {tag!r} has no letter of a scheme (B, I, O, E, S), but "
                f"{other!r} in line {distinct[other]} has"
            )
    letters = {tag.partition("-")[0] for tag in distinct}
    return "IOB" if letters <= set("BIO") else "BIOES"


def _which_iob(tags: Tags, lines, name: str) -> tuple[str, list[int], int]:
    """IOB1 or IOB2, the lines of spans that are not written so, and the number of spans."""
    second, total = _unlike(tags, lines, "IOB2")
    if not second:
        return "IOB2", second, total
    first, _ = _unlike(tags, lines, "IOB1")
    if len(first) > _SLIPS * total < len(second):
        raise ValueError(
            f"{name}:{second[0]}: the file mixes schemes: a span begins with I here, as in IOB1, "
            f"and with B in line {first[0]}, as in IOB2 ({len(second)} and {len(first)} of {total} "
            "spans); write them in one scheme (`read_tagged` repairs them where scheme= says which)"
        )
    return ("IOB1", first, total) if len(first) < len(second) else ("IOB2", second, total)


def _unlike(tags: Tags, lines, scheme: str) -> tuple[list[int], int]:
    """Lines of the spans that are not written as the scheme prescribes, and the number of spans."""
    wrong, total = [], 0
    for numbers, part in zip(lines, tags, strict=True):
        spans = find_spans(part)
        total += len(spans)
        if not spans:
            continue
        expected = tags_of_spans(spans, len(part), scheme)
        for span in spans:
            words = range(span.start, span.end)
            if any(split_tag(part[i])[0] != split_tag(expected[i])[0] for i in words):
                wrong.append(numbers[span.start])
    return wrong, total
