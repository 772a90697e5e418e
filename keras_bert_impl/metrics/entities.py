"""Scores of entities, equal to seqeval's and to CoNLL's `conlleval` to the last digit.

An entity counts as found where type, first and last word are right. Own code because it is faster
than seqeval on large files, counts once instead of five times and takes spans of characters too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_bert_impl.text.tag_schemes import find_spans, scheme_of_labels

__all__ = ["EntityScores", "conlleval", "entity_scores", "span_scores"]


class EntityScores(NamedTuple):
    """Scores between 0 and 1; a ratio whose divisor is 0 is 0.

    Attributes:
        precision, recall, f1: micro averages, the numbers that papers give.
        accuracy: share of tags that are right, ``O`` included; None for spans.
        report: type -> ``precision``, ``recall``, ``f1-score``, ``support`` (as seqeval's
            ``classification_report(output_dict=True)``, with the averages ``micro avg``,
            ``macro avg`` and ``weighted avg``) and ``predicted``, how many were predicted.
    """

    precision: float
    recall: float
    f1: float
    accuracy: float | None
    report: dict[str, dict[str, float]]


def entity_scores(
    labels: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    *,
    strict: bool = False,
) -> EntityScores:
    """Entity precision, recall and F1 of tagged sentences.

    Args:
        labels: tags of each sentence, in any scheme of `text.tag_schemes` but ``plain``.
        predictions: as many tags; their scheme may be another.
        strict: count only entities that are written as the scheme of the labels prescribes, BIOES
            or else IOB2 (seqeval's mode "strict"); else as `conlleval` and seqeval's default.

    Raises:
        ValueError: numbers of sentences or of tags differ.
    """
    _check(labels, predictions)
    scheme = None
    if strict:
        found_scheme = scheme_of_labels(sorted(set(_chained(labels))))
        scheme = "BIOES" if found_scheme == "BIOES" else "IOB2"
    gold, found = (
        [find_spans(tags, strict=scheme) for tags in side] for side in (labels, predictions)
    )
    pairs = list(zip(_chained(labels), _chained(predictions), strict=True))
    accuracy = sum(a == b for a, b in pairs) / len(pairs) if pairs else 0.0
    return span_scores(gold, found)._replace(accuracy=accuracy)


def span_scores(
    labels: Sequence[Iterable[Hashable]], predictions: Sequence[Iterable[Hashable]]
) -> EntityScores:
    """The same for spans, tuples (type, start, end), of N texts: words or characters.

    Raises:
        ValueError: numbers of texts differ.
    """
    if len(labels) != len(predictions):
        raise ValueError(f"{len(labels)} sentences have labels and {len(predictions)} predictions")
    gold, found, right = Counter(), Counter(), Counter()
    for one, other in zip(labels, predictions, strict=True):
        one, other = set(one), set(other)
        gold.update(span[0] for span in one)
        found.update(span[0] for span in other)
        right.update(span[0] for span in one & other)
    types = sorted(gold | found)
    counts = np.array([[right[t], found[t], gold[t]] for t in types], float).reshape(-1, 3)
    rows = np.array([_ratios(*row) for row in counts]).reshape(-1, 3)
    support = counts[:, 2]
    averages = {
        "micro avg": _ratios(*counts.sum(axis=0)),
        "macro avg": np.average(rows, axis=0) if types else np.zeros(3),
        "weighted avg": (
            np.array([np.average(column, weights=support) for column in rows.T])
            if support.sum()
            else np.zeros(3)
        ),
    }
    report = {
        name or "_": _row(ratios, gold[name], found[name])
        for name, ratios in zip(types, rows, strict=True)
    }
    for name, ratios in averages.items():
        report[name] = _row(ratios, gold.total(), found.total())
    precision, recall, f1 = map(float, averages["micro avg"])
    return EntityScores(precision, recall, f1, None, report)


def conlleval(labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> str:
    """The text that CoNLL's `conlleval` prints.

    Raises:
        ValueError: as `entity_scores`.
    """
    scores = entity_scores(labels, predictions)
    gold, found = ([find_spans(tags) for tags in side] for side in (labels, predictions))
    right = sum(len(set(one) & set(other)) for one, other in zip(gold, found, strict=True))
    tokens, phrases, guessed = (sum(map(len, side)) for side in (labels, gold, found))
    lines = [
        f"processed {tokens} tokens with {phrases} phrases; found: {guessed} phrases; "
        f"correct: {right}.",
        f"accuracy: {100 * scores.accuracy:6.2f}%; {_percentages(scores.report['micro avg'])}",
    ]
    for name, row in scores.report.items():
        if not name.endswith(" avg"):
            lines.append(f"{name:>17}: {_percentages(row)}  {row['predicted']}")
    return "".join(f"{line}\n" for line in lines)


def _ratios(right: float, found: float, gold: float) -> tuple[float, float, float]:
    precision = right / found if found else 0.0
    recall = right / gold if gold else 0.0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def _row(ratios: Sequence[float], support: int, predicted: int) -> dict[str, float]:
    names = ("precision", "recall", "f1-score")
    row = dict(zip(names, map(float, ratios), strict=True))
    return {**row, "support": support, "predicted": predicted}


def _percentages(row: dict[str, float]) -> str:
    return (
        f"precision: {100 * row['precision']:6.2f}%; recall: {100 * row['recall']:6.2f}%; "
        f"FB1: {100 * row['f1-score']:6.2f}"
    )


def _chained(sentences: Sequence[Sequence[str]]) -> Iterable[str]:
    return itertools.chain.from_iterable(sentences)


def _check(labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> None:
    if len(labels) != len(predictions):
        raise ValueError(f"{len(labels)} sentences have labels and {len(predictions)} predictions")
    for number, (one, other) in enumerate(zip(labels, predictions, strict=True), 1):
        if len(one) != len(other):
            raise ValueError(
                f"sentence {number}: {len(one)} labels and {len(other)} predictions: expected one "
                "for each word"
            )
