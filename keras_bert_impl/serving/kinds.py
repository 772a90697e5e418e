"""Kind of task -> its signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_impl.serving.choice_signatures import ChoiceSignatures
from keras_bert_impl.serving.question_signatures import QuestionSignatures
from keras_bert_impl.serving.signatures import Signatures
from keras_bert_impl.serving.tagging_signatures import TaggingSignatures
from keras_bert_impl.serving.text_signatures import (
    ClassifierSignatures,
    MultiLabelSignatures,
    RegressionSignatures,
    TextSignatures,
)
from keras_bert_impl.tasks import TaskOptions
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["signatures_of"]

_KINDS: dict[str, type[Signatures]] = {
    "classification": ClassifierSignatures,
    "regression": RegressionSignatures,
    "multi-label": MultiLabelSignatures,
    "multiple-choice": ChoiceSignatures,
    "question-answering": QuestionSignatures,
    "token-classification": TaggingSignatures,
}


def signatures_of(
    task: str,
    model: keras.Model,
    tokenizer: BertTokenizer,
    *,
    labels: Sequence[str],
    options: TaskOptions,
    pairs: bool = False,
) -> Signatures:
    """The signatures of a model.

    Args:
        task: a key of `keras_bert_impl.tasks.TASKS`.
        model: the model.
        tokenizer: the tokenizer of its vocabulary.
        labels: the names of its classes, where it has some.
        options: how texts become rows.
        pairs: whether it takes pairs of texts, where the task has both.
    """
    kind = _KINDS[task]
    arguments: dict[str, Any] = {"options": options}
    if kind.has_labels:
        arguments["labels"] = labels
    if issubclass(kind, TextSignatures):
        arguments["pairs"] = pairs
    return kind(model, tokenizer, **arguments)
