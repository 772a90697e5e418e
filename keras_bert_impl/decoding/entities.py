"""Logits of pieces to one tag a word, and tags to entities.

W words, N sentences, C tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert_impl.data.batches import sorted_row_batches
from keras_bert_impl.data.windows import WordWindows
from keras_bert_impl.text.tag_schemes import find_spans, transitions

__all__ = ["Entity", "TaggedWords", "decode_tags", "find_entities", "predict_word_logits"]


class TaggedWords(NamedTuple):
    """Tags of N sentences, and the probability of each tag; one of each a word."""

    tags: list[list[str]]
    probabilities: list[list[float]]


class Entity(NamedTuple):
    """One entity of a text.

    Attributes:
        type: its type.
        text: ``text[start:end]`` of the text it was found in.
        start, end: characters, the end excluded.
        first_word, last_word: words, the last one excluded.
        score: mean probability of the tags of its words, in [0, 1].
    """

    type: str
    text: str
    start: int
    end: int
    first_word: int
    last_word: int
    score: float


def predict_word_logits(model, windows: WordWindows, *, batch_size: int = 32) -> np.ndarray:
    """Logits of the words, float32 [W, C], from the window where each has the most context.

    Rows run in batches of about equal length. The result does not depend on `batch_size`.

    Args:
        model: a `BertTokenClassifier`.
        windows: what `encode_words` made.
        batch_size: rows a batch.
    """
    rows = windows.rows
    dataset, restore = sorted_row_batches(rows, batch_size=batch_size)
    order = np.argsort(restore)
    row_of = np.searchsorted(rows.starts, windows.positions, side="right") - 1
    column_of = windows.positions - rows.starts[row_of]
    rank = restore[row_of]
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_rank], np.arange(0, len(order) + batch_size, batch_size))
    logits = None
    for number, features in enumerate(dataset):
        here = by_rank[bounds[number] : bounds[number + 1]]
        outputs = np.asarray(model.predict_on_batch(features), np.float32)
        if logits is None:
            logits = np.empty((len(windows.positions), outputs.shape[-1]), np.float32)
        logits[here] = outputs[rank[here] - number * batch_size, column_of[here]]
    return logits


def decode_tags(
    logits: np.ndarray,
    lengths: Sequence[int] | np.ndarray,
    labels: Sequence[str],
    *,
    constrained: bool = True,
) -> TaggedWords:
    """The most likely tags of each sentence.

    Args:
        logits: float [W, C], the words of all sentences one behind the other.
        lengths: words of each sentence, [N]; their sum is W.
        labels: the C tags.
        constrained: look for the best sequence that the scheme allows (Viterbi): no ``I-PER``
            after ``O``. Else the best tag of each word by itself. Tags without a scheme, and IOB1,
            allow every sequence.

    Returns:
        Tags and their softmax probabilities, as many as the sentence has words.
    """
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    lengths = np.asarray(lengths, np.int64)
    rules = transitions(labels)
    if constrained and not all(part.all() for part in rules):
        # A path's sum of logits orders paths as its probability does, and equal paths stay equal.
        best = _viterbi(logits, lengths, rules)
    else:
        best = log_probabilities.argmax(axis=-1)
    chosen = np.exp(log_probabilities[np.arange(len(best)), best])
    splits = np.cumsum(lengths)[:-1]
    tags = [[labels[k] for k in part] for part in np.split(best, splits)]
    return TaggedWords(tags, [part.tolist() for part in np.split(chosen, splits)])


def _viterbi(scores: np.ndarray, lengths: np.ndarray, rules) -> np.ndarray:
    """The best allowed sequence of each sentence, int64 [W]; all sentences at once, by length."""
    first, next_, last = (np.where(part, 0.0, -np.inf) for part in rules)
    order = np.argsort(-lengths, kind="stable")
    sizes = lengths[order]
    starts = (np.cumsum(lengths) - lengths)[order]
    longest = int(sizes[0]) if len(sizes) else 0
    best = np.empty(len(scores), np.int64)
    origins = np.empty(scores.shape, np.int64)
    active = np.searchsorted(-sizes, -np.arange(longest), side="left")
    total = scores[starts[: active[0]]] + first if longest else None
    ends = np.empty(len(sizes), np.int64)
    for place in range(longest):
        if place:
            rows = starts[: active[place]] + place
            paths = total[: active[place], :, None] + next_
            origins[rows] = paths.argmax(axis=1)
            total[: active[place]] = paths.max(axis=1) + scores[rows]
        done = slice(active[place + 1] if place + 1 < longest else 0, active[place])
        ends[done] = (total[done] + last).argmax(axis=1)
    for place in range(longest - 1, -1, -1):
        rows = starts[: active[place]] + place
        best[rows] = ends[: active[place]]
        ends[: active[place]] = origins[rows, best[rows]] if place else 0
    return best


def find_entities(
    text: str,
    offsets: Sequence[tuple[int, int]],
    tags: Sequence[str],
    probabilities: Sequence[float] | None = None,
) -> list[Entity]:
    """The entities of one text, in order; broken sequences are read as `conlleval` does.

    Args:
        text: the text.
        offsets: first character of each word and the one after its last.
        tags: one a word.
        probabilities: one a word; without, the scores are 1.
    """
    entities = []
    for span in find_spans(tags):
        start, end = offsets[span.start][0], offsets[span.end - 1][1]
        score = 1.0
        if probabilities is not None:
            score = float(np.mean(probabilities[span.start : span.end]))
        words = (span.start, span.end)
        entities.append(Entity(span.type, text[start:end], start, end, *words, score))
    return entities
