"""A run: the folder that fine-tuning writes, and what can be done with it from Python.

Shapes: N texts, C classes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl import checkpoints, sources
from keras_bert_impl.checkpoints.store import check_format_version
from keras_bert_impl.data.batches import as_one_batch, length_sorted_batches
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.data.encoding import EncodedTexts, check_length, encode_texts
from keras_bert_impl.decoding.classification import decode_classes
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["FORMAT_VERSION", "RUN_FILE", "Prediction", "Run", "class_probabilities", "load"]

FORMAT_VERSION = 1
RUN_FILE = "training.json"


class Prediction(NamedTuple):
    """The most likely label of a text and its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class Run:
    """A fine-tuned classifier with all that it needs.

    Attributes:
        model: the `BertClassifier`.
        tokenizer: its `BertTokenizer`.
        labels: name of each class.
        max_length: tokens a text was cut to in training, special tokens included.
        pairs: whether it classifies pairs of texts; None where the folder does not say.
        columns: where the training file had its texts and labels.
        folder: where it was read from.
    """

    model: BertClassifier
    tokenizer: BertTokenizer
    labels: tuple[str, ...]
    max_length: int
    pairs: bool | None
    columns: Columns
    folder: Path

    def predict(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        *,
        batch_size: int = 64,
    ) -> list[Prediction]:
        """Label and probability of each text, in the order of the texts.

        Args:
            texts: texts; one string is one text.
            pairs: second texts, where the run classifies pairs.
            batch_size: texts a step.

        Raises:
            ValueError: an element is not a string, the numbers of texts and pairs differ, or
                pairs are missing or not wanted.
        """
        probabilities = self.probabilities(texts, pairs, batch_size=batch_size)
        best = probabilities.argmax(axis=-1)
        return [
            Prediction(self.labels[index], float(row[index]))
            for index, row in zip(best, probabilities, strict=True)
        ]

    def probabilities(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        *,
        batch_size: int = 64,
    ) -> np.ndarray:
        """Probability of each class, float32 [N, C], in the order of texts and `labels`.

        Raises:
            ValueError: as `predict`.
        """
        texts = [texts] if isinstance(texts, str) else texts
        pairs = [pairs] if isinstance(pairs, str) else pairs
        if self.pairs is not None and self.pairs != (pairs is not None):
            kind, hint = ("pairs of texts", "give") if self.pairs else ("single texts", "leave out")
            raise ValueError(f"{self.folder} classifies {kind}: {hint} pairs")
        check_length("pairs", pairs, texts)
        if len(texts) == 0:
            return np.zeros((0, len(self.labels)), np.float32)
        rows = encode_texts(self.tokenizer, texts, pairs, max_length=self.max_length)
        return class_probabilities(self.model, rows, batch_size)


def class_probabilities(model: BertClassifier, rows: EncodedTexts, batch_size: int) -> np.ndarray:
    """Probability of each class, float32 [N, C], in the order of the rows."""
    if len(rows) <= batch_size:
        logits = model.predict_on_batch(as_one_batch(rows))
    else:
        batches, restore = length_sorted_batches(None, rows, batch_size=batch_size)
        logits = model.predict(batches, verbose=0)[restore]
    return decode_classes(logits)["probabilities"].numpy()


def load(source: str | os.PathLike) -> Run:
    """Loads what `keras-bert finetune` wrote, or another classifier with its tokenizer.

    Args:
        source: a run folder; also a Hugging Face folder or ``hf:ORG/NAME`` with a sequence
            classifier.

    Raises:
        FileNotFoundError: there is no such folder, or a file of it is missing.
        ValueError: a file is damaged or of a newer format, or there is no classifier.
    """
    folder = sources.resolve(source)
    checkpoint = checkpoints.open_checkpoint(folder)
    if checkpoint.num_classes is None:
        raise ValueError(
            f"{folder} holds no classifier: fine-tune it first "
            f"(keras-bert finetune --weights {folder} ...)"
        )
    content = _read_run_file(folder / RUN_FILE)
    tokenizer = BertTokenizer.from_pretrained(folder)
    model = BertClassifier.from_pretrained(folder)
    labels = model.labels or tuple(str(index) for index in range(model.num_classes))
    return Run(
        model=model,
        tokenizer=tokenizer,
        labels=labels,
        max_length=content.get("max_length", model.config.max_position_embeddings),
        pairs=content.get("pairs"),
        columns=Columns(**content.get("columns", {})),
        folder=folder,
    )


def _read_run_file(file: Path) -> dict:
    """The content of `training.json`; empty where there is no such file."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text("utf-8"))
        version = content["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file}: not written by this package: {error!r}") from None
    check_format_version(file, version, FORMAT_VERSION)
    return content
