"""The settings of fine-tuning, checked as soon as they are given."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from keras_bert_impl.jobs.inputs import InputOptions
from keras_bert_impl.jobs.progress import METRICS

__all__ = ["DTYPES", "FinetuneSettings"]

DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")
NO_WEIGHTS = "none"

Path = str | os.PathLike


@dataclass(frozen=True, kw_only=True)
class FinetuneSettings:
    """What `finetune` is to do.

    Args:
        train: labelled file to train on.
        dev: labelled file to choose the best epoch on.
        output: folder to write; must not exist, or be empty.
        weights: a folder, ``hf:ORG/NAME`` or ``minilm``; ``"none"``: random weights.
        size: for ``"none"``: a name in `keras_bert_impl.config.SIZES` or a config file.
        vocab: for ``"none"``, or in place of the weights' own: ``vocab.txt`` or its folder.
        cased: whether case is kept; None: as the weights' tokenizer says.
        inputs: columns and format of both files.
        epochs, batch_size, learning_rate: BERT: 3 or 4, 16 or 32, 2e-5 to 5e-5.
        max_length: longest row in tokens, special tokens included.
        warmup: share of the steps in which the learning rate rises. BERT: 0.1.
        class_weights: ``"balanced"``, or weights by label (1 for a label left out).
        patience: epochs without a better score after which training stops; None: never.
        metric: what is best on the dev file: ``accuracy``, ``f1`` (macro) or ``mcc``.
        dtype: one of `DTYPES`.
        seed: of the new weights, dropout and order.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    train: Path
    dev: Path
    output: Path
    weights: Path = "minilm"
    size: str | None = None
    vocab: Path | None = None
    cased: bool | None = None
    inputs: InputOptions = field(default_factory=InputOptions)
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    max_length: int = 128
    warmup: float = 0.1
    class_weights: str | Mapping[str, float] | None = None
    patience: int | None = None
    metric: str = "accuracy"
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be greater than 0, got {self.learning_rate}")
        if not 0 <= self.warmup <= 1:
            raise ValueError(f"warmup must be a share from 0 to 1, got {self.warmup}")
        for name, known in (("metric", tuple(METRICS)), ("dtype", DTYPES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        if self.from_scratch and (self.size is None or self.vocab is None):
            raise ValueError("weights='none' (--weights none) needs --size and --vocab")
        if not self.from_scratch and self.size is not None:
            raise ValueError(f"--size goes with --weights none, got --weights {self.weights}")

    @property
    def from_scratch(self) -> bool:
        """Whether the model starts from random weights."""
        return self.weights == NO_WEIGHTS

    def to_dict(self) -> dict:
        """For JSON; paths as strings."""
        values = dataclasses.asdict(self)
        for name in ("train", "dev", "output", "weights", "vocab"):
            values[name] = None if values[name] is None else os.fspath(values[name])
        return values
