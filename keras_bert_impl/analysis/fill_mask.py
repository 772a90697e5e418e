"""The most likely tokens in place of ``[MASK]``.

Shapes: B batch, S sequence, P masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["Candidate", "fill_mask"]

MASK = "[MASK]"


class Candidate(NamedTuple):
    """One token for one mask.

    Attributes:
        token: as in the vocabulary, ``##`` in front of a continuation.
        id: its line number in the vocabulary.
        probability: among all tokens of the vocabulary.
        text: the text with the token in this place; other masks are left.
    """

    token: str
    id: int
    probability: float
    text: str


class _Row(NamedTuple):
    """A text, its ids with special tokens, and its masks as tokens and as spans of characters."""

    text: str
    ids: list[int]
    positions: list[int]
    spans: list[tuple[int, int]]


def fill_mask(
    model: BertPretrainer,
    tokenizer: BertTokenizer,
    texts: str | Sequence[str],
    top_k: int = 5,
    *,
    batch_size: int = 32,
) -> list[list[list[Candidate]]]:
    """The ``top_k`` most likely tokens for each ``[MASK]``, each mask looked at alone.

    ``[MASK]``, in capitals, is the mask token, with or without space around it; every other
    special token in a text is ordinary text.

    Args:
        model: with a trained masked-LM head.
        tokenizer: that of the model.
        texts: one text or several, each with one ``[MASK]`` or more.
        top_k: number of tokens, from 1 to the size of the vocabulary.
        batch_size: texts that the model sees at once.

    Returns:
        For each text, for each of its masks in order: candidates, the most likely one first.

    Raises:
        ValueError: a text has no ``[MASK]`` or is longer than the model takes; the model has no
            masked-LM head; ``top_k`` is out of range; the vocabulary lacks ``[MASK]`` or is larger
            than the model's.
    """
    if not isinstance(model, BertPretrainer):
        raise ValueError(
            f"filling masks takes a BertPretrainer, which has a masked-LM head; got "
            f"{type(model).__name__}"
        )
    vocab, config = tokenizer.vocab, model.config
    if vocab.mask_id is None:
        raise ValueError(f"the vocabulary has no {MASK} among its {len(vocab)} tokens")
    if len(vocab) > config.vocab_size:
        raise ValueError(
            f"the vocabulary has {len(vocab)} tokens, the model's vocab_size is {config.vocab_size}"
        )
    if not 1 <= top_k <= len(vocab):
        raise ValueError(f"top_k must be from 1 to {len(vocab)}, got {top_k}")
    texts = [texts] if isinstance(texts, str) else list(texts)
    rows = _rows(tokenizer, texts, config.max_position_embeddings)
    found: list[list[list[Candidate]]] = [[] for _ in rows]
    order = sorted(range(len(rows)), key=lambda number: len(rows[number].ids))
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        batch = _batch([rows[number] for number in numbers], vocab.pad_id)
        logits = ops.convert_to_numpy(model(batch, training=False)["masked_lm"])  # [B, P, V]
        for number, per_mask in zip(numbers, logits[..., : len(vocab)], strict=True):
            row = rows[number]
            found[number] = [
                _candidates(row.text, span, scores, vocab, top_k)
                for span, scores in zip(row.spans, per_mask[: len(row.spans)], strict=True)
            ]
    return found


def _rows(tokenizer: BertTokenizer, texts: list[str], longest: int) -> list[_Row]:
    if not texts:
        return []
    vocab = tokenizer.vocab
    tokens = tokenizer.tokenize(texts, special_tokens=(MASK,))
    columns = (field.to_list() for field in (tokens.ids, tokens.starts, tokens.ends))
    rows = []
    for number, (text, ids, starts, ends) in enumerate(zip(texts, *columns, strict=True), 1):
        masks = [place for place, token_id in enumerate(ids) if token_id == vocab.mask_id]
        if not masks:
            raise ValueError(f"text {number} has no {MASK} (in capitals): {_short(text)}")
        ids = [vocab.cls_id, *ids, vocab.sep_id]
        if len(ids) > longest:
            raise ValueError(
                f"text {number} has {len(ids)} tokens with [CLS] and [SEP], the model takes at "
                f"most {longest}; shorten it around the {MASK}: {_short(text)}"
            )
        spans = [(starts[place], ends[place]) for place in masks]
        rows.append(_Row(text, ids, [place + 1 for place in masks], spans))
    return rows


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")


def _batch(rows: list[_Row], pad_id: int) -> dict[str, np.ndarray]:
    shape = (len(rows), max(len(row.ids) for row in rows))
    token_ids = np.full(shape, pad_id, "int32")
    padding_mask = np.zeros(shape, "int32")
    positions = np.zeros((len(rows), max(len(row.positions) for row in rows)), "int32")
    for place, row in enumerate(rows):
        token_ids[place, : len(row.ids)] = row.ids
        padding_mask[place, : len(row.ids)] = 1
        positions[place, : len(row.positions)] = row.positions
    return {
        "token_ids": token_ids,
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": padding_mask,
        "masked_positions": positions,
    }


def _candidates(text: str, span, scores, vocab, top_k: int) -> list[Candidate]:
    scores = np.array(scores, "float64")
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    best = np.argsort(-scores, kind="stable")[:top_k].tolist()
    return [
        Candidate(
            vocab.id_to_token(number),
            number,
            float(probabilities[number]),
            _filled(text, span, vocab.id_to_token(number)),
        )
        for number in best
    ]


def _filled(text: str, span: tuple[int, int], token: str) -> str:
    """A continuation is joined to the word before it."""
    before, after = text[: span[0]], text[span[1] :]
    if token.startswith("##") and len(token) > 2:
        before, token = before.rstrip(), token[2:]
    return before + token + after
