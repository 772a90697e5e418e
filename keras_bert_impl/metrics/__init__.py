"""Scores of predictions against labels, on lists, arrays and files; no TensorFlow."""

from keras_bert_impl.metrics.classification import (
    accuracy,
    classification_report,
    confusion_matrix,
    f1,
    matthews_correlation,
    pearson,
    spearman,
)

__all__ = [
    "accuracy",
    "classification_report",
    "confusion_matrix",
    "f1",
    "matthews_correlation",
    "pearson",
    "spearman",
]
