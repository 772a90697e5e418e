"""What two sentences have to do with each other: vectors to compare, and the next sentence.

Shapes: N texts, B batch, S sequence, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert_impl.analysis.rows import (
    as_list,
    batch_of,
    check_vocabulary,
    length_limit,
    model_inputs,
    outputs_by_length,
)
from keras_bert_impl.data.encoding import check_length, encode_texts
from keras_bert_impl.models import BertEncoder, BertPretrainer

__all__ = ["POOLINGS", "cosine_similarity", "next_sentence_probability", "sentence_embeddings"]

POOLINGS = ("mean", "cls", "max")


def sentence_embeddings(
    encoder: BertEncoder,
    tokenizer,
    texts: str | Sequence[str],
    *,
    pooling: str = "mean",
    normalize: bool = True,
    max_length: int | None = None,
    batch_size: int = 64,
) -> np.ndarray:
    """One vector a text, float32 [N, H], the same alone and beside longer texts.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: its `BertTokenizer`.
        texts: one text or several; an empty one has the vector of ``[CLS] [SEP]``.
        pooling: ``mean`` or ``max`` of the last layer over all tokens, ``[CLS]`` and ``[SEP]``
            with them; or ``cls``, the last layer at ``[CLS]``, without the pooler.
        normalize: whether vectors get the length 1.
        max_length: longest row with its special tokens; default: what the model takes. Longer
            texts are cut, which a warning counts.
        batch_size: texts that the model sees at once; those of about equal length go together.

    Raises:
        ValueError: `pooling` is unknown, a text is not a string, or the tokenizer has more tokens
            than the model.
    """
    limit = length_limit(encoder.config, max_length)
    check_vocabulary(tokenizer, encoder.config)
    model = _sentence_model(encoder, pooling, normalize)
    texts = as_list(texts)
    vectors = np.zeros((len(texts), encoder.config.hidden_size), np.float32)
    if texts:
        rows = encode_texts(tokenizer, texts, max_length=limit)
        for numbers, found in outputs_by_length(model, rows, np.arange(len(rows)), batch_size):
            vectors[numbers] = found
    return vectors


def _sentence_model(encoder: BertEncoder, pooling: str, normalize: bool) -> keras.Model:
    """Input dict -> float32 [B, H]."""
    if pooling not in POOLINGS:
        raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
    inputs = model_inputs()
    tokens = ops.cast(encoder(inputs)["sequence_output"], "float32")
    real = ops.cast(inputs["padding_mask"], "float32")[..., None]
    if pooling == "cls":
        pooled = tokens[:, 0]
    elif pooling == "mean":
        pooled = ops.sum(tokens * real, axis=1) / ops.sum(real, axis=1)
    else:
        pooled = ops.max(ops.where(real > 0, tokens, float("-inf")), axis=1)
    if normalize:
        pooled = ops.normalize(pooled, axis=-1)
    return keras.Model(inputs, pooled)


def cosine_similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine of each row of one with the same row of the other, float32 [N] in [-1, 1].

    Args:
        first, second: vectors of any length, float [N, H].

    Raises:
        ValueError: the shapes differ.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected vectors of one shape, got {first.shape} and {second.shape}")
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosines = (first * second).sum(axis=-1) / np.maximum(lengths, np.finfo(np.float64).tiny)
    return cosines.clip(-1, 1).astype(np.float32)


def next_sentence_probability(
    model: BertPretrainer,
    tokenizer,
    firsts: str | Sequence[str],
    seconds: str | Sequence[str],
    *,
    batch_size: int = 32,
) -> np.ndarray:
    """How likely each second text goes on where the first one ends, float32 [N] in [0, 1].

    It is the probability of label 0 of the next-sentence head (1 is a random next sentence).

    Args:
        model: a pretrainer with a trained next-sentence head.
        tokenizer: its `BertTokenizer`.
        firsts, seconds: one text each or as many. Pairs longer than the model takes are cut as
            in pre-training, the longer text first; a warning counts them.
        batch_size: pairs that the model sees at once.

    Raises:
        ValueError: the model has no such head, the numbers differ, a text is empty or not a
            string, or the tokenizer has more tokens than the model.
    """
    if not isinstance(model, BertPretrainer):
        raise ValueError(
            "the next sentence takes a BertPretrainer, which has a head for it; got "
            f"{type(model).__name__}"
        )
    if model.next_sentence_head is None:
        raise ValueError("the model has no next-sentence head: it was pre-trained without")
    check_vocabulary(tokenizer, model.config)
    firsts, seconds = as_list(firsts), as_list(seconds)
    check_length("seconds", seconds, firsts)
    for name, texts in (("first", firsts), ("second", seconds)):
        for number, text in enumerate(texts, 1):
            if isinstance(text, str) and not text.strip():
                raise ValueError(f"the {name} text of pair {number} is empty")
    probabilities = np.zeros(len(firsts), np.float32)
    if not firsts:
        return probabilities
    limit = model.config.max_position_embeddings
    rows = encode_texts(tokenizer, firsts, seconds, max_length=limit)
    order = np.argsort(-rows.lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        # One position, so that the decoder has next to nothing to do.
        positions = np.zeros((len(chosen), 1), np.int32)
        batch = {**batch_of(rows, chosen), "masked_positions": positions}
        logits = np.asarray(model.predict_on_batch(batch)["next_sentence"], np.float64)
        probabilities[chosen] = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
    return probabilities
