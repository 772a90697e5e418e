"""Scores of predictions against labels, on lists or arrays.

Labels and predictions are class indices or names for the classification scores, numbers for the
correlations. Scores are between -1 or 0 and 1 (GLUE's tables show 100 times that). scikit-learn and
SciPy do the work and are imported when they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

__all__ = [
    "accuracy",
    "classification_report",
    "confusion_matrix",
    "f1",
    "matthews_correlation",
    "multi_label_report",
    "pearson",
    "spearman",
]

_logger = logging.getLogger(__name__)


def accuracy(labels: Sequence, predictions: Sequence) -> float:
    """Share of predictions that equal their label.

    Raises:
        ValueError: lengths differ, or there are no examples (so for every function here).
    """
    labels, predictions = _pair(labels, predictions)
    return float(np.mean(labels == predictions))


def f1(
    labels: Sequence,
    predictions: Sequence,
    *,
    average: str = "binary",
    positive: object = 1,
) -> float:
    """F1: harmonic mean of precision and recall, 0 where both are 0 or undefined.

    Args:
        labels: the true classes.
        predictions: as many predicted classes.
        average: ``"binary"``: of the class `positive` against all others; ``"macro"``: the mean
            over all classes that occur in labels or predictions.
        positive: the class that ``"binary"`` looks for.

    Raises:
        ValueError: another average.
    """
    from sklearn.metrics import f1_score

    labels, predictions = _pair(labels, predictions)
    if average == "binary":
        return float(f1_score(labels == positive, predictions == positive, zero_division=0))
    if average != "macro":
        raise ValueError(f'average must be "binary" or "macro", got {average!r}')
    return float(f1_score(labels, predictions, average="macro", zero_division=0))


def matthews_correlation(labels: Sequence, predictions: Sequence) -> float:
    """Matthews correlation (of any number of classes); 0 where one side has one class only."""
    from sklearn.metrics import matthews_corrcoef

    labels, predictions = _pair(labels, predictions)
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels: Sequence, predictions: Sequence) -> float:
    """Pearson correlation; 0, with a warning in the log, where one side is constant.

    Raises:
        ValueError: fewer than two examples, or values that are not finite numbers.
    """
    from scipy.stats import pearsonr

    return _correlation("Pearson", pearsonr, labels, predictions)


def spearman(labels: Sequence, predictions: Sequence) -> float:
    """Spearman's rank correlation (ties get their mean rank); else as `pearson`."""
    from scipy.stats import spearmanr

    return _correlation("Spearman", spearmanr, labels, predictions)


def confusion_matrix(
    labels: Sequence, predictions: Sequence, classes: Sequence | None = None
) -> np.ndarray:
    """Counts, int64 [C, C]: row = label, column = prediction.

    Args:
        labels: the true classes.
        predictions: as many predicted classes.
        classes: the classes in the order of rows and columns; by default all that occur, sorted.

    Raises:
        ValueError: a label or prediction is not in `classes`.
    """
    labels, predictions = _pair(labels, predictions)
    occurring = np.union1d(labels, predictions)
    classes = occurring if classes is None else np.asarray(classes)
    unknown = np.setdiff1d(occurring, classes)
    if unknown.size:
        raise ValueError(
            f"unknown class {unknown.tolist()[0]!r}; known classes: {classes.tolist()}"
        )
    from sklearn.metrics import confusion_matrix as count

    return count(labels, predictions, labels=classes).astype(np.int64)


def classification_report(
    labels: Sequence, predictions: Sequence, label_names: Sequence[str]
) -> dict[str, object]:
    """All scores of a classifier, ready for JSON.

    Args:
        labels: class indices.
        predictions: as many predicted class indices.
        label_names: name of each class.

    Returns:
        ``accuracy``, ``macro_f1`` (mean over the classes that occur), ``matthews_correlation``,
        ``examples``, ``classes`` (name -> precision, recall, f1, support; 0 where undefined) and
        ``confusion_matrix`` (rows are labels, columns predictions, in the order of `label_names`).

    Raises:
        ValueError: an index is outside `label_names`.
    """
    counts = confusion_matrix(labels, predictions, range(len(label_names)))
    right = np.diagonal(counts)
    support, predicted = counts.sum(axis=1), counts.sum(axis=0)
    table = np.stack(
        [
            right / np.maximum(predicted, 1),
            right / np.maximum(support, 1),
            2 * right / np.maximum(support + predicted, 1),
        ],
        axis=1,
    )
    classes = {
        name: {"precision": precision, "recall": recall, "f1": score, "support": number}
        for name, (precision, recall, score), number in zip(
            label_names, table.tolist(), support.tolist(), strict=True
        )
    }
    return {
        "accuracy": accuracy(labels, predictions),
        "macro_f1": f1(labels, predictions, average="macro"),
        "matthews_correlation": matthews_correlation(labels, predictions),
        "examples": int(counts.sum()),
        "classes": classes,
        "confusion_matrix": counts.tolist(),
    }


def multi_label_report(
    labels: np.ndarray, probabilities: np.ndarray, label_names: Sequence[str]
) -> dict[str, object]:
    """All scores of a classifier that gives a text any number of labels, ready for JSON.

    Args:
        labels: 0 or 1, [N, C].
        probabilities: of each label, [N, C]; a label is predicted from 1/2 on.
        label_names: name of each label.

    Returns:
        ``micro_f1``, ``macro_f1`` (over all labels, 0 for one that neither occurs nor is
        predicted), ``macro_auc`` (mean area under the ROC curve over the labels that some rows have
        and some have not; None where there is no such label), ``exact`` (share of rows with all
        labels right), ``examples`` and ``classes`` (name -> precision, recall, f1, auc, support).

    Raises:
        ValueError: shapes differ, or there are no examples.
    """
    from sklearn.metrics import f1_score, precision_recall_fscore_support, roc_auc_score

    labels, probabilities = np.asarray(labels).astype(int), np.asarray(probabilities)
    if labels.shape != probabilities.shape or labels.shape[1:] != (len(label_names),):
        raise ValueError(
            f"expected labels and probabilities of shape [N, {len(label_names)}], got "
            f"{list(labels.shape)} and {list(probabilities.shape)}"
        )
    if not len(labels):
        raise ValueError("labels and predictions are empty: there is nothing to score")
    found = (probabilities >= 0.5).astype(int)
    table = np.transpose(
        precision_recall_fscore_support(labels, found, average=None, zero_division=0)
    )
    aucs = [
        float(roc_auc_score(column, scores)) if 0 < column.sum() < len(column) else None
        for column, scores in zip(labels.T, probabilities.T, strict=True)
    ]
    known = [auc for auc in aucs if auc is not None]
    classes = {
        name: {
            "precision": float(row[0]),
            "recall": float(row[1]),
            "f1": float(row[2]),
            "auc": auc,
            "support": int(row[3]),
        }
        for name, row, auc in zip(label_names, table, aucs, strict=True)
    }
    return {
        "micro_f1": float(f1_score(labels, found, average="micro", zero_division=0)),
        "macro_f1": float(f1_score(labels, found, average="macro", zero_division=0)),
        "macro_auc": float(np.mean(known)) if known else None,
        "exact": float((labels == found).all(axis=1).mean()),
        "examples": len(labels),
        "classes": classes,
    }


def _pair(labels: Sequence, predictions: Sequence) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or labels.shape != predictions.shape:
        raise ValueError(
            f"labels and predictions must be flat and equally long, got shapes "
            f"{list(labels.shape)} and {list(predictions.shape)}"
        )
    if labels.size == 0:
        raise ValueError("labels and predictions are empty: there is nothing to score")
    return labels, predictions


def _is_constant(values: np.ndarray) -> bool:
    return bool(np.all(values == values[0]))


def _correlation(name: str, function, labels: Sequence, predictions: Sequence) -> float:
    labels, predictions = (array.astype(np.float64) for array in _pair(labels, predictions))
    if labels.size < 2:
        raise ValueError(f"{name} correlation needs at least two examples, got {labels.size}")
    for role, values in (("labels", labels), ("predictions", predictions)):
        if not np.isfinite(values).all():
            place = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{role}[{place}]: expected a finite number, got {values[place]}")
        if _is_constant(values):
            _logger.warning("all %s are %g: %s correlation set to 0", role, values[0], name)
            return 0.0
    return float(function(labels, predictions).statistic)
