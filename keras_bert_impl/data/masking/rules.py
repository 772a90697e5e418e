"""How pieces are chosen for masked language modelling, and what they become.

Google's rule: ``min(max_predictions, max(1, round(length * 0.15)))`` pieces of an example are
predicted, never ``[CLS]`` or ``[SEP]``; 80 % of them become ``[MASK]``, 10 % a random piece of the
whole vocabulary, 10 % stay. Pieces are drawn in units: single pieces, whole words or spans of
words. Units are taken in random order; one that no longer fits is passed over.

Source: google-research/bert ``create_pretraining_data.py``, ``create_masked_lm_predictions``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keras_bert_impl.text.vocab import Vocab

__all__ = ["Masking", "mask_id_of"]


@dataclass(frozen=True)
class Masking:
    """How pieces are chosen and replaced.

    Attributes:
        probability: share of the pieces that are predicted.
        max_predictions: most predictions of an example; None for as many as `probability` asks.
        whole_words: choose whole words; ``##`` pieces go with theirs.
        replace_per_word: draw mask, random or keep once a word instead of once a piece.
        ngram: choose spans of 1 to `ngram` words (pieces without `whole_words`), of length n with a
            probability proportional to 1 / n.
        mask_share, random_share: shares of the chosen pieces that become ``[MASK]`` and a random
            piece; the others stay.

    Raises:
        ValueError: a number out of its range.
    """

    probability: float = 0.15
    max_predictions: int | None = 20
    whole_words: bool = False
    replace_per_word: bool = False
    ngram: int = 1
    mask_share: float = 0.8
    random_share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ValueError(f"probability must be above 0 and at most 1, got {self.probability}")
        if self.max_predictions is not None and self.max_predictions < 1:
            raise ValueError(f"max_predictions must be at least 1, got {self.max_predictions}")
        if self.ngram < 1:
            raise ValueError(f"ngram must be at least 1, got {self.ngram}")
        shares = (self.mask_share, self.random_share)
        if min(shares) < 0 or sum(shares) > 1 + 1e-9:
            raise ValueError(
                "mask_share and random_share must be at least 0 and together at most 1, got "
                f"{self.mask_share} and {self.random_share}"
            )

    @property
    def in_units(self) -> bool:
        """Whether more than one piece may be chosen at once."""
        return self.whole_words or self.ngram > 1

    def slots(self, max_seq_length: int) -> int:
        """Prediction slots P of examples of this length."""
        return int(self.counts(max_seq_length)[-1])

    def counts(self, max_seq_length: int) -> np.ndarray:
        """Predictions of examples of each length 0 ... `max_seq_length`, int32."""
        # Python's round, which Google uses, and NumPy's both round halves to even.
        counts = np.maximum(np.rint(np.arange(max_seq_length + 1) * self.probability), 1)
        if self.max_predictions is not None:
            counts = np.minimum(counts, self.max_predictions)
        return counts.astype(np.int32)

    def span_shares(self) -> np.ndarray:
        """Cumulated probabilities of spans of 1 ... `ngram` words, float32."""
        shares = np.cumsum(1 / np.arange(1, self.ngram + 1))
        return (shares / shares[-1]).astype(np.float32)


def mask_id_of(vocab: Vocab) -> int:
    """Id of ``[MASK]``.

    Raises:
        ValueError: the vocabulary has none.
    """
    if vocab.mask_id is None:
        raise ValueError(f"the vocabulary of {len(vocab)} tokens has no [MASK]")
    return vocab.mask_id
