"""A run of pre-training from the checks to the end."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator

import keras
import tensorflow as tf

from keras_bert_impl import __version__
from keras_bert_impl.checkpoints.store import CONFIG_FILE
from keras_bert_impl.data.pretraining_batches import evaluation_batches, pretraining_batches
from keras_bert_impl.jobs.preparation import check_space, write_json
from keras_bert_impl.jobs.pretraining_inputs import PretrainInputs
from keras_bert_impl.jobs.pretraining_model import make_pretrainer
from keras_bert_impl.jobs.pretraining_progress import (
    OnEvent,
    PretrainResult,
    PretrainSummary,
    Progress,
    Window,
    segments,
)
from keras_bert_impl.jobs.pretraining_settings import PretrainSettings
from keras_bert_impl.jobs.progress import Stage
from keras_bert_impl.jobs.run_folder import Claim, History, begin_or_resume, forget
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.sources import storage
from keras_bert_impl.sources.locking import locked
from keras_bert_impl.training import strategies
from keras_bert_impl.training.checkpointing import (
    Checkpoints,
    Interrupted,
    SaveCheckpoints,
    signals_deferred,
)

__all__ = ["PretrainRun"]

CHECKPOINTS = "checkpoints"
HISTORY_FILE = "history.jsonl"
METRICS_FILE = "metrics.json"
FORMAT_VERSION = 1


class PretrainRun:
    """A run from the checks to the end, in this order: `writing`, `restore`, `train`, `finish`."""

    def __init__(self, settings: PretrainSettings, strategy: tf.distribute.Strategy):
        self.settings, self.strategy = settings, strategy
        self.folder = os.fspath(settings.output)
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
        is_remote = storage.is_remote(self.folder)
        is_locked = self.is_chief and not is_remote
        with locked(self.folder) if is_locked else contextlib.nullcontext():
            if self.is_chief:
                begin_or_resume(
                    self.folder,
                    self._record(),
                    resume=settings.resume,
                    allow_changes=settings.allow_changes,
                )
                self.claim = Claim(self.folder) if is_remote else None
            self.checkpoints = Checkpoints(storage.join(self.folder, CHECKPOINTS), settings.keep)
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
        strategies.check_same(self.gather, record)

    def _make_model(self) -> BertPretrainer:
        # A run that was stopped before its first checkpoint begins as it began.
        goes_on = self.settings.resume and self.checkpoints.steps()
        with self.strategy.scope():
            model = make_pretrainer(
                self.settings,
                self.config,
                next_sentence=self.shards.has_sentence_task,
                dtype=self.dtype,
                init_checkpoint=None if goes_on else self.settings.init_checkpoint,
            )
        if self.is_chief:
            # Of a remote folder the files are written to the local disk, one checkpoint at a time.
            is_remote = storage.is_remote(self.folder)
            place, kept = (
                (tempfile.gettempdir(), 1) if is_remote else (self.folder, self.settings.keep)
            )
            check_space(place, (3 * kept + 4) * model.count_params())
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
        if strategies.spans_machines(self.strategy):
            strategies.check_same(self.gather, {}, self.model)
        self.history = (
            History(storage.join(self.folder, HISTORY_FILE), step) if self.is_chief else None
        )
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
                with self._lost_records_told():
                    for part in segments(step, settings.steps, settings.save_every):
                        self._fit(*part, signals, on_event)
            except Interrupted as interruption:
                stopped = interruption
        if stopped is not None:
            on_event(Stage(f"{stopped}: --resume goes on from there"))
            signal.raise_signal(stopped.number)
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _lost_records_told(self) -> Iterator[None]:
        """Within the block, a record that cannot be read ends in an OSError that names it."""
        try:
            yield
        except tf.errors.OpError:
            for shards in filter(None, (self.shards, self.eval_shards)):
                if shards.failure is not None:
                    raise OSError(
                        f"{shards.failure}; the checkpoints are kept: when the file is back, "
                        "--resume goes on"
                    ) from None
            raise

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
            shuffle=False,
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
            self._check_claim()
            self.history.add(window.to_dict())
            self.checkpoints.save(self.model, window.step, scores=window.train)

    def finish(self, seconds: float) -> PretrainResult:
        """Writes model and tokenizer; the run counts as finished from then on."""
        lines = self.history.lines if self.is_chief else []
        last = lines[-1] if lines else {"train": {}, "eval": {}}
        if self.is_chief:
            self._check_claim()
            self._write(last)
        return PretrainResult(
            folder=os.fspath(self.settings.output),
            steps=self.settings.steps,
            train=last["train"],
            eval=last["eval"],
            history=lines,
            seconds=seconds,
        )

    def _write(self, last: dict) -> None:
        content = {
            "format_version": FORMAT_VERSION,
            "steps": self.settings.steps,
            "train": last["train"],
            "eval": last["eval"],
            "versions": {"keras_bert_impl": __version__, "keras": keras.__version__},
        }
        with storage.filled(self.folder, last=CONFIG_FILE) as folder:
            self.tokenizer.save_pretrained(folder)
            write_json(folder / METRICS_FILE, content)
            self.model.save_pretrained(folder)

    def _check_claim(self) -> None:
        if self.claim is not None:
            self.claim.check()

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
