"""Contextual vectors: BERT as a source of features (Devlin et al. 2019, section 5.3, table 7).

Shapes: S tokens of a text, W words of a text, H hidden, D width of a vector, L blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_bert_impl.analysis.rows import (
    as_list,
    check_vocabulary,
    length_limit,
    model_inputs,
    outputs_by_length,
)
from keras_bert_impl.data.encoding import encode_texts
from keras_bert_impl.models import BertEncoder

__all__ = ["LAYER_CHOICES", "UNITS", "TextVectors", "contextual_vectors", "each_text_vectors"]

LAYER_CHOICES = (
    "embeddings",
    "second-to-last",
    "last",
    "sum-last-4",
    "concat-last-4",
    "sum-all",
)
UNITS = ("token", "word")
_CHUNK = 1024


class TextVectors(NamedTuple):
    """The vectors of one text.

    Attributes:
        tokens: per token the pieces, ``[CLS]`` first and ``[SEP]`` last; per word the words as
            they stand in the text.
        starts: int32 [S or W], first character in the text; 0 for ``[CLS]`` and ``[SEP]``.
        ends: int32 [S or W], character after the last one; 0 for ``[CLS]`` and ``[SEP]``.
        vectors: float32 [S or W, D].
    """

    tokens: list[str]
    starts: np.ndarray
    ends: np.ndarray
    vectors: np.ndarray


def contextual_vectors(
    encoder: BertEncoder,
    tokenizer,
    texts: str | Sequence[str],
    *,
    layers: str = "last",
    per: str = "token",
    max_length: int | None = None,
    batch_size: int = 32,
) -> list[TextVectors]:
    """The vectors of each text, in the order of the texts.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: its `BertTokenizer`.
        texts: one text or several. An empty one has the two special tokens, and no word.
        layers: a row of table 7 of the paper. ``embeddings`` is the input of the first block
            (after LayerNorm), ``sum-all`` the sum of the outputs of all blocks, ``concat-last-4``
            has the lower blocks first (D = 4 H; else D = H). For weights that are learned, see
            `keras_bert_impl.layers.ScalarMix`.
        per: ``token``, or ``word``: the vector of the first piece of each word, as the paper
            does for named entities. Punctuation marks and Chinese characters are words.
        max_length: longest row with its special tokens; default: what the model takes. Longer
            texts are cut, which a warning counts.
        batch_size: texts that the model sees at once; those of about equal length go together.

    Raises:
        ValueError: an option is unknown, the model has fewer than the four blocks asked for, a
            text is not a string, or the tokenizer has more tokens than the model.
    """
    found = each_text_vectors(
        encoder,
        tokenizer,
        texts,
        layers=layers,
        per=per,
        max_length=max_length,
        batch_size=batch_size,
    )
    return list(found)


def each_text_vectors(
    encoder: BertEncoder,
    tokenizer,
    texts: str | Sequence[str],
    *,
    layers: str = "last",
    per: str = "token",
    max_length: int | None = None,
    batch_size: int = 32,
) -> Iterator[TextVectors]:
    """As `contextual_vectors`, one by one: only some texts' vectors are in memory."""
    if per not in UNITS:
        raise ValueError(f"per must be one of {', '.join(UNITS)}, got {per!r}")
    limit = length_limit(encoder.config, max_length)
    check_vocabulary(tokenizer, encoder.config)
    model = _model(encoder, layers)
    texts = as_list(texts)
    if not texts:
        return iter(())
    rows = encode_texts(tokenizer, texts, max_length=limit)
    return _each(model, tokenizer, texts, rows, per, batch_size)


def _each(model, tokenizer, texts, rows, per: str, batch_size: int) -> Iterator[TextVectors]:
    describe = _tokens if per == "token" else _words
    for start in range(0, len(texts), _CHUNK):
        chunk = texts[start : start + _CHUNK]
        numbers = np.arange(start, start + len(chunk))
        vectors: dict[int, np.ndarray] = {}
        for chosen, outputs in outputs_by_length(model, rows, numbers, batch_size):
            for number, output in zip(chosen.tolist(), outputs, strict=True):
                vectors[number] = output[: rows.lengths[number]]
        columns = [field.to_list() for field in tokenizer.tokenize(chunk)]
        for number, text, *pieces in zip(numbers.tolist(), chunk, *columns, strict=True):
            kept = rows.lengths[number] - 2
            pieces = [column[:kept] for column in pieces]
            yield describe(tokenizer.vocab, text, pieces, vectors[number])


def _model(encoder: BertEncoder, layers: str) -> keras.Model:
    """Input dict -> float32 [B, S, D]."""
    if layers not in LAYER_CHOICES:
        raise ValueError(f"layers must be one of {', '.join(LAYER_CHOICES)}, got {layers!r}")
    blocks = encoder.config.num_hidden_layers
    if layers.endswith("last-4") and blocks < 4:
        raise ValueError(f"layers={layers!r} takes 4 layers, the model has {blocks}")
    inputs = model_inputs()
    outputs = encoder(inputs, return_hidden_states=True)
    # The last one of a pre-norm encoder is normalised in `sequence_output` only.
    states = [*outputs["hidden_states"][:-1], outputs["sequence_output"]]
    states = [ops.cast(state, "float32") for state in states]
    if layers == "concat-last-4":
        chosen = ops.concatenate(states[-4:], axis=-1)
    elif layers.startswith("sum"):
        chosen = sum(states[-4:] if layers == "sum-last-4" else states[1:])
    else:
        chosen = states[{"embeddings": 0, "second-to-last": -2, "last": -1}[layers]]
    return keras.Model(inputs, chosen)


def _tokens(vocab, text: str, pieces: list, vectors: np.ndarray) -> TextVectors:
    ids, starts, ends, _ = pieces
    names = [vocab.id_to_token(i) for i in (vocab.cls_id, *ids, vocab.sep_id)]
    places = (np.array([0, *column, 0], np.int32) for column in (starts, ends))
    return TextVectors(names, *places, vectors)


def _words(vocab, text: str, pieces: list, vectors: np.ndarray) -> TextVectors:
    _, starts, ends, word_ids = (np.array(column, np.int32) for column in pieces)
    first = np.flatnonzero(np.diff(word_ids, prepend=-1))
    last = np.append(first[1:], len(word_ids)) - 1
    last = last[: len(first)]
    starts, ends = starts[first], ends[last]
    words = [text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return TextVectors(words, starts, ends, vectors[1:-1][first])
