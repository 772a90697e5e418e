"""Runs a model over packed rows, rows of about equal length together.

Shapes: N rows, B batch, S sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.data.encoding import EncodedTexts

__all__ = [
    "as_list",
    "batch_of",
    "check_vocabulary",
    "length_limit",
    "model_inputs",
    "outputs_by_length",
]

INPUTS = ("token_ids", "segment_ids", "padding_mask")


def as_list(texts: str | Sequence[str]) -> list[str]:
    """One string is one text."""
    return [texts] if isinstance(texts, str) else list(texts)


def check_vocabulary(tokenizer, config: BertConfig) -> None:
    """Raises ValueError if the tokenizer gives ids that the model has no embedding for."""
    if len(tokenizer.vocab) > config.vocab_size:
        raise ValueError(
            f"the vocabulary has {len(tokenizer.vocab)} tokens, the model's vocab_size is "
            f"{config.vocab_size}"
        )


def length_limit(config: BertConfig, max_length: int | None) -> int:
    """Longest row in tokens; by default as long as the model takes.

    Raises:
        ValueError: `max_length` is more than the model takes.
    """
    longest = config.max_position_embeddings
    if max_length is not None and max_length > longest:
        raise ValueError(f"max_length={max_length} is more than the {longest} the model takes")
    return longest if max_length is None else max_length


def model_inputs() -> dict[str, keras.KerasTensor]:
    """Symbolic inputs of an encoder, int32 [B, S]."""
    return {name: keras.Input([None], dtype="int32", name=name) for name in INPUTS}


def outputs_by_length(
    model: keras.Model, rows: EncodedTexts, numbers: np.ndarray, batch_size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields row numbers [B] and the model's outputs [B, ...] for them, longest rows first."""
    order = numbers[np.argsort(-rows.lengths[numbers], kind="stable")]
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield chosen, np.asarray(model.predict_on_batch(batch_of(rows, chosen)))


def batch_of(rows: EncodedTexts, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The input dict of some rows, padded to the longest of them, int32 [B, S]."""
    lengths = rows.lengths[chosen]
    positions = np.arange(lengths.max())
    real = positions < lengths[:, np.newaxis]
    places = np.where(real, rows.starts[chosen][:, np.newaxis] + positions, 0)
    second = positions >= rows.first_lengths[chosen][:, np.newaxis]
    return {
        "token_ids": np.where(real, rows.token_ids[places], rows.pad_id).astype("int32"),
        "segment_ids": (real & second).astype("int32"),
        "padding_mask": real.astype("int32"),
    }
