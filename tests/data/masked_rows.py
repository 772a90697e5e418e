"""Both forms of masking brought to the same arrays, and examples to mask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.masking import Masking, mask_batch, mask_examples
from keras_bert_impl.data.pretraining import PackedExamples, pack_examples
from keras_bert_impl.text.vocab import Vocab
from tests.data import google_pretraining as google

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SIZE = 1000
# Ids from 500 on are "##" pieces, as in `google.as_documents`.
VOCAB = Vocab(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + [f"w{i}" if i < 500 else f"##{i}" for i in range(5, SIZE)]
)
LENGTH = 128
MASKINGS = {
    "pieces": Masking(),
    "words": Masking(whole_words=True),
    "words replaced whole": Masking(whole_words=True, replace_per_word=True),
    "spans of pieces": Masking(ngram=3),
    "spans of words": Masking(whole_words=True, ngram=3, replace_per_word=True),
    "without cap": Masking(max_predictions=None, probability=0.3),
}
IN_WORDS = [name for name, masking in MASKINGS.items() if masking.whole_words]
IN_PIECES = [name for name, masking in MASKINGS.items() if not masking.in_units]


class Masked(NamedTuple):
    """Masked rows, padded, beside what they were made of."""

    before: np.ndarray
    after: np.ndarray
    real: np.ndarray
    continues: np.ndarray
    positions: np.ndarray
    ids: np.ndarray
    weights: np.ndarray

    @property
    def chosen(self):
        """Bool [N, S]."""
        chosen = np.zeros(self.before.shape, bool)
        row, slot = np.nonzero(self.weights)
        chosen[row, self.positions[row, slot]] = True
        return chosen


def padded(examples: PackedExamples, flat: np.ndarray, width: int = LENGTH) -> np.ndarray:
    real = np.arange(width) < np.diff(examples.starts)[:, None]
    rows = np.zeros(real.shape, flat.dtype)
    rows[real] = flat
    return rows


def features_of(examples: PackedExamples, width: int = LENGTH):
    lengths = np.diff(examples.starts)[:, None]
    real = np.arange(width) < lengths
    features = {
        "token_ids": padded(examples, examples.token_ids, width),
        "segment_ids": (np.arange(width) >= examples.first_lengths[:, None]) & real,
        "padding_mask": real,
    }
    return {name: values.astype(np.int32) for name, values in features.items()}


def static(examples: PackedExamples, masking: Masking, seed: int = 1) -> Masked:
    masked = mask_examples(
        examples, np.random.default_rng(seed), masking, VOCAB, max_seq_length=LENGTH
    )
    return Masked(
        padded(examples, examples.token_ids),
        padded(examples, masked.token_ids),
        padded(examples, np.ones_like(examples.continues)),
        padded(examples, examples.continues),
        masked.masked_positions,
        masked.masked_ids,
        masked.masked_weights,
    )


def dynamic(examples: PackedExamples, masking: Masking, seed: int = 1) -> Masked:
    features = features_of(examples)
    features["continues"] = padded(examples, examples.continues)
    batches = tf.data.Dataset.from_tensor_slices(features).batch(512).enumerate()
    batches = batches.map(
        lambda number, batch: mask_batch(batch, tf.stack([seed, number]), masking, VOCAB)
    )
    rows = [
        (
            inputs["token_ids"],
            inputs["masked_positions"],
            targets["masked_lm"],
            weights["masked_lm"],
        )
        for inputs, targets, weights in batches.as_numpy_iterator()
    ]
    after, positions, ids, weights = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Masked(
        features["token_ids"],
        after,
        features["padding_mask"] > 0,
        features["continues"],
        positions,
        ids,
        weights,
    )


def first(examples: PackedExamples, count: int) -> PackedExamples:
    assert len(examples) >= count
    end = examples.starts[count]
    return PackedExamples(
        examples.token_ids[:end],
        examples.continues[:end],
        examples.starts[: count + 1],
        examples.first_lengths[:count],
        examples.is_random_next[:count],
    )


def packed(*rows) -> PackedExamples:
    """Examples of one segment, given without special tokens."""
    ids = [[CLS, *row, SEP] for row in rows]
    flat = np.array([i for row in ids for i in row], np.int32)
    lengths = np.array([len(row) for row in ids])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return PackedExamples(flat, flat >= 500, starts, lengths.astype(np.int32), None)


def corpus() -> PackedExamples:
    """50,000 examples; two pieces of five go on with a word."""
    documents = google.random_documents(2, documents=400, sentences=40, tokens=40)
    for document in documents:
        for sentence in document:
            sentence[:] = [i if i < 500 or i > 900 else i - 490 for i in sentence]
    rng, tokenized = np.random.default_rng(1), google.as_documents(documents)
    parts = [pack_examples(tokenized, rng, cls_id=CLS, sep_id=SEP) for _ in range(40)]
    kept = PackedExamples(
        np.concatenate([part.token_ids for part in parts]),
        np.concatenate([part.continues for part in parts]),
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.starts) for p in parts]))]),
        np.concatenate([part.first_lengths for part in parts]),
        np.concatenate([part.is_random_next for part in parts]),
    )
    return first(kept, 50_000)
