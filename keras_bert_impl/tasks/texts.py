"""Tasks on texts and pairs of texts: a class, a score, or a set of labels for each.

Shapes: N texts, C classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from keras_bert_impl.data.encoding import encode_texts
from keras_bert_impl.data.glue import TEXT_SETS
from keras_bert_impl.data.label_sets import encode_label_sets, known_labels, read_label_sets
from keras_bert_impl.data.labels import discover_labels, encode_labels, encode_scores
from keras_bert_impl.data.readers import LabelledExamples
from keras_bert_impl.data.rows import csv_line
from keras_bert_impl.decoding.classification import decode_classes, decode_label_sets, decode_scores
from keras_bert_impl.metrics import (
    classification_report,
    f1,
    multi_label_report,
    pearson,
    spearman,
)
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.tasks.inputs import iterate_inputs, read_examples
from keras_bert_impl.tasks.outputs import row_outputs
from keras_bert_impl.tasks.task import Encoded, Task, chunks, row_losses

__all__ = ["Classification", "LabelSet", "MultiLabel", "Prediction", "Regression", "Score"]


@dataclass(frozen=True)
class Prediction:
    """The most likely label of a text, its probability, and that of each label."""

    label: str
    probability: float
    probabilities: dict[str, float] = field(default_factory=dict, repr=False)


class Score(NamedTuple):
    """The number that a regression model gives a text."""

    score: float


class LabelSet(NamedTuple):
    """The labels of a text whose probability is at least 1/2, and the probability of each."""

    labels: tuple[str, ...]
    probabilities: dict[str, float]


class _TextTask(Task):
    """What the three have in common: where the texts are."""

    model_class = BertClassifier

    def read(self, path, inputs, before=None) -> LabelledExamples:
        return read_examples(path, inputs, *(() if before is None else (before,)))

    def encode(self, tokenizer, examples, labels, options, *, training=False) -> Encoded:
        rows = encode_texts(
            tokenizer, examples.texts, examples.pairs, max_length=options.max_length
        )
        return Encoded(rows, self.targets(examples, labels) if training else None)

    def outputs(self, model, encoded, batch_size) -> np.ndarray:
        return row_outputs(model, encoded.rows, batch_size)

    def read_inputs(self, source, inputs, run, size) -> Iterator[LabelledExamples]:
        for chunk in chunks(iterate_inputs(source, inputs, run.columns, run.pairs), size):
            pairs = None if chunk[0].pair is None else [row.pair for row in chunk]
            texts, lines = [row.text for row in chunk], [row.line for row in chunk]
            yield LabelledExamples(texts, pairs, None, lines, str(source))

    def errors(self, examples, predictions) -> list[tuple[str, ...]]:
        wrong = [("line", "label", "prediction", "probability", "text", "pair")]
        pairs = examples.pairs or [""] * len(examples)
        columns = (examples.lines, examples.labels, predictions, examples.texts, pairs)
        for line, label, found, text, pair in zip(*columns, strict=True):
            if label != found.label:
                shown = f"{found.probability:.6f}"
                wrong.append((str(line), label, found.label, shown, text, pair))
        return wrong


class Classification(_TextTask):
    """One of C classes for each text or pair of texts."""

    name = "classification"
    metrics: ClassVar = {
        "accuracy": "accuracy",
        "f1": "macro_f1",
        "mcc": "matthews_correlation",
        "f1-binary": "binary_f1",
    }
    shown: ClassVar = {
        "accuracy": "accuracy",
        "macro_f1": "macro F1",
        "matthews_correlation": "MCC",
    }
    takes_class_weights = True

    def labels(self, examples, inputs):
        layout = TEXT_SETS.get(inputs.layout)
        if layout is None or layout.labels is None:
            return discover_labels(examples)
        discover_labels(examples)
        return list(layout.labels)

    def check(self, examples, labels):
        encode_labels(examples, labels)

    def targets(self, examples, labels) -> np.ndarray:
        return encode_labels(examples, labels)

    def model_arguments(self, labels):
        return {"num_classes": len(labels), "labels": labels}

    def predictions(self, outputs, encoded, labels, options):
        probabilities = decode_classes(outputs)["probabilities"].numpy()
        best = probabilities.argmax(axis=-1)
        return [
            Prediction(
                labels[index],
                float(row[index]),
                dict(zip(labels, row.tolist(), strict=True)),
            )
            for index, row in zip(best, probabilities, strict=True)
        ]

    def score(self, examples, outputs, encoded, labels, options):
        classes, found = encode_labels(examples, labels), outputs.argmax(axis=-1)
        report = classification_report(classes, found, labels)
        if len(labels) == 2:
            report["binary_f1"] = f1(classes, found)
        return {**report, "constant": len(found) > 1 and len(set(found.tolist())) == 1}

    def loss(self, examples, outputs, labels):
        return float(row_losses(outputs, encode_labels(examples, labels)).mean())

    def counts(self, examples, labels):
        found = Counter(examples.labels)
        return {label: found[label] for label in labels}

    def cells(self, examples, predictions):
        return ((found.label, f"{found.probability:.6f}") for found in predictions)

    def json_lines(self, examples, predictions):
        for found in predictions:
            numbers = {label: round(p, 6) for label, p in found.probabilities.items()}
            yield {
                "label": found.label,
                "probability": numbers[found.label],
                "probabilities": numbers,
            }

    def all_probabilities(self, outputs) -> np.ndarray:
        """Probability of each class, float32 [N, C]."""
        return decode_classes(outputs)["probabilities"].numpy()


class Regression(_TextTask):
    """A number for each text or pair of texts; the labels are numbers."""

    name = "regression"
    has_distribution = False
    metrics: ClassVar = {"pearson": "pearson", "spearman": "spearman", "mse": "negative_mse"}
    shown: ClassVar = {"pearson": "Pearson", "spearman": "Spearman", "mse": "mean squared error"}

    def labels(self, examples, inputs):
        return None

    def check(self, examples, labels):
        encode_scores(examples)

    def targets(self, examples, labels) -> np.ndarray:
        return encode_scores(examples)[:, np.newaxis]

    def model_arguments(self, labels):
        return {"num_classes": 1, "problem": "regression"}

    def predictions(self, outputs, encoded, labels, options):
        return [Score(float(score)) for score in decode_scores(outputs).numpy()]

    def score(self, examples, outputs, encoded, labels, options):
        scores, found = encode_scores(examples), decode_scores(outputs).numpy()
        mse = float(np.square(scores - found).mean())
        return {
            **{"pearson": pearson(scores, found), "spearman": spearman(scores, found)},
            **{"mse": mse, "negative_mse": -mse, "examples": len(scores)},
            "constant": len(found) > 1 and bool(np.ptp(found) < 1e-3 * max(np.ptp(scores), 1e-6)),
        }

    def loss(self, examples, outputs, labels):
        return float(np.square(encode_scores(examples) - decode_scores(outputs).numpy()).mean())

    def counts(self, examples, labels):
        return {"rows": len(examples)}

    def cells(self, examples, predictions):
        return ((f"{score:.6f}",) for (score,) in predictions)

    def json_lines(self, examples, predictions):
        return ({"score": round(score, 6)} for (score,) in predictions)

    def errors(self, examples, predictions):
        return []


class MultiLabel(_TextTask):
    """Any number of labels for each text."""

    name = "multi-label"
    has_distribution = False
    metrics: ClassVar = {
        "micro-f1": "micro_f1",
        "f1": "macro_f1",
        "auc": "macro_auc",
        "exact": "exact",
    }
    shown: ClassVar = {
        "micro_f1": "micro F1",
        "macro_f1": "macro F1",
        "macro_auc": "AUC",
        "exact": "all labels right",
    }

    def read(self, path, inputs, before=None):
        return read_label_sets(
            path,
            text=inputs.text if before is None or inputs.text is not None else before.text,
            label=inputs.label if before is None or inputs.label is not None else before.label,
            format=inputs.format,
        )

    def labels(self, examples, inputs):
        return known_labels(examples)

    def check(self, examples, labels):
        encode_label_sets(examples, labels)

    def targets(self, examples, labels) -> np.ndarray:
        return encode_label_sets(examples, labels)

    def model_arguments(self, labels):
        return {"num_classes": len(labels), "labels": labels, "problem": "multi_label"}

    def predictions(self, outputs, encoded, labels, options):
        return [
            LabelSet(
                tuple(label for label, p in zip(labels, row, strict=True) if p >= 0.5),
                {label: float(p) for label, p in zip(labels, row, strict=True)},
            )
            for row in decode_label_sets(outputs)["probabilities"].numpy()
        ]

    def score(self, examples, outputs, encoded, labels, options):
        probabilities = decode_label_sets(outputs)["probabilities"].numpy()
        found = probabilities >= 0.5
        report = multi_label_report(encode_label_sets(examples, labels), probabilities, labels)
        return {**report, "constant": len(found) > 1 and bool((found == found[0]).all())}

    def loss(self, examples, outputs, labels):
        x, z = outputs.astype(np.float64), encode_label_sets(examples, labels)
        return float((np.logaddexp(0, x) - x * z).mean())

    def counts(self, examples, labels):
        found = Counter(label for row in examples.labels for label in row)
        return {label: found[label] for label in labels}

    def cells(self, examples, predictions):
        for labels, probabilities in predictions:
            yield csv_line(labels), ",".join(f"{probabilities[label]:.6f}" for label in labels)

    def json_lines(self, examples, predictions):
        for labels, probabilities in predictions:
            numbers = {label: round(p, 6) for label, p in probabilities.items()}
            yield {"labels": list(labels), "probabilities": numbers}

    def errors(self, examples, predictions):
        wrong = [("line", "labels", "prediction", "text")]
        for line, wanted, (found, _), text in zip(
            examples.lines, examples.labels, predictions, examples.texts, strict=True
        ):
            if set(wanted) != set(found):
                wrong.append((str(line), csv_line(wanted), csv_line(found), text))
        return wrong
