"""The settings of pre-training, checked as soon as they are given."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass

from keras_bert_impl.jobs.settings import DTYPES

__all__ = ["OPTIMIZERS", "PretrainSettings"]

OPTIMIZERS = ("adamw", "lamb")

Path = str | os.PathLike


@dataclass(frozen=True, kw_only=True)
class PretrainSettings:
    """What `pretrain` is to do.

    Args:
        data: folder of shards that `pretrain-data` made, or files in Google's schema.
        output: folder to write; must not exist, or be empty, or hold the run to resume.
        size: a name in `keras_bert_impl.config.SIZES` or a config file; None with
            `init_checkpoint`, whose config is taken.
        init_checkpoint: weights to start from, at step 0: a run, a Hugging Face folder, ``minilm``.
        vocab: ``vocab.txt`` or its folder, for shards that come without.
        eval_data: shards to score on; None: those that `pretrain-data` held out, if any.
        resume: go on with the unfinished run in `output`; `size` and `init_checkpoint` are those
            that it was begun with, see `settings_to_resume`.
        allow_changes: resume although settings or data differ from those of the run.
        steps: optimizer steps of the whole run. BERT: 1,000,000.
        batch_size: rows a step, over all replicas. BERT: 256.
        learning_rate: its peak. BERT: 1e-4.
        warmup_steps: None: the lesser of 10,000 and a tenth of the steps. BERT: 10,000.
        optimizer: ``adamw`` or ``lamb``.
        max_seq_length, max_predictions: what the shards must have; None: whatever they have.
        micro_batches: parts that a replica cuts its rows into, for one step.
        steps_per_execution: steps that TensorFlow makes without going back to Python.
        save_every: steps between checkpoints, evaluations and lines of the history.
        keep: checkpoints that stay.
        dtype: one of `DTYPES`; None: by device.
        strategy: as `keras_bert_impl.training.strategies.make_strategy`.
        seed: of new weights, dropout, order and masks.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    data: Path
    output: Path
    size: str | None = None
    init_checkpoint: Path | None = None
    vocab: Path | None = None
    eval_data: Path | None = None
    resume: bool = False
    allow_changes: bool = False
    steps: int = 100_000
    batch_size: int = 32
    learning_rate: float = 1e-4
    warmup_steps: int | None = None
    optimizer: str = "adamw"
    max_seq_length: int | None = None
    max_predictions: int | None = None
    micro_batches: int = 1
    steps_per_execution: int = 1
    save_every: int = 1000
    keep: int = 3
    dtype: str | None = None
    strategy: str = "none"
    seed: int = 12345

    def __post_init__(self) -> None:
        for name in (
            *("steps", "batch_size", "micro_batches", "steps_per_execution", "save_every", "keep"),
            *("max_seq_length", "max_predictions"),
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be greater than 0, got {self.learning_rate}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be from 0 to {2**31 - 1}, got {self.seed}")
        if self.warmup_steps is not None and not 0 <= self.warmup_steps <= self.steps:
            raise ValueError(
                f"warmup_steps must be from 0 to steps={self.steps}, got {self.warmup_steps}"
            )
        for name, known in (("optimizer", OPTIMIZERS), ("dtype", (None, *DTYPES))):
            if getattr(self, name) not in known:
                choices = ", ".join(filter(None, known))
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}")
        if self.save_every % self.steps_per_execution:
            raise ValueError(
                f"save_every={self.save_every} must be a multiple of steps_per_execution="
                f"{self.steps_per_execution}"
            )
        if (self.size is None) == (self.init_checkpoint is None):
            raise ValueError(
                "give --size (random weights), --init-checkpoint (weights to start from, and "
                "their config) or --resume"
            )

    def of_the_run(self) -> dict:
        """What the numbers of a run depend on, besides the data and the model."""
        names = ("steps", "batch_size", "learning_rate", "optimizer", "seed")
        return {name: getattr(self, name) for name in names} | {"warmup_steps": self.warmup}

    @property
    def warmup(self) -> int:
        """Steps of the warm-up."""
        default = min(10_000, self.steps // 10)
        return default if self.warmup_steps is None else self.warmup_steps

    def to_dict(self) -> dict:
        """For JSON; paths as strings."""
        values = dataclasses.asdict(self)
        for name in ("data", "size", "output", "init_checkpoint", "vocab", "eval_data"):
            values[name] = None if values[name] is None else os.fspath(values[name])
        return values
