"""Which variable of our models is which tensor of a foreign file.

One table, read in either direction: foreign name, the variable of ours, and whether the matrix
is transposed (PyTorch keeps a Linear's weight as [out, in], Keras a Dense's kernel as [in, out]).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["HEADS", "TIED", "Head", "WeightRow", "encoder_rows", "pooler_rows"]

# Second names of one weight: a file has either or both.
TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


class WeightRow(NamedTuple):
    """One line of the table: the tensor `name` of the file is `variable`, or its transpose."""

    name: str
    variable: object
    transpose: bool = False


def encoder_rows(encoder) -> list[WeightRow]:
    """The rows of embeddings and blocks, by the names of Hugging Face's `BertModel`."""
    embeddings = encoder.embeddings
    rows = [
        WeightRow("embeddings.word_embeddings.weight", embeddings.token.embeddings),
        WeightRow("embeddings.token_type_embeddings.weight", embeddings.segment.embeddings),
        *_norm("embeddings.LayerNorm", embeddings.norm),
    ]
    if encoder.config.position_embedding_type == "learned":
        rows.append(
            WeightRow("embeddings.position_embeddings.weight", embeddings.position.embeddings)
        )
    for index, block in enumerate(encoder.blocks):
        prefix = f"encoder.layer.{index}."
        for name, layer in (
            ("attention.self.query", block.attention.query),
            ("attention.self.key", block.attention.key),
            ("attention.self.value", block.attention.value),
            ("attention.output.dense", block.attention.projection),
            ("intermediate.dense", block.intermediate),
            ("output.dense", block.output_projection),
        ):
            rows += _dense(prefix + name, layer)
        rows += _norm(prefix + "attention.output.LayerNorm", block.attention_norm)
        rows += _norm(prefix + "output.LayerNorm", block.output_norm)
    return rows


def pooler_rows(encoder) -> list[WeightRow]:
    """The rows of the pooler, which `BertForMaskedLM` and others lack."""
    return _dense("pooler.dense", encoder.pooler.dense)


def _dense(name: str, layer) -> list[WeightRow]:
    return [
        WeightRow(f"{name}.weight", layer.kernel, transpose=True),
        WeightRow(f"{name}.bias", layer.bias),
    ]


def _norm(name: str, layer) -> list[WeightRow]:
    return [WeightRow(f"{name}.weight", layer.gamma), WeightRow(f"{name}.bias", layer.beta)]


class Head(NamedTuple):
    """What one of our model classes has beyond the encoder.

    Args:
        architectures: the classes of the family that have the same head.
        rows: model -> groups of rows; a file has all of a group or nothing of it.
    """

    architectures: tuple[str, ...]
    rows: Callable


def _pretraining_rows(model) -> list[list[WeightRow]]:
    head = model.masked_lm_head
    groups = [
        [
            *_dense("cls.predictions.transform.dense", head.dense),
            *_norm("cls.predictions.transform.LayerNorm", head.norm),
            WeightRow("cls.predictions.bias", head.bias),
        ]
    ]
    if model.next_sentence_head is not None:
        groups.append(_dense("cls.seq_relationship", model.next_sentence_head.dense))
    return groups


def _output_rows(name: str) -> Callable:
    return lambda model: [_dense(name, model.head.dense)]


# Our class -> its head.
HEADS = {
    "BertClassifier": Head(("BertForSequenceClassification",), _output_rows("classifier")),
    "BertMultipleChoice": Head(("BertForMultipleChoice",), _output_rows("classifier")),
    "BertPretrainer": Head(
        ("BertForPreTraining", "BertForMaskedLM", "BertForNextSentencePrediction"),
        _pretraining_rows,
    ),
    "BertSpanPredictor": Head(("BertForQuestionAnswering",), _output_rows("qa_outputs")),
    "BertTokenClassifier": Head(("BertForTokenClassification",), _output_rows("classifier")),
}
