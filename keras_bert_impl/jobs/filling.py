"""Fills the masks of texts with a pre-trained model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from keras_bert_impl import checkpoints, sources
from keras_bert_impl.analysis import Candidate, fill_mask
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["FilledTexts", "fill_texts"]


@dataclass(frozen=True)
class FilledTexts:
    """For each text, for each of its masks: candidates, the most likely one first."""

    model: str
    texts: list[str]
    masks: list[list[list[Candidate]]]

    def to_dict(self) -> dict:
        """For JSON: each candidate is an object with its names."""
        masks = [[[c._asdict() for c in mask] for mask in text] for text in self.masks]
        return {"model": self.model, "texts": self.texts, "masks": masks}


def fill_texts(
    model: str | os.PathLike, texts: str | Sequence[str], *, top_k: int = 5
) -> FilledTexts:
    """The most likely tokens for each ``[MASK]`` of some texts.

    Args:
        model: a run of `pretrain`, or a Hugging Face folder with a masked-LM head.
        texts: one text or several.
        top_k: candidates a mask.

    Raises:
        FileNotFoundError, ValueError: as `checkpoints.open_checkpoint` and
            `keras_bert_impl.analysis.fill_mask`; the folder has no masked-LM head.
    """
    folder = sources.resolve(model)
    texts = [texts] if isinstance(texts, str) else list(texts)
    if checkpoints.open_checkpoint(folder).model_name != BertPretrainer.__name__:
        raise ValueError(
            f"{folder} has no masked-LM head: pre-train it first (keras-bert pretrain)"
        )
    found = fill_mask(
        BertPretrainer.from_pretrained(folder),
        BertTokenizer.from_pretrained(folder),
        texts,
        top_k,
    )
    return FilledTexts(os.fspath(folder), texts, found)
