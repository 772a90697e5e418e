"""Byte offsets of pieces -> character offsets and word numbers, as TensorFlow operations.

A byte offset is larger than the character offset by the bytes beyond one that the characters
before it have. For each piece of the vocabulary that excess is known, so one running sum over the
pieces gives it, together with the number of the word. Only where the text itself must be asked,
in unknown words and in gaps wider than one byte, are bytes looked at.

Shapes: N strings, P pieces of all strings, Q pieces that are looked at, R chosen rows.
"""

from __future__ import annotations

import tensorflow as tf

__all__ = ["pieces_of", "row_of_each", "to_characters"]


def row_of_each(row_splits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Row and place within the row of each value: int64 [N + 1] -> int32 [P], int32 [P]."""
    first = tf.range(tf.size(row_splits, tf.int64) - 1) * 2**32
    lengths = row_splits[1:] - row_splits[:-1]
    packed = tf.bitcast(tf.ragged.range(first, first + lengths).flat_values, tf.int32)
    return packed[:, 1], packed[:, 0]


def pieces_of(rows: tf.Tensor, row_splits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Pieces of some rows: their indices, int64, and the place of their row in ``rows``, int32."""
    chosen = tf.ragged.range(tf.gather(row_splits, rows), tf.gather(row_splits, rows + 1))
    return chosen.flat_values, row_of_each(chosen.row_splits)[0]


def to_characters(
    strings: tf.Tensor,
    pieces: tf.RaggedTensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    weights: tf.Tensor,
    unknown_id: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Character offsets within the strings, and word numbers.

    Args:
        strings: the text, string [N], valid UTF-8.
        pieces: ids, ragged int32 [N, (P)].
        starts, ends: byte offsets within each string, int32 [P].
        weights: ``TextTables.piece_weights``, int64 [V].
        unknown_id: id of ``[UNK]``.

    Returns:
        Character starts, character ends, word numbers: int32 [P] each.
    """
    row, place = row_of_each(pieces.row_splits)
    own = tf.gather(weights, pieces.flat_values)
    gap_starts = tf.where(place == 0, 0, tf.concat([[0], ends[:-1]], 0))
    asked = tf.where((starts - gap_starts > 1) | (pieces.flat_values == unknown_id))

    def with_text():
        first = tf.cumsum(tf.strings.length(strings), exclusive=True)
        base = tf.gather(first, tf.gather_nd(row, asked))
        start, end = base + tf.gather_nd(starts, asked), base + tf.gather_nd(ends, asked)
        is_unknown = tf.gather_nd(pieces.flat_values, asked) == unknown_id
        raw = tf.io.decode_raw(tf.strings.reduce_join(strings), tf.int8)
        in_gap = _count_trailing_bytes(raw, base + tf.gather_nd(gap_starts, asked), start)
        in_word = _count_trailing_bytes(raw, start, tf.where(is_unknown, end, start))
        return (
            tf.tensor_scatter_nd_add(own, asked, tf.cast(in_gap + in_word, tf.int64)),
            tf.scatter_nd(asked, in_gap, tf.shape(own, tf.int64)),
        )

    own, in_gaps = tf.cond(
        tf.size(asked) > 0, with_text, lambda: (own, tf.zeros_like(pieces.flat_values))
    )
    total = tf.cumsum(own)
    before_row = tf.gather(tf.concat([tf.zeros([1], tf.int64), total], 0), pieces.row_starts())
    # Bytes lie little end first: the lower half of a sum counts bytes, the upper half words.
    counts = tf.bitcast(total - tf.gather(before_row, row), tf.int32)
    excess, word_ids = counts[:, 0], counts[:, 1] - 1
    own_excess = tf.bitcast(own, tf.int32)[:, 0] - in_gaps
    return starts - (excess - own_excess), ends - excess, word_ids


def _count_trailing_bytes(raw: tf.Tensor, first: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """Bytes of spans that do not begin a character: int8 [bytes], int32 [Q] twice -> int32 [Q]."""
    spans = tf.ragged.range(first, end)
    trailing = tf.cast(tf.gather(raw, spans.flat_values) < -64, tf.int32)
    total = tf.concat([[0], tf.cumsum(trailing)], 0)
    counts = tf.gather(total, spans.row_splits)
    return counts[1:] - counts[:-1]
