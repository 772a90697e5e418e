"""Pre-trains on shards, with checkpoints from which a run goes on bit for bit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import keras
import tensorflow as tf

from keras_bert_impl import __version__
from keras_bert_impl.data.pretraining_batches import evaluation_batches, pretraining_batches
from keras_bert_impl.jobs.preparation import check_space, write_json
from keras_bert_impl.jobs.pretraining_inputs import PretrainInputs, check_remote
from keras_bert_impl.jobs.pretraining_progress import OnEvent, PretrainSummary, Progress, Window
from keras_bert_impl.jobs.pretraining_settings import PretrainSettings
from keras_bert_impl.jobs.progress import Stage
from keras_bert_impl.jobs.run_folder import History, begin_or_resume, forget, read_record
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.sources.locking import locked
from keras_bert_impl.training import AdamW, Lamb, WarmupLinearDecay, strategies
from keras_bert_impl.training.checkpointing import (
    Checkpoints,
    Interrupted,
    SaveCheckpoints,
    signals_deferred,
)

__all__ = ["PretrainResult", "pretrain", "settings_to_resume"]

CHECKPOINTS = "checkpoints"
HISTORY_FILE = "history.jsonl"
METRICS_FILE = "metrics.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class PretrainResult:
    """What pre-training gave; the model itself is in `folder`.

    `train` and `eval` are the scores of the last window of steps; `eval` is empty without
    evaluation shards.
    """

    folder: str
    steps: int
    train: dict[str, float]
    eval: dict[str, float]
    history: list[dict]
    seconds: float


def settings_to_resume(output: str | os.PathLike, **changes) -> PretrainSettings:
    """The settings of the unfinished run in a folder, with changes.

    Raises:
        FileNotFoundError: there is no run.
        ValueError: it was written in a newer format, or a change is out of range.
    """
    options = read_record(Path(output))["options"]
    given = {name: value for name, value in changes.items() if value is not None}
    for name in ("size", "init_checkpoint"):
        if name in given:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"--resume goes on with the model of the run and {option} begins with another: "
                "give one of them"
            )
    return PretrainSettings(**{**options, **given, "output": output, "resume": True})


def pretrain(settings: PretrainSettings, on_event: OnEvent = lambda event: None) -> PretrainResult:
    """Checks everything, trains, evaluates, writes the run folder.

    While it runs, the folder holds `pretraining.json`, `checkpoints/`, `history.jsonl` and the
    logs for TensorBoard; `keras_bert.json` comes last and marks a finished run. SIGTERM and SIGINT
    end the run after the step, with a checkpoint.

    Args:
        settings: what to do.
        on_event: told of the parts, steps and windows of steps as they pass.

    Raises:
        FileExistsError: the folder holds a finished run, or an unfinished one without `resume`,
            or another process writes to it.
        FileNotFoundError, ValueError: shards, vocabulary, config or weights are missing, damaged
            or do not fit each other; the run to resume is another one; the loss is not finite.
        OSError: the disk is full, or a machine of the run went away.
    """
    began = time.monotonic()
    if settings.strategy == "tpu":
        check_remote(settings)
    strategy = strategies.make_strategy(settings.strategy)
    strategies.check_batch_size(strategy, settings.batch_size, settings.micro_batches)
    run = _Run(settings, strategy)
    on_event(run.summary())
    with strategies.lost_machines_told(), run.writing():
        step = run.restore()
        if step:
            on_event(Stage(f"going on after step {step:,}"))
        run.train(step, on_event)
        on_event(Stage("writing the run"))
        return run.finish(round(time.monotonic() - began, 2))


class _Run:
    """A run from the checks to the end."""

    def __init__(self, settings: PretrainSettings, strategy: tf.distribute.Strategy):
        self.settings, self.strategy = settings, strategy
        self.folder = Path(settings.output)
        self.is_chief = strategies.is_chief(strategy)
        self.gather = strategies.make_gather(strategy)
        inputs = PretrainInputs(settings)
        self.shards, self.eval_shards = inputs.shards, inputs.eval_shards
        self.tokenizer, self.config = inputs.tokenizer, inputs.config
        self.dtype = settings.dtype or strategies.precision_for(strategy)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the folder, and makes the model once it is known that the run may go on."""
        settings = self.settings
        with locked(self.folder) if self.is_chief else contextlib.nullcontext():
            if self.is_chief:
                begin_or_resume(
                    self.folder,
                    self._record(),
                    resume=settings.resume,
                    allow_changes=settings.allow_changes,
                )
            self.checkpoints = Checkpoints(self.folder / CHECKPOINTS, settings.keep)
            try:
                self._check_same_everywhere()
                self.model = self._make_model()
            except (ValueError, OSError):
                if self.is_chief and not settings.resume:
                    forget(self.folder)
                raise
            yield

    def _record(self) -> dict:
        settings = self.settings
        return {
            "model": {
                "config": self.config.to_dict(),
                "next_sentence": self.shards.has_sentence_task,
            },
            "data": self.shards.fingerprint(),
            "settings": settings.of_the_run() | {"dtype": self.dtype},
            "options": settings.to_dict() | {"warmup_steps": settings.warmup},
        }

    def _check_same_everywhere(self) -> None:
        """Raises ValueError where machines were started with other settings, data or models."""
        record = self._record()
        options = record.pop("options")
        names = ("save_every", "steps_per_execution", "micro_batches")
        record["options"] = {name: options[name] for name in names}
        record["evaluates"] = self.eval_shards and self.eval_shards.fingerprint()
        digest = zlib.crc32(json.dumps(record, sort_keys=True).encode())
        digests = self.gather(digest)
        if len(set(digests)) > 1:
            others = [rank for rank, other in enumerate(digests) if other != digests[0]]
            raise ValueError(
                "the machines of the run differ in settings, data or model: machine "
                f"{others[0]} from machine 0: start all with the same command and the same files"
            )

    def _make_model(self) -> BertPretrainer:
        settings = self.settings
        with self.strategy.scope():
            keras.utils.set_random_seed(settings.seed)
            options = {"next_sentence": self.shards.has_sentence_task, "dtype": self.dtype}
            # A run that was stopped before its first checkpoint begins as it began.
            goes_on = settings.resume and self.checkpoints.steps()
            if settings.init_checkpoint is None or goes_on:
                model = BertPretrainer(self.config, **options)
            else:
                model = BertPretrainer.from_pretrained(settings.init_checkpoint, **options)
            kind = {"adamw": AdamW, "lamb": Lamb}[settings.optimizer]
            optimizer = kind(
                WarmupLinearDecay(settings.learning_rate, settings.steps, settings.warmup)
            )
            if self.dtype == "mixed_float16":
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
            model.compile(
                optimizer,
                jit_compile=False,
                micro_batches=settings.micro_batches,
                steps_per_execution=settings.steps_per_execution,
            )
            model.optimizer.build(model.trainable_variables)
        parameters = model.count_params()
        if self.is_chief:
            check_space(self.folder, (3 * settings.keep + 4) * parameters)
        return model

    def restore(self) -> int:
        """Steps done; the state after them is loaded."""
        state = self.checkpoints.restore(self.model) if self.settings.resume else None
        step = 0 if state is None else state["step"]
        steps = self.gather(step)
        if len(set(steps)) > 1:
            raise ValueError(
                f"{self.checkpoints.folder}: the machines of the run found different checkpoints, "
                f"after steps {steps}: --output must be a folder that all of them see"
            )
        self.history = History(self.folder / HISTORY_FILE, step) if self.is_chief else None
        if step and (step % self.settings.save_every == 0 or step == self.settings.steps):
            self._score_missing(step, state.get("scores", {}))
        return step

    def _score_missing(self, step: int, scores: dict[str, float]) -> None:
        """Makes up for the evaluation of a window after whose last step a signal came."""
        lines = self.history.lines if self.is_chief else []
        known = max(self.gather(lines[-1]["step"] if lines else 0))
        if known < step:
            window = Window(step, scores, self.evaluate(), 0.0)
            if self.is_chief:
                self.history.add(window.to_dict())

    def train(self, step: int, on_event: OnEvent) -> None:
        """Goes on from a step to the last one."""
        settings = self.settings
        stopped = None
        with signals_deferred(signal.SIGTERM, signal.SIGINT) as signals:
            try:
                for start, steps, windows in _segments(step, settings.steps, settings.save_every):
                    self._fit(start, steps, windows, signals, on_event)
            except Interrupted as interruption:
                stopped = interruption
        if stopped is not None:
            on_event(Stage(f"{stopped}: --resume goes on from there"))
            signal.raise_signal(stopped.number)
            raise KeyboardInterrupt

    def _fit(self, start: int, steps: int, windows: int, signals: list, on_event: OnEvent) -> None:
        settings, model = self.settings, self.model
        at_once = settings.steps_per_execution if steps % settings.steps_per_execution == 0 else 1
        if model.steps_per_execution != at_once:
            model.steps_per_execution = at_once
            model.train_function = None
        batches = strategies.distribute(
            self.strategy,
            lambda rank, world: pretraining_batches(
                self.shards,
                self.tokenizer.vocab,
                batch_size=settings.batch_size,
                seed=settings.seed,
                start_step=start,
                rank=rank,
                world=world,
            ),
        )
        progress = Progress(self, start, settings.steps, on_event)
        interrupt = SaveCheckpoints(
            self.checkpoints,
            settings.steps,
            step=start,
            signals=signals,
            is_chief=self.is_chief,
            gather=self.gather,
        )
        model.fit(
            batches,
            steps_per_epoch=steps,
            epochs=windows,
            verbose=0,
            callbacks=[progress, interrupt],
        )

    def evaluate(self) -> dict[str, float]:
        """Scores on every held-out record; empty where there are none."""
        if self.eval_shards is None:
            return {}
        batches = strategies.distribute(
            self.strategy,
            lambda rank, world: evaluation_batches(
                self.eval_shards,
                self.tokenizer.vocab,
                batch_size=self.settings.batch_size,
                seed=self.settings.seed,
                rank=rank,
                world=world,
            ),
        )
        steps = -(-len(self.eval_shards) // self.settings.batch_size)
        scores = self.model.evaluate(batches, steps=steps, verbose=0, return_dict=True)
        return {name: float(value) for name, value in scores.items()}

    def window_done(self, window: Window) -> None:
        """Writes the line of the history, then the checkpoint."""
        if self.is_chief:
            self.history.add(window.to_dict())
            self.checkpoints.save(self.model, window.step, scores=window.train)

    def finish(self, seconds: float) -> PretrainResult:
        """Writes model and tokenizer; the run counts as finished from then on."""
        lines = self.history.lines if self.is_chief else []
        last = lines[-1] if lines else {"train": {}, "eval": {}}
        if self.is_chief:
            self.tokenizer.save_pretrained(self.folder)
            write_json(
                self.folder / METRICS_FILE,
                {
                    "format_version": FORMAT_VERSION,
                    "steps": self.settings.steps,
                    "train": last["train"],
                    "eval": last["eval"],
                    "versions": {"keras_bert_impl": __version__, "keras": keras.__version__},
                },
            )
            self.model.save_pretrained(self.folder)
        return PretrainResult(
            folder=os.fspath(self.settings.output),
            steps=self.settings.steps,
            train=last["train"],
            eval=last["eval"],
            history=lines,
            seconds=seconds,
        )

    def summary(self) -> PretrainSummary:
        """What is about to be trained."""
        settings = self.settings
        return PretrainSummary(
            data=self.shards.description,
            eval_data=None if self.eval_shards is None else self.eval_shards.description,
            examples=len(self.shards),
            epochs=settings.steps * settings.batch_size / len(self.shards),
            model=settings.size or os.fspath(settings.init_checkpoint or self.folder),
            devices=strategies.describe(self.strategy, self.dtype, settings.batch_size),
            steps=settings.steps,
        )


def _segments(step: int, total: int, window: int) -> Iterator[tuple[int, int, int]]:
    """(first step, steps a window, windows): the rest of a window begun, whole ones, the last."""
    rest = min(-step % window, total - step)
    if rest:
        yield step, rest, 1
    step += rest
    whole, last = divmod(total - step, window)
    if whole:
        yield step, window, whole
    if last:
        yield step + whole * window, last, 1
