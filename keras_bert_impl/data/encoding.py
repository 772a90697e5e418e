"""Texts to packed rows of token ids, all at once."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from keras_bert_impl.text.packing import pack
from keras_bert_impl.text.tokenizer import as_string_vector

__all__ = ["EncodedTexts", "check_length", "check_string_lists", "check_strings", "encode_texts"]

_logger = logging.getLogger(__name__)

_TOKENIZER_CHUNK = 1024


@dataclass(frozen=True)
class EncodedTexts:
    """Packed rows of token ids, one behind the other.

    Attributes:
        token_ids: int32 [sum of lengths].
        starts: int64 [N], where each row starts.
        lengths: int32 [N], ids of each row with its special tokens.
        first_lengths: int32 [N], ids of segment 0 of each row.
        truncated: how many rows were longer than the limit.
        pad_id: the id that fills batches up.
    """

    token_ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    first_lengths: np.ndarray
    truncated: int
    pad_id: int

    def __len__(self) -> int:
        return len(self.lengths)


def encode_texts(
    tokenizer,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int = 128,
    truncation: str = "longest_first",
) -> EncodedTexts:
    """Tokenizes and packs all texts at once; logs how many `max_length` cut short.

    Args:
        tokenizer: a `BertTokenizer`.
        texts: first texts, str or UTF-8 bytes.
        pairs: second texts, as many.
        max_length: longest row, special tokens included.
        truncation: which text of a pair is cut, as in `BertTokenizer`.

    Raises:
        ValueError: no texts, one that is not a string, or another number of pairs.
    """
    check_length("pairs", pairs, texts)
    if len(texts) == 0:
        raise ValueError("texts: expected at least one text, got none")
    vocab = tokenizer.vocab
    limits = {"max_length": max_length, "truncation": truncation}
    special = {"cls_id": vocab.cls_id, "sep_id": vocab.sep_id}

    def encode(*strings: tf.Tensor) -> tuple[tf.Tensor, ...]:
        parts = [tokenizer.tokenize(part).ids for part in strings]
        token_ids, segment_ids = pack(*parts, **limits, **special)
        lengths = tf.cast(token_ids.row_lengths(), tf.int32)
        seconds = tf.cast(tf.reduce_sum(segment_ids, axis=-1), tf.int32)
        uncut = 1 + sum(tf.cast(part.row_lengths(), tf.int32) + 1 for part in parts)
        return token_ids.flat_values, lengths, lengths - seconds, uncut

    strings = tuple(as_string_vector(part) for part in (texts, pairs) if part is not None)
    if len(texts) <= _TOKENIZER_CHUNK:
        # Building a pipeline would take longer than the work.
        columns = ([tensor.numpy()] for tensor in encode(*strings))
    else:
        chunks = tf.data.Dataset.from_tensor_slices(strings).batch(_TOKENIZER_CHUNK)
        chunks = chunks.map(encode, num_parallel_calls=tf.data.AUTOTUNE)
        columns = zip(*chunks.as_numpy_iterator(), strict=True)
    token_ids, lengths, first_lengths, uncut = (np.concatenate(column) for column in columns)
    truncated = int(np.count_nonzero(uncut > max_length))
    if truncated:
        _logger.warning(
            "%d of %d texts (%.1f %%) are longer than max_length=%d tokens and were cut",
            truncated,
            len(lengths),
            100 * truncated / len(lengths),
            max_length,
        )
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return EncodedTexts(token_ids, starts, lengths, first_lengths, truncated, vocab.pad_id)


def check_length(name: str, values: Sequence | None, texts: Sequence[str]) -> None:
    """Raises ValueError unless there is one value a text, or none at all."""
    if values is not None and len(values) != len(texts):
        raise ValueError(f"{name}: expected one a text ({len(texts)}), got {len(values)}")


def check_strings(name: str, values: Iterable) -> None:
    """Raises ValueError unless all values are strings."""
    for number, value in enumerate(values):
        if not isinstance(value, str):
            raise ValueError(
                f"{name}: element {number}: expected a string, got {reprlib.repr(value)}"
            )


def check_string_lists(name: str, values: Iterable) -> None:
    """Raises ValueError unless all values are lists of strings."""
    for number, value in enumerate(values):
        where = f"{name}: element {number}"
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(f"{where}: expected a list of strings, got {reprlib.repr(value)}")
        check_strings(where, value)
