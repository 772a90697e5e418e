"""Scores of predictions against labels, on lists, arrays and files; no TensorFlow."""

from keras_bert_impl.metrics.classification import (
    accuracy,
    classification_report,
    confusion_matrix,
    f1,
    matthews_correlation,
    multi_label_report,
    pearson,
    spearman,
)
from keras_bert_impl.metrics.entities import (
    EntityScores,
    conlleval,
    entity_scores,
    span_scores,
)

__all__ = [
    "EntityScores",
    "accuracy",
    "classification_report",
    "confusion_matrix",
    "conlleval",
    "entity_scores",
    "f1",
    "matthews_correlation",
    "multi_label_report",
    "pearson",
    "span_scores",
    "spearman",
]
