"""Looks at texts with a model: vectors to a file, similarities, next sentences, attention."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert_impl import checkpoints, sources
from keras_bert_impl.analysis import (
    TextVectors,
    attention,
    cosine_similarity,
    each_text_vectors,
    next_sentence_probability,
    sentence_embeddings,
    write_attention_page,
    write_heatmap,
)
from keras_bert_impl.data.readers import iterate_texts
from keras_bert_impl.models import BertEncoder, BertPretrainer
from keras_bert_impl.tasks.inputs import FOUND_OUT, InputOptions, iterate_inputs
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = [
    "AttentionView",
    "PairScores",
    "TextSimilarities",
    "WrittenFeatures",
    "compare_pairs",
    "compare_texts",
    "next_sentences",
    "read_pairs",
    "read_texts",
    "view_attention",
    "write_features",
]


@dataclass(frozen=True)
class WrittenFeatures:
    """A file of vectors: of how many texts, how many vectors of which width."""

    output: str
    texts: int
    vectors: int
    width: int
    seconds: float


@dataclass(frozen=True)
class TextSimilarities:
    """The cosine of each text with each."""

    model: str
    texts: list[str]
    cosines: list[list[float]]


@dataclass(frozen=True)
class PairScores:
    """One score a pair."""

    model: str
    firsts: list[str]
    seconds: list[str]
    scores: list[float]


@dataclass(frozen=True)
class AttentionView:
    """Where the attention weights of a text can be looked at."""

    model: str
    tokens: list[str]
    layers: int
    heads: int
    page: str
    heatmap: str | None


def read_texts(source: str | os.PathLike, inputs: InputOptions = FOUND_OUT) -> list[str]:
    """The texts of a file; of one with a single column, its lines.

    Raises:
        FileNotFoundError, ValueError: as `keras_bert_impl.data.readers.read_labelled`.
    """
    options = {"text": inputs.text, "format": inputs.format, "header": inputs.header}
    return [row.text for row in iterate_texts(source, **options)]


def read_pairs(
    source: str | os.PathLike, inputs: InputOptions = FOUND_OUT
) -> tuple[list[str], list[str]]:
    """The pairs of a file; without a header, of its two columns.

    Raises:
        FileNotFoundError, ValueError: as `keras_bert_impl.data.readers.read_labelled`; or a text
            is empty, which has nothing to compare.
    """
    rows = list(iterate_inputs(source, inputs, pairs=True))
    for row in rows:
        if not row.text.strip() or not row.pair.strip():
            raise ValueError(f"{source}:{row.line}: a text of the pair is empty")
    return [row.text for row in rows], [row.pair for row in rows]


def write_features(
    model: str | os.PathLike,
    texts: Sequence[str],
    output: str | os.PathLike,
    *,
    layers: str = "last",
    per: str = "token",
    max_length: int | None = None,
    overwrite: bool = False,
) -> WrittenFeatures:
    """Writes contextual vectors of texts as an ``.npz`` or ``.jsonl`` file.

    The npz file has ``vectors`` float32 [M, D] of all texts, one behind the other, ``tokens``
    [M], ``starts`` and ``ends`` int32 [M], and ``splits`` int64 [N + 1]: those of text i are
    ``splits[i]`` to ``splits[i + 1]``. A JSON line has the ``text``, ``tokens``, ``starts``,
    ``ends`` and ``vectors``, with six decimals, as Google's `extract_features.py`.

    Args:
        model: what `BertEncoder.from_pretrained` takes.
        texts: the texts.
        output: the file, complete or not there.
        layers, per, max_length: as `keras_bert_impl.analysis.contextual_vectors`.
        overwrite: whether a file that exists may be replaced.

    Raises:
        FileExistsError: the output exists.
        FileNotFoundError, ValueError: as `BertEncoder.from_pretrained` and `contextual_vectors`;
            the extension is neither, or there are no texts.
        OSError: as `keras_bert_impl.sources.atomic_file`.
    """
    started, path = time.monotonic(), Path(output)
    if path.suffix not in _WRITERS:
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(_WRITERS)}")
    if not texts:
        raise ValueError("expected at least one text, got none")
    sources.refuse_existing(path, overwrite)
    options = {"layers": layers, "per": per, "max_length": max_length}
    found = each_text_vectors(*_encoder_and_tokenizer(model), texts, **options)
    with sources.atomic_file(path) as stream:
        vectors, width = _WRITERS[path.suffix](stream, texts, found)
    seconds = time.monotonic() - started
    return WrittenFeatures(os.fspath(path), len(texts), vectors, width, seconds)


def _write_npz(stream, texts: Sequence[str], found: Iterable[TextVectors]) -> tuple[int, int]:
    rows = list(found)
    vectors = np.concatenate([row.vectors for row in rows])
    np.savez(
        stream,
        vectors=vectors,
        tokens=np.array([token for row in rows for token in row.tokens], dtype=np.str_),
        starts=np.concatenate([row.starts for row in rows]),
        ends=np.concatenate([row.ends for row in rows]),
        splits=np.cumsum([0, *(len(row.tokens) for row in rows)], dtype=np.int64),
    )
    return vectors.shape


def _write_jsonl(stream, texts: Sequence[str], found: Iterable[TextVectors]) -> tuple[int, int]:
    vectors = width = 0
    for text, row in zip(texts, found, strict=True):
        content = {
            "text": text,
            "tokens": row.tokens,
            "starts": row.starts.tolist(),
            "ends": row.ends.tolist(),
            "vectors": row.vectors.astype(np.float64).round(6).tolist(),
        }
        stream.write(f"{json.dumps(content, ensure_ascii=False)}\n".encode())
        vectors, width = vectors + len(row.tokens), row.vectors.shape[1]
    return vectors, width


_WRITERS = {".npz": _write_npz, ".jsonl": _write_jsonl}


def compare_texts(
    model: str | os.PathLike, texts: Sequence[str], *, pooling: str = "mean"
) -> TextSimilarities:
    """The cosine of the sentence vectors of each text with each.

    Args:
        model: what `BertEncoder.from_pretrained` takes.
        texts: two texts or more.
        pooling: as `keras_bert_impl.analysis.sentence_embeddings`.

    Raises:
        FileNotFoundError, ValueError: as those two; or a text is empty, or there are fewer.
    """
    texts = list(texts)
    if len(texts) < 2:
        raise ValueError(f"expected two texts or more to compare, got {len(texts)}")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise ValueError(f"text {number} is empty: there is nothing to compare")
    vectors = sentence_embeddings(*_encoder_and_tokenizer(model), texts, pooling=pooling)
    cosines = [
        cosine_similarity(np.broadcast_to(one, vectors.shape), vectors).tolist() for one in vectors
    ]
    return TextSimilarities(os.fspath(model), texts, cosines)


def compare_pairs(
    model: str | os.PathLike,
    firsts: Sequence[str],
    seconds: Sequence[str],
    *,
    pooling: str = "mean",
) -> PairScores:
    """The cosine of the sentence vectors of each pair; arguments as `compare_texts`."""
    encoder, tokenizer = _encoder_and_tokenizer(model)
    vectors = (
        sentence_embeddings(encoder, tokenizer, texts, pooling=pooling)
        for texts in (firsts, seconds)
    )
    cosines = cosine_similarity(*vectors).tolist()
    return PairScores(os.fspath(model), list(firsts), list(seconds), cosines)


def next_sentences(
    model: str | os.PathLike, firsts: Sequence[str], seconds: Sequence[str]
) -> PairScores:
    """How likely each second text goes on where the first one ends.

    Args:
        model: a run of `pretrain`, or a Hugging Face folder with a next-sentence head.
        firsts, seconds: as many texts.

    Raises:
        FileNotFoundError, ValueError: as `checkpoints.open_checkpoint` and
            `keras_bert_impl.analysis.next_sentence_probability`.
    """
    folder = sources.resolve(model)
    checkpoint = checkpoints.open_checkpoint(folder)
    if checkpoint.model_name != BertPretrainer.__name__ or not checkpoint.next_sentence:
        raise ValueError(
            f"{folder} has no next-sentence head: pre-train with one (keras-bert pretrain)"
        )
    tokenizer = BertTokenizer.from_pretrained(folder)
    pretrainer = BertPretrainer.from_pretrained(folder)
    found = next_sentence_probability(pretrainer, tokenizer, firsts, seconds)
    return PairScores(os.fspath(model), list(firsts), list(seconds), found.tolist())


def view_attention(
    model: str | os.PathLike,
    text: str,
    page: str | os.PathLike,
    *,
    pair: str | None = None,
    heatmap: str | os.PathLike | None = None,
    layer: int | None = None,
    head: int | None = None,
    overwrite: bool = False,
) -> AttentionView:
    """Writes a page, and a picture if wanted, of what each token of a text attends to.

    Args:
        model: what `BertEncoder.from_pretrained` takes.
        text, pair: one text or two.
        page: the HTML file.
        heatmap: the PNG file.
        layer, head: what the picture shows, and the page at first; from 1. Default: the mean of
            all heads of the last layer.
        overwrite: whether files that exist may be replaced.

    Raises:
        FileExistsError: an output exists.
        FileNotFoundError, ValueError: as `BertEncoder.from_pretrained` and
            `keras_bert_impl.analysis.attention`; or there is no such layer or head.
        OSError: as `keras_bert_impl.sources.atomic_file`.
    """
    for path in (page, heatmap):
        if path is not None:
            sources.refuse_existing(Path(path), overwrite)
    found = attention(*_encoder_and_tokenizer(model), text, pair)
    name = os.fspath(model)
    write_attention_page(found, page, model=name, layer=layer, head=head)
    if heatmap is not None:
        write_heatmap(found, heatmap, layer=layer, head=head)
    layers, heads = found.weights.shape[:2]
    picture = None if heatmap is None else os.fspath(heatmap)
    return AttentionView(name, found.tokens, layers, heads, os.fspath(page), picture)


def _encoder_and_tokenizer(model: str | os.PathLike) -> tuple[BertEncoder, BertTokenizer]:
    folder = sources.resolve(model)
    tokenizer = BertTokenizer.from_pretrained(folder)
    return BertEncoder.from_pretrained(folder), tokenizer
