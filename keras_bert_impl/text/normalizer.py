"""BERT's text rules as TensorFlow operations on code points, exact for all of Unicode.

Google's ``BasicTokenizer`` cleans, puts spaces around Chinese characters, lowers, decomposes,
drops accents and splits at punctuation. All but two of these rules look at one character at a
time, so one table gather does them; the two others are the final sigma of ``str.lower`` and the
canonical order of combining characters.

The result is a string that needs nothing but splitting at spaces and WordPiece, and for each of
its characters the index of the character of the raw text that it comes from.

Shapes: N strings, C characters of all strings, O output characters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.text.code_points import (
    CASED,
    CODE_POINTS,
    IGNORABLE,
    TRANSPARENT,
    Expansions,
    TwoLevelTable,
)
from keras_bert_impl.text.offsets import row_of_each
from keras_bert_impl.text.tables import PRIVATE_PLANES, TextTables

__all__ = ["Normalized", "Normalizer"]

CAPITAL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
SPACE = 0x20


class Normalized(NamedTuple):
    """Text after all rules but WordPiece.

    Attributes:
        strings: words between spaces, string [N].
        first: where each character of ``strings`` begins in the raw characters of all texts,
            laid end to end with one more after each text, int32 [O].
        last: the same for its last raw character, int32 [O].
        row_starts: where each string begins in ``first``, int64 [N].
        raw_starts: where each raw text begins among all raw characters, int64 [N].
    """

    strings: tf.Tensor
    first: tf.Tensor
    last: tf.Tensor
    row_starts: tf.Tensor
    raw_starts: tf.Tensor


class _Characters(NamedTuple):
    """Code points [C], raw characters they come from [C], row splits [N + 1]."""

    codes: tf.Tensor
    source: tf.Tensor
    row_splits: tf.Tensor


def _gather(table: TwoLevelTable, codes: tf.Tensor) -> tf.Tensor:
    block = tf.gather(tf.constant(table.index), tf.bitwise.right_shift(codes, 8))
    return tf.gather(tf.constant(table.blocks), block * 256 + (codes & 255))


def _expand(pool: np.ndarray, entries: tf.Tensor, chars: _Characters) -> _Characters:
    """Put the result of each code point in its place."""
    lengths = tf.cast(entries & Expansions.LENGTH, tf.int64)
    splits = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(lengths)], 0)
    source, place = row_of_each(splits)
    entry = tf.gather(entries, source)
    same = tf.gather(chars.codes, source)
    spaced = ((entry & Expansions.LENGTH) == 3) & (place != 1)
    pooled = tf.gather(tf.constant(pool), tf.bitwise.right_shift(entry, Expansions.SHIFT) + place)
    codes = tf.where((entry & Expansions.POOLED) != 0, pooled, tf.where(spaced, SPACE, same))
    return _Characters(codes, tf.gather(chars.source, source), tf.gather(splits, chars.row_splits))


class Normalizer:
    """Applies the tables of one tokenizer to strings.

    Args:
        tables: what each code point becomes under this tokenizer's rules.
    """

    def __init__(self, tables: TextTables) -> None:
        self._tables = tables

    def __call__(self, texts: tf.Tensor, special_tokens: tuple[str, ...] = ()) -> Normalized:
        """Normalise strings; broken UTF-8 counts as U+FFFD, which Google deletes.

        Args:
            texts: string [N].
            special_tokens: tokens that are found in the raw text and kept whole.
        """
        # A line end after each string ends its last word and every context rule.
        decoded = tf.strings.unicode_decode(
            tf.strings.join([texts, "\n"]), "UTF-8", errors="replace", replacement_char=0xFFFD
        )
        codes = decoded.flat_values
        first = last = tf.range(tf.size(codes))
        chars = _Characters(codes, first, decoded.row_splits)
        for token in special_tokens:
            codes, first, last = self._keep_whole(token, chars.codes, first, last)
            chars = chars._replace(codes=codes)
        if self._tables.lowercase:
            has_sigma = tf.reduce_any(chars.codes == CAPITAL_SIGMA)
            codes = tf.cond(
                has_sigma, lambda: self._end_words_in_final_sigma(chars.codes), lambda: chars.codes
            )
            chars = chars._replace(codes=codes)
        entries = _gather(self._tables.table, chars.codes)
        if self._tables.strip_accents:
            moves = tf.reduce_any((entries & Expansions.REORDERS) != 0)
            chars = tf.cond(moves, lambda: self._reorder(chars), lambda: chars)
            entries = tf.cond(
                moves, lambda: _gather(self._tables.table, chars.codes), lambda: entries
            )
        out = _expand(self._tables.pool, entries, chars)
        codes = self._end_long_words(out.codes)
        if special_tokens:
            shift = CODE_POINTS - PRIVATE_PLANES
            codes = tf.where(codes >= CODE_POINTS, codes - shift, codes)
        strings = tf.strings.unicode_encode(
            tf.RaggedTensor.from_row_splits(codes, out.row_splits, validate=False), "UTF-8"
        )
        source_first = source_last = out.source
        if special_tokens:
            source_first, source_last = tf.gather(first, out.source), tf.gather(last, out.source)
        return Normalized(
            strings, source_first, source_last, out.row_splits[:-1], decoded.row_splits[:-1]
        )

    def _keep_whole(
        self, token: str, codes: tf.Tensor, first: tf.Tensor, last: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Turn each occurrence into: space, the token's own code, deleted ones, space.

        ``first`` and ``last`` raw characters of the token's code become those of the token.
        """
        length = len(token)
        padded = tf.pad(codes, [[0, length]])
        count = tf.size(codes)
        found = tf.reduce_all(
            [padded[k : count + k] == ord(char) for k, char in enumerate(token)], axis=0
        )
        start = tf.cast(tf.where(found), tf.int32)
        code = self._tables.special_code(token)
        replacement = tf.constant([SPACE, code, *[0] * (length - 3), SPACE], tf.int32)
        where = tf.reshape(start + tf.range(length), [-1, 1])
        return (
            tf.tensor_scatter_nd_update(codes, where, tf.tile(replacement, [tf.size(start)])),
            tf.tensor_scatter_nd_update(first, start + 1, start[:, 0]),
            tf.tensor_scatter_nd_update(last, start + 1, start[:, 0] + length - 1),
        )

    def _end_words_in_final_sigma(self, codes: tf.Tensor) -> tf.Tensor:
        """Capital sigma -> final sigma where ``str.lower`` says so.

        A cased letter stands before it and none after, characters without case such as the full
        stop passed over (Unicode 14.0, section 3.13, Final_Sigma).
        """
        context = _gather(self._tables.sigma, codes)
        deciding = context != IGNORABLE
        place = tf.where(deciding)[:, 0]
        rank = tf.cumsum(tf.cast(deciding, tf.int32))
        sigma = tf.where(codes == CAPITAL_SIGMA)
        own = tf.gather_nd(rank, sigma)  # the sigma itself decides; the rank before it is own - 1
        before = tf.gather(context, tf.gather(place, tf.maximum(own - 2, 0)))
        after = tf.gather(context, tf.gather(place, own))
        final = (own > 1) & (before == CASED) & (after != CASED)
        final_codes = tf.where(final, FINAL_SIGMA, CAPITAL_SIGMA)
        return tf.tensor_scatter_nd_update(codes, sigma, final_codes)

    def _reorder(self, chars: _Characters) -> _Characters:
        """Canonical ordering: sort each run of combining characters by class (UAX 15).

        What the later rules drop anyway leaves here, so that the kept characters keep their
        raw positions in order.
        """
        tables = self._tables
        chars = _expand(tables.parts_pool, _gather(tables.parts, chars.codes), chars)
        order = _gather(tables.order, chars.codes)
        kept = order != TRANSPARENT
        before = tf.concat([[0], tf.cumsum(tf.cast(kept, tf.int64))], 0)
        row_splits = tf.gather(before, chars.row_splits)
        codes, order = tf.boolean_mask(chars.codes, kept), tf.boolean_mask(order, kept)
        run = tf.cumsum(tf.cast(order == 0, tf.int64))
        count = tf.size(codes, tf.int64)
        keys = tf.sort((run * 256 + tf.cast(order, tf.int64)) * count + tf.range(count))
        return _Characters(
            tf.gather(codes, keys % count), tf.boolean_mask(chars.source, kept), row_splits
        )

    def _end_long_words(self, codes: tf.Tensor) -> tf.Tensor:
        """Make words over the limit unknown by their first character."""
        limit = self._tables.max_chars_per_word
        spaces = tf.where(codes == SPACE)[:, 0]
        first = tf.concat([[0], spaces[:-1] + 1], 0)[: tf.size(spaces)]
        first = tf.boolean_mask(first, spaces - first > limit)
        unknown = tf.fill(tf.shape(first), self._tables.unknown)
        return tf.tensor_scatter_nd_update(codes, first[:, None], unknown)
