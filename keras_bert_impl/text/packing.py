"""Ragged ids -> ``[CLS] a [SEP] b [SEP]``, cut to a length; plain TensorFlow operations.

The operations are core TensorFlow ones only, so exports run where tensorflow_text's trimmers are
not built in. Shapes: N rows, S the longest row or the width asked for.
"""

from __future__ import annotations

import tensorflow as tf

__all__ = ["TRUNCATIONS", "pack", "to_dense", "truncated_lengths"]

TRUNCATIONS = ("longest_first", "only_first", "only_second")


def truncated_lengths(
    first: tf.Tensor, second: tf.Tensor, *, budget: int, truncation: str
) -> tuple[tf.Tensor, tf.Tensor]:
    """How many pieces of each text are kept, so that both together fit.

    ``longest_first`` gives what Google's ``_truncate_seq_pair`` (``run_classifier.py``) arrives
    at: it pops from the longer text, from the second one on a tie. The other two take all from
    one text and touch the other only where it alone is over the budget.

    Args:
        first, second: numbers of pieces, int [N].
        budget: pieces that both may have together.
        truncation: ``longest_first``, ``only_first`` or ``only_second``.

    Raises:
        ValueError: unknown ``truncation``.
    """
    if truncation == "longest_first":
        half, rest = (budget + 1) // 2, budget // 2
        return (
            tf.minimum(first, tf.maximum(budget - second, half)),
            tf.minimum(second, tf.maximum(budget - first, rest)),
        )
    if truncation == "only_second":
        kept = tf.minimum(first, budget)
        return kept, tf.minimum(second, budget - kept)
    if truncation == "only_first":
        kept = tf.minimum(second, budget)
        return tf.minimum(first, budget - kept), kept
    raise ValueError(f"truncation must be one of {', '.join(TRUNCATIONS)}, got {truncation!r}")


def pack(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None = None,
    *,
    max_length: int,
    truncation: str = "longest_first",
    cls_id: int,
    sep_id: int,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Put special tokens around one or two texts and cut them to a length.

    Args:
        first, second: ids, ragged int32 [N, (pieces)]; a single text is always cut at its end.
        max_length: longest row, special tokens counted.
        truncation: see ``truncated_lengths``.
        cls_id, sep_id: ids of ``[CLS]`` and ``[SEP]``.

    Returns:
        Token ids and segment ids (0 up to the first ``[SEP]``, then 1), ragged int32 [N, (S)].

    Raises:
        ValueError: ``max_length`` leaves no room for the special tokens; unknown ``truncation``.
    """
    specials = 2 if second is None else 3
    if max_length < specials:
        raise ValueError(f"max_length must be at least {specials}, got {max_length}")
    if truncation not in TRUNCATIONS:
        raise ValueError(f"truncation must be one of {', '.join(TRUNCATIONS)}, got {truncation!r}")
    budget = max_length - specials
    rows = first.nrows()
    cls = _column(cls_id, rows)
    sep = _column(sep_id, rows)
    if second is None:
        token_ids = tf.concat([cls, first[:, :budget], sep], axis=1)
        return token_ids, tf.zeros_like(token_ids)
    kept_first, kept_second = truncated_lengths(
        first.row_lengths(), second.row_lengths(), budget=budget, truncation=truncation
    )
    head = tf.concat([cls, _keep(first, kept_first), sep], axis=1)
    tail = tf.concat([_keep(second, kept_second), sep], axis=1)
    token_ids = tf.concat([head, tail], axis=1)
    segment_ids = tf.concat([tf.zeros_like(head), tf.ones_like(tail)], axis=1)
    return token_ids, segment_ids


def to_dense(
    token_ids: tf.RaggedTensor,
    segment_ids: tf.RaggedTensor,
    *,
    pad_id: int = 0,
    pad_to: int | None = None,
) -> dict[str, tf.Tensor]:
    """Ragged rows -> the input dict of the models, padded at the end.

    Args:
        token_ids, segment_ids: ragged int32 [N, (S)].
        pad_id: id that fills up ``token_ids``.
        pad_to: width; None pads to the longest row, and to one column where there is no row.

    Returns:
        ``token_ids``, ``segment_ids`` and ``padding_mask`` (1 = real), int32 [N, S].
    """
    lengths = tf.cast(token_ids.row_lengths(), tf.int32)
    longest = tf.reduce_max(tf.concat([lengths, [1]], 0))
    width = tf.cast(longest if pad_to is None else pad_to, tf.int64)
    shape = [None, pad_to]
    ids = token_ids.to_tensor(pad_id, shape=tf.stack([-1, width]))
    segments = segment_ids.to_tensor(0, shape=tf.stack([-1, width]))
    mask = tf.sequence_mask(lengths, tf.cast(width, tf.int32), tf.int32)
    features = {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}
    return {name: tf.ensure_shape(value, shape) for name, value in features.items()}


def _column(value: int, rows: tf.Tensor) -> tf.RaggedTensor:
    column = tf.fill(tf.stack([rows, tf.ones_like(rows)]), tf.constant(value, tf.int32))
    return tf.RaggedTensor.from_tensor(column, row_splits_dtype=rows.dtype)


def _keep(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """First ``lengths`` values of each row."""
    starts = ids.row_starts()
    places = tf.ragged.range(starts, starts + lengths)
    return places.with_flat_values(tf.gather(ids.flat_values, places.flat_values))
