"""Labels of a training file: their order, their indices, scores and class weights."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from keras_bert_impl.data.readers import LabelledExamples

__all__ = ["class_weight_table", "discover_labels", "encode_labels", "encode_scores"]

_logger = logging.getLogger(__name__)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SHOWN = 20


def discover_labels(examples: LabelledExamples) -> list[str]:
    """The distinct labels of a training file in a fixed order; their places are the class indices.

    Labels that are all whole numbers are sorted by value, others by code point.

    Raises:
        ValueError: the file has no labels, or one label only.
    """
    labels = _labels(examples)
    distinct = set(labels)
    if len(distinct) == 1:
        raise ValueError(
            f"{examples.path}: all {len(labels)} examples have the label {labels[0]!r}: training "
            f"needs at least two labels (label column {examples.columns.label!r})"
        )
    if len(distinct) > max(_SHOWN, len(labels) // 4):
        _logger.warning(
            "%s: %d different labels in %d examples: is %r the label column, or a score?",
            examples.path,
            len(distinct),
            len(labels),
            examples.columns.label,
        )
    if all(_INTEGER.fullmatch(label) for label in distinct):
        return sorted(distinct, key=lambda label: (int(label), label))
    return sorted(distinct)


def encode_labels(examples: LabelledExamples, known_labels: Sequence[str]) -> np.ndarray:
    """Class indices (int32 [N]) of the labels of a file.

    Raises:
        ValueError: the file has no labels, or one that is not in `known_labels`.
    """
    indices = {label: index for index, label in enumerate(known_labels)}
    labels = _labels(examples)
    for line, label in zip(examples.lines, labels, strict=True):
        if label not in indices:
            raise ValueError(
                f"{examples.path}:{line}: unknown label {label!r}; "
                f"known labels: {_listed(known_labels)}"
            )
    return np.array([indices[label] for label in labels], np.int32)


def encode_scores(examples: LabelledExamples) -> np.ndarray:
    """Labels as numbers (float32 [N]), for regression.

    Raises:
        ValueError: the file has no labels, or one that is not a finite number.
    """
    scores = []
    for line, label in zip(examples.lines, _labels(examples), strict=True):
        try:
            score = float(label)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise ValueError(f"{examples.path}:{line}: expected a number as label, got {label!r}")
        scores.append(score)
    return np.array(scores, np.float32)


def class_weight_table(labels: np.ndarray, class_weights: str | Mapping[int, float]) -> np.ndarray:
    """Weight of each class (float32 [C]), C = largest class index + 1.

    Args:
        labels: class indices, integer [N].
        class_weights: ``"balanced"``: N / (classes present * examples of the class), so that every
            class has the same sum and the mean weight is 1 (scikit-learn's rule); or a dict from
            class index to weight, 1 for a class that it lacks (Keras' rule).

    Raises:
        ValueError: another string, or a dict whose keys are no class indices or whose weights are
            not finite and >= 0.
    """
    counts = np.bincount(labels)
    if isinstance(class_weights, str):
        if class_weights != "balanced":
            raise ValueError(
                f'class_weights must be "balanced" or a dict from class index to weight, '
                f"got {class_weights!r}"
            )
        balanced = len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        return balanced.astype(np.float32)
    table = np.ones(len(counts), np.float32)
    for index, weight in class_weights.items():
        if not isinstance(index, int | np.integer) or index < 0:
            raise ValueError(f"class_weights: expected a class index as key, got {index!r}")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(
                f"class_weights: expected a weight >= 0 for class {index}, got {weight!r}"
            )
        if index < len(table):
            table[index] = weight
    return table


def _labels(examples: LabelledExamples) -> list[str]:
    if examples.labels is not None:
        return examples.labels
    if examples.columns.label is not None:
        raise ValueError(
            f"{examples.path}: no labels: column {examples.columns.label!r} is empty in all "
            f"{len(examples)} rows"
        )
    raise ValueError(
        f"{examples.path}: no labels: cannot tell which column holds them "
        f"({examples.description}): give label= (--label-column)"
    )


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(repr(label) for label in labels[:_SHOWN])
    return shown if len(labels) <= _SHOWN else f"{shown} and {len(labels) - _SHOWN} more"
