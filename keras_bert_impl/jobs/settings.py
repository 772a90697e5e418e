"""The settings of fine-tuning, checked as soon as they are given."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from keras_bert_impl.data.glue import TEXT_SETS, find_files
from keras_bert_impl.tasks import InputOptions, Task, TaskOptions, find_task
from keras_bert_impl.trainer.recipes import check_recipe

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
        task: a kind or a set of data, see `keras_bert_impl.tasks.find_task`.
        data_dir: folder with the files of the set that `task` names, in place of `train` and `dev`.
        weights: a folder, ``hf:ORG/NAME`` or ``minilm``; ``"none"``: random weights.
        size: for ``"none"``: a name in `keras_bert_impl.config.SIZES` or a config file.
        vocab: for ``"none"``, or in place of the weights' own: ``vocab.txt`` or its folder.
        cased: whether case is kept; None: as the weights' tokenizer says.
        inputs: columns and format of both files.
        epochs, batch_size, learning_rate: BERT: 3 or 4, 16 or 32, 2e-5 to 5e-5.
        max_length: longest row in tokens, special tokens included; None: 384 for questions,
            else 128.
        warmup: share of the steps in which the learning rate rises. BERT: 0.1.
        class_weights: ``"balanced"``, or weights by label (1 for a label left out).
        patience: epochs without a better score after which training stops; None: never.
        metric: what is best on the dev file, one of the task's; None: its first, or that which
            is published for the set.
        num_trials: how often to train, with seeds from `seed` on; the best on the dev file is kept.
        doc_stride, max_query_length, max_answer_length: of questions, as in `TaskOptions`.
        layer_decay: the learning rate of each layer is so many times that of the one above it.
        freeze_layers: so many layers, and the embeddings, are not trained; -1: the whole encoder.
        ema: momentum of the moving average of the weights that is scored and kept; None: none.
        lora_rank: train low-rank changes of the projections and the head only; None: all weights.
        micro_batches: parts a batch is cut into, one after the other, for one step.
        r_drop: alpha of R-Drop, of tasks with classes; 0: none. The paper: 0.1 to 1.
        adversarial: epsilon of adversarial training; 0: none. See `Trainer.compile` for the three.
        dtype: one of `DTYPES`.
        strategy: as `keras_bert_impl.training.strategies.make_strategy`.
        seed: of the new weights, dropout and order.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    output: Path
    train: Path | None = None
    dev: Path | None = None
    task: str = "classification"
    data_dir: Path | None = None
    weights: Path = "minilm"
    size: str | None = None
    vocab: Path | None = None
    cased: bool | None = None
    inputs: InputOptions = field(default_factory=InputOptions)
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    max_length: int | None = None
    warmup: float = 0.1
    class_weights: str | Mapping[str, float] | None = None
    patience: int | None = None
    metric: str | None = None
    dtype: str = "float32"
    strategy: str = "none"
    seed: int = 0
    num_trials: int = 1
    doc_stride: int = 128
    max_query_length: int = 64
    max_answer_length: int = 30
    layer_decay: float = 1.0
    freeze_layers: int = 0
    ema: float | None = None
    lora_rank: int | None = None
    micro_batches: int = 1
    r_drop: float = 0.0
    adversarial: float = 0.0

    def __post_init__(self) -> None:
        task, layout = find_task(self.task)
        self._find_files(layout)
        if layout is not None and self.inputs.layout is None:
            object.__setattr__(self, "inputs", dataclasses.replace(self.inputs, layout=layout))
        if self.max_length is None:
            object.__setattr__(self, "max_length", task.defaults.get("max_length", 128))
        if self.metric is None:
            default = TEXT_SETS[layout].metric if layout else next(iter(task.metrics))
            object.__setattr__(self, "metric", default)
        for name in ("epochs", "batch_size", "patience", "num_trials", "lora_rank"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be greater than 0, got {self.learning_rate}")
        if not 0 <= self.warmup <= 1:
            raise ValueError(f"warmup must be a share from 0 to 1, got {self.warmup}")
        for name, known in (("metric", tuple(task.metrics)), ("dtype", DTYPES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        for name in ("layer_decay", "ema"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ValueError(f"{name} must be more than 0 and at most 1, got {value}")
        if self.freeze_layers < -1:
            raise ValueError(f"freeze_layers must be at least -1, got {self.freeze_layers}")
        if self.lora_rank is not None and self.freeze_layers == -1:
            raise ValueError(
                "lora_rank (--lora-rank) changes projections of the encoder, and freeze_layers=-1 "
                "(--freeze-layers -1) keeps all of it: leave out one of them"
            )
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be from 0 to 2**32 - 1, got {self.seed}")
        check_recipe(self.micro_batches, self.r_drop, self.adversarial)
        if self.batch_size % self.micro_batches:
            raise ValueError(
                f"batch_size {self.batch_size} (--batch-size) cannot be cut into "
                f"{self.micro_batches} equal parts (--micro-batches)"
            )
        if self.r_drop and not task.has_distribution:
            raise ValueError(
                f"r_drop (--r-drop) compares distributions over classes: not for {task.name}"
            )
        if self.class_weights is not None and not task.takes_class_weights:
            raise ValueError(f"class_weights (--class-weights) are not for {task.name}")
        if self.from_scratch and (self.size is None or self.vocab is None):
            raise ValueError("weights='none' (--weights none) needs --size and --vocab")
        if not self.from_scratch and self.size is not None:
            raise ValueError(f"--size goes with --weights none, got --weights {self.weights}")

    def _find_files(self, layout: str | None) -> None:
        if self.data_dir is not None:
            if layout is None:
                raise ValueError(f"--data-dir needs the name of a set (--task), got {self.task!r}")
            found = find_files(layout, self.data_dir)
            for name, path in zip(("train", "dev"), found, strict=True):
                if getattr(self, name) is None:
                    object.__setattr__(self, name, path)
        for name in ("train", "dev"):
            if getattr(self, name) is None:
                raise ValueError(f"no {name} file: give --{name}, or --data-dir with --task")

    @property
    def kind(self) -> Task:
        """The task."""
        return find_task(self.task)[0]

    @property
    def options(self) -> TaskOptions:
        """How texts become rows."""
        return TaskOptions(
            max_length=self.max_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
            max_answer_length=self.max_answer_length,
        )

    @property
    def from_scratch(self) -> bool:
        """Whether the model starts from random weights."""
        return self.weights == NO_WEIGHTS

    def to_dict(self) -> dict:
        """For JSON; paths as strings."""
        values = dataclasses.asdict(self)
        for name in ("train", "dev", "output", "weights", "vocab", "data_dir"):
            values[name] = None if values[name] is None else os.fspath(values[name])
        return values
