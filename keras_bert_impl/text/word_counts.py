"""Counts the words of texts by the tokenizer's rules, without a vocabulary.

Texts are cut at spaces and around Chinese characters first; all other rules look at one such word,
so they run once for each distinct one.

Source: google-research/bert ``tokenization.py``, ``BasicTokenizer``.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

import numpy as np

from keras_bert_impl.text.code_points import (
    CHINESE,
    DELETED,
    PUNCTUATION,
    SPACE,
    load_code_points,
    ranges_of,
)

__all__ = ["count_words", "is_mark"]


def count_words(
    texts: Iterable[str], *, lowercase: bool = True, strip_accents: bool | None = None
) -> Counter[str]:
    """Words as WordPiece gets them: Chinese characters and punctuation marks are words.

    Args:
        texts: any number, one at a time in memory.
        lowercase: lower the text.
        strip_accents: drop accents; None means as `lowercase`.
    """
    if strip_accents is None:
        strip_accents = lowercase
    find = _pattern().findall
    raw: Counter[str] = Counter()
    for text in texts:
        raw.update(find(text))
    words: Counter[str] = Counter()
    for word, count in raw.items():
        for part in _words_of(word, lowercase, strip_accents):
            words[part] += count
    return words


def is_mark(character: str) -> bool:
    """Whether a character is a word of its own: Chinese, or punctuation."""
    return load_code_points().kind[ord(character)] in (CHINESE, PUNCTUATION)


def _words_of(raw: str, lowercase: bool, strip_accents: bool) -> list[str]:
    if raw.isascii() and raw.isalnum():
        return [raw.lower() if lowercase else raw]
    points = load_code_points()
    kept = "".join(char for char in raw if points.kind[ord(char)] != DELETED)
    if lowercase:
        kept = kept.lower()
    if strip_accents:
        decomposed = unicodedata.normalize("NFD", kept)
        kept = "".join(char for char in decomposed if not points.mark[ord(char)])
    spaced = "".join(f" {c} " if points.kind[ord(c)] == PUNCTUATION else c for c in kept)
    return spaced.split()


@functools.cache
def _pattern() -> re.Pattern[str]:
    kind = load_code_points().kind
    chinese, space = _character_class(kind == CHINESE), _character_class(kind == SPACE)
    return re.compile(f"[{chinese}]|[^{chinese}{space}]+")


def _character_class(members: np.ndarray) -> str:
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges_of(members))
