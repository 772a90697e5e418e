"""Pre-training examples to the records of shards, in two forms.

Static: Google's schema. int64 ``input_ids``, ``input_mask``, ``segment_ids`` [S],
``masked_lm_positions``, ``masked_lm_ids`` [P], ``next_sentence_labels`` [1] (1 = random next; left
out without sentence task) and float ``masked_lm_weights`` [P].

Dynamic: unmasked examples without padding. int64 ``token_ids`` [L], ``first_length`` [1],
``is_random_next`` [1] (left out without sentence task) and, where the vocabulary does not show
which pieces make a word (Chinese), ``continues`` [L].

Shapes: N examples, L tokens of an example, S sequence, P predictions.

Source: google-research/bert ``create_pretraining_data.py``, ``write_instance_to_example_files``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.documents import starts_of
from keras_bert_impl.data.example_proto import RaggedInts, encode_examples
from keras_bert_impl.data.masking import MaskedExamples
from keras_bert_impl.data.pretraining import PackedExamples
from keras_bert_impl.sources import atomic_file

__all__ = ["encode_dynamic", "encode_static", "write_records"]


def encode_static(
    examples: MaskedExamples,
    rows: np.ndarray,
    *,
    max_seq_length: int,
    max_predictions: int,
    pad_id: int = 0,
) -> list[bytes]:
    """Records in Google's schema of the examples with these numbers, in this order.

    Args:
        rows: int [n], numbers of examples.
        max_seq_length: S; no example is longer.
        max_predictions: P; slots that the examples lack are unused ones.
        pad_id: what follows the tokens.
    """
    starts = examples.starts[rows]
    lengths = (examples.starts[rows + 1] - starts)[:, np.newaxis]
    positions = np.arange(max_seq_length)
    real = positions < lengths
    places = np.where(real, starts[:, np.newaxis] + positions, 0)
    second = real & (positions >= examples.first_lengths[rows][:, np.newaxis])
    slots = [(0, 0), (0, max_predictions - examples.masked_ids.shape[1])]
    features = {
        "input_ids": np.where(real, examples.token_ids[places], np.int32(pad_id)),
        "input_mask": real.astype(np.int32),
        "segment_ids": second.astype(np.int32),
        "masked_lm_positions": np.pad(examples.masked_positions[rows], slots),
        "masked_lm_ids": np.pad(examples.masked_ids[rows], slots),
        "masked_lm_weights": np.pad(examples.masked_weights[rows], slots),
    }
    if examples.is_random_next is not None:
        features["next_sentence_labels"] = _column(examples.is_random_next[rows])
    return encode_examples(features)


def encode_dynamic(
    examples: PackedExamples, rows: np.ndarray, *, with_words: bool = False
) -> list[bytes]:
    """Compact records of the examples with these numbers, in this order.

    Args:
        rows: int [n], numbers of examples.
        with_words: also write ``continues``.
    """
    lengths = examples.starts[rows + 1] - examples.starts[rows]
    starts = starts_of(lengths)
    places = np.arange(starts[-1]) + np.repeat(examples.starts[rows] - starts[:-1], lengths)
    features = {
        "token_ids": RaggedInts(examples.token_ids[places], starts),
        "first_length": _column(examples.first_lengths[rows]),
    }
    if examples.is_random_next is not None:
        features["is_random_next"] = _column(examples.is_random_next[rows])
    if with_words:
        continues = examples.continues[places].astype(np.int32)
        features["continues"] = RaggedInts(continues, starts)
    return encode_examples(features)


def _column(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int32)[:, np.newaxis]


def write_records(
    path: str | os.PathLike[str], blocks: Iterable[list[bytes]], *, gzip: bool = False
) -> None:
    """Writes a TFRecord file that appears complete or not at all.

    Args:
        path: a file there is replaced.
        blocks: records, some at a time.
        gzip: pack the file.

    Raises:
        OSError: no disk space is left (``errno.ENOSPC``), or the folder cannot be written.
    """
    options = tf.io.TFRecordOptions(compression_type="GZIP" if gzip else "")
    with atomic_file(path) as file, tf.io.TFRecordWriter(file.name, options) as writer:
        for records in blocks:
            for record in records:
                writer.write(record)
