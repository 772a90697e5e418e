"""Multiple choice: which of C texts goes on with a text.

Shapes: N examples, C choices.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, NamedTuple

from keras_bert_impl.data.choices import (
    encode_choices,
    encode_right_choices,
    read_choices,
)
from keras_bert_impl.decoding.classification import decode_classes
from keras_bert_impl.metrics import accuracy
from keras_bert_impl.models import BertMultipleChoice
from keras_bert_impl.tasks.inputs import ReplayedStream
from keras_bert_impl.tasks.outputs import row_outputs
from keras_bert_impl.tasks.task import Encoded, Task, row_losses

__all__ = ["Choice", "MultipleChoice"]


class Choice(NamedTuple):
    """Index of the most likely choice, its probability, and that of each."""

    choice: int
    probability: float
    probabilities: tuple[float, ...]


class MultipleChoice(Task):
    """One of C choices an example."""

    name = "multiple-choice"
    model_class = BertMultipleChoice
    metrics: ClassVar = {"accuracy": "accuracy"}
    shown: ClassVar = {"accuracy": "accuracy"}

    def read(self, path, inputs, before=None):
        return read_choices(path, inputs.format)

    def labels(self, examples, inputs):
        return None

    def check(self, examples, labels):
        encode_right_choices(examples)

    def encode(self, tokenizer, examples, labels, options, *, training=False):
        rows = encode_choices(tokenizer, examples, max_length=options.max_length)
        targets = encode_right_choices(examples) if training else None
        return Encoded(rows, targets, choices=examples.number)

    def model_arguments(self, labels):
        return {}

    def outputs(self, model, encoded, batch_size):
        return row_outputs(model, encoded.rows, batch_size, encoded.choices)

    def predictions(self, outputs, encoded, labels, options):
        probabilities = decode_classes(outputs)["probabilities"].numpy()
        return [
            Choice(int(row.argmax()), float(row.max()), tuple(row.tolist()))
            for row in probabilities
        ]

    def score(self, examples, outputs, encoded, labels, options):
        right, found = encode_right_choices(examples), outputs.argmax(axis=-1)
        return {
            "accuracy": accuracy(right, found),
            "examples": len(right),
            "constant": len(found) > 1 and len(set(found.tolist())) == 1,
        }

    def loss(self, examples, outputs, labels):
        return float(row_losses(outputs, encode_right_choices(examples)).mean())

    def counts(self, examples, labels):
        found = Counter(examples.labels)
        return {str(index): found[str(index)] for index in range(examples.number)}

    def read_inputs(self, source, inputs, run, size):
        form = inputs.format
        if form is None and hasattr(source, "read"):
            source = ReplayedStream(source)
            form = "jsonl" if source.first.startswith(b"{") else "csv"
        yield read_choices(source, form)

    def cells(self, examples, predictions):
        return ((str(choice), f"{probability:.6f}") for choice, probability, _ in predictions)

    def json_lines(self, examples, predictions):
        for choice, probability, probabilities in predictions:
            yield {
                "choice": choice,
                "probability": round(probability, 6),
                "probabilities": [round(p, 6) for p in probabilities],
            }

    def errors(self, examples, predictions):
        wrong = [("line", "label", "prediction", "probability", "text")]
        for line, label, found, prompt in zip(
            examples.lines, examples.labels, predictions, examples.prompts, strict=True
        ):
            if label != str(found.choice):
                shown = f"{found.probability:.6f}"
                wrong.append((str(line), label, str(found.choice), shown, prompt))
        return wrong
