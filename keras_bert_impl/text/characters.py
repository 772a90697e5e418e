"""Code points of texts and the words among them, as TensorFlow operations.

The same words as `keras_bert_impl.data.tagged_json.split_words` finds, for graphs that are served.
All steps take time linear in the length of the texts.

Shapes: N texts, C characters of all texts and of a line end after each, W words, K parts.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.text.code_points import (
    CHINESE,
    DELETED,
    PUNCTUATION,
    SPACE,
    TwoLevelTable,
    load_code_points,
)

__all__ = ["Characters", "Words", "find_words", "valid_utf8"]

_BAD_BYTES = 0xFFFD


class Words(NamedTuple):
    """Words of N texts: string and int32 [N, (W)]; offsets in characters of the text."""

    strings: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class Characters:
    """Code points of N texts, one text behind the other, with a line end after each.

    Args:
        texts: string [N], valid UTF-8.

    Attributes:
        codes: int32 [C].
        row_splits: where each text begins in `codes`, int64 [N + 1].
    """

    def __init__(self, texts: tf.Tensor) -> None:
        decoded = tf.strings.unicode_decode(tf.strings.join([texts, "\n"]), "UTF-8")
        self.codes = decoded.flat_values
        self.row_splits = decoded.row_splits

    def parts(self, rows: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """``text[start:end]`` of the texts `rows`: int [K] each -> string [K]."""
        base = tf.gather(self.row_splits, rows)
        places = tf.ragged.range(base + tf.cast(starts, tf.int64), base + tf.cast(ends, tf.int64))
        codes = places.with_flat_values(tf.gather(self.codes, places.flat_values))
        return tf.strings.unicode_encode(codes, "UTF-8")


def valid_utf8(texts: tf.Tensor) -> tf.Tensor:
    """Strings [N] with U+FFFD, which BERT deletes, for what is no UTF-8."""
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=_BAD_BYTES
    )


def find_words(texts: tf.Tensor, characters: Characters) -> Words:
    """Splits texts into words: see `split_words`.

    Args:
        texts: string [N], valid UTF-8.
        characters: their characters.
    """
    kinds = _kinds(characters.codes)
    parts_words = (kinds == SPACE) | (kinds == CHINESE)
    # Of each run of other characters the punctuation marks at its edges are words.
    before = tf.cumsum(tf.cast(parts_words, tf.int32), exclusive=True)
    inner = tf.cumsum(tf.cast(~parts_words & (kinds != PUNCTUATION), tf.int32))
    at_parts = tf.boolean_mask(inner, parts_words)
    leads = inner == tf.gather(tf.concat([[0], at_parts], 0), before)
    trails = inner == tf.gather(at_parts, before)
    single = (kinds == CHINESE) | ((kinds == PUNCTUATION) & (leads | trails))
    rest = ~parts_words & ~single
    first = tf.where(rest & ~tf.concat([[False], rest[:-1]], 0))[:, 0]
    last = tf.where(rest & ~tf.concat([rest[1:], [False]], 0))[:, 0]
    kept = tf.cumsum(tf.cast(rest & (kinds != DELETED), tf.int32), exclusive=True)
    # `rest` never holds the line end, so the place behind a word exists.
    whole = tf.gather(kept, last + 1) > tf.gather(kept, first)
    alone = tf.where(single)[:, 0]
    starts = tf.sort(tf.concat([alone, tf.boolean_mask(first, whole)], 0))
    ends = tf.sort(tf.concat([alone, tf.boolean_mask(last, whole)], 0)) + 1
    rows = tf.searchsorted(characters.row_splits, starts, side="right", out_type=tf.int64) - 1
    base = tf.gather(characters.row_splits, rows)
    starts, ends = tf.cast(starts - base, tf.int32), tf.cast(ends - base, tf.int32)
    strings = characters.parts(rows, starts, ends)
    count = tf.size(texts, tf.int64)
    strings = tf.RaggedTensor.from_value_rowids(strings, rows, count, validate=False)
    return Words(strings, strings.with_flat_values(starts), strings.with_flat_values(ends))


def _kinds(codes: tf.Tensor) -> tf.Tensor:
    table = TwoLevelTable(load_code_points().kind)
    block = tf.gather(tf.constant(table.index), tf.bitwise.right_shift(codes, 8))
    return tf.gather(tf.constant(table.blocks), block * 256 + (codes & 255))
