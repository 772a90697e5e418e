"""Fine-tunes a model for any task and writes its run folder."""

from __future__ import annotations

import dataclasses
import logging
import os
import statistics
import time
import zlib
from dataclasses import dataclass

import keras
import tensorflow as tf

from keras_bert_impl.data.labels import class_weight_table
from keras_bert_impl.data.rows import read_bytes
from keras_bert_impl.jobs.finetuning_records import run_folder, write_dev, write_records
from keras_bert_impl.jobs.preparation import (
    TrainingFiles,
    check_space,
    make_model,
    make_tokenizer,
    read_files,
    warn_of_unknown,
)
from keras_bert_impl.jobs.progress import (
    DevSet,
    EpochDone,
    KeepBest,
    OnEvent,
    Stage,
    TrainingSummary,
)
from keras_bert_impl.jobs.report import write_pages
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.tasks import Encoded
from keras_bert_impl.training import AdamW, WarmupLinearDecay, strategies
from keras_bert_impl.training.layers import LayerwiseAdamW, choose_trainable, layer_rates
from keras_bert_impl.training.replicas import ReplicatedPredictor

__all__ = ["FinetuneResult", "Trial", "finetune"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trial:
    """One of several trainings; `collapsed` where it predicts the same for every example."""

    seed: int
    best_epoch: int
    score: float
    collapsed: bool


@dataclass(frozen=True)
class FinetuneResult:
    """What fine-tuning gave; the model itself is in `folder`.

    `dev` is the report of the best epoch, see the task's `score`; `trials` has one entry a seed.
    """

    folder: str
    labels: list[str]
    best_epoch: int
    metric: str
    score: float
    dev: dict
    history: list[EpochDone]
    seconds: float
    trials: list[Trial] = dataclasses.field(default_factory=list)

    @property
    def median_score(self) -> float:
        """Of all trials."""
        return statistics.median(trial.score for trial in self.trials)


def finetune(settings: FinetuneSettings, on_event: OnEvent = lambda event: None) -> FinetuneResult:
    """Reads and checks everything, trains, keeps the best epoch, writes the run folder.

    The folder appears when all is done: on any error, and on an interruption, it is not there.
    Of a remote one (``gs://...``) `keras_bert.json` comes last and marks it as whole.

    Args:
        settings: what to do.
        on_event: told of the parts, steps and epochs as they pass.

    Raises:
        FileExistsError: the output folder holds something.
        FileNotFoundError, ValueError: as `read_files`, `make_tokenizer`, `make_model`,
            `make_strategy`; the replicas cannot share a batch; or the loss is not finite.
        OSError: the output folder cannot be written, the disk is full, or another machine of the
            run went away.
    """
    began = time.monotonic()
    strategy = strategies.make_strategy(settings.strategy)
    strategies.check_batch_size(strategy, settings.batch_size, settings.micro_batches)
    on_event(Stage("reading the data"))
    files = read_files(settings)
    is_chief = strategies.is_chief(strategy)
    with (
        strategies.lost_machines_told(),
        run_folder(os.fspath(settings.output), is_chief) as folder,
    ):
        tuning = _Tuning(settings, strategy, files, on_event)
        check_space(folder, tuning.model.count_params())
        best, trials = tuning.train_all()
        on_event(Stage("writing the run"))
        best.model.save_pretrained(folder)
        tuning.tokenizer.save_pretrained(folder)
        result = FinetuneResult(
            folder=os.fspath(settings.output),
            labels=files.labels or [],
            best_epoch=best.best_epoch,
            metric=settings.metric,
            score=best.best_score,
            dev=best.best_report,
            history=best.history,
            seconds=round(time.monotonic() - began, 2),
            trials=trials,
        )
        write_records(folder, settings, files, result, tuning.dev.options)
        write_dev(folder, tuning.dev, best.predictor, settings.batch_size)
        write_pages(folder)
    return result


class _Tuning:
    """The data of a fine-tuning, encoded, and one training after the other on it."""

    def __init__(
        self,
        settings: FinetuneSettings,
        strategy: tf.distribute.Strategy,
        files: TrainingFiles,
        on_event: OnEvent,
    ):
        self.settings, self.strategy = settings, strategy
        self.files, self.on_event = files, on_event
        self.tokenizer = make_tokenizer(settings)
        self.model = self._make_model(settings.seed)
        on_event(Stage("tokenizing"))
        task = settings.kind
        options = task.options_of(files.train.examples, settings.options)
        train, dev, labels = files.train.examples, files.dev.examples, files.labels
        encoded = task.encode(self.tokenizer, train, labels, options, training=True)
        warn_of_unknown(settings, encoded.rows, self.tokenizer.vocab)
        self.train = _weighted(encoded, files)
        rows = task.encode(self.tokenizer, dev, labels, options)
        self.dev = DevSet(task, dev, rows, labels, options)
        if strategies.spans_machines(strategy):
            self._check_same_everywhere()

    def _check_same_everywhere(self) -> None:
        record = self.settings.to_dict() | {"output": None}
        files = (self.settings.train, self.settings.dev)
        record["files"] = [zlib.crc32(read_bytes(file)) for file in files]
        record["tokens"] = zlib.crc32(self.train.rows.token_ids.tobytes())
        strategies.check_same(strategies.make_gather(self.strategy), record, self.model)

    def train_all(self) -> tuple[KeepBest, list[Trial]]:
        """All trainings, and the best one, whose model has the weights of its best epoch."""
        settings, task = self.settings, self.settings.kind
        trials: list[Trial] = []
        best = None
        for number in range(settings.num_trials):
            seed = settings.seed + number
            model = self._make_model(seed) if number else self.model
            found = self._train(model, number)
            collapsed = task.is_collapsed(found.best_report)
            trials.append(Trial(seed, found.best_epoch, found.best_score, collapsed))
            if collapsed:
                _logger.warning(
                    "seed %d: the model says the same for every example of %s: another seed, a "
                    "lower learning rate or a longer warm-up may help (--num-trials tries several)",
                    seed, settings.dev,
                )  # fmt: skip
            if best is None or found.best_score > best.best_score:
                best = found
        best.restore()
        return best, trials

    def _make_model(self, seed: int) -> keras.Model:
        settings, files = self.settings, self.files
        source = "at random" if settings.from_scratch else f"from {settings.weights}"
        self.on_event(Stage(f"making the model, weights {source}"))
        with self.strategy.scope():
            keras.utils.set_random_seed(seed)
            model = make_model(settings, self.tokenizer, files.labels, pairs=files.pairs)
            choose_trainable(model, settings.freeze_layers, settings.lora_rank)
        return model

    def _train(self, model: keras.Model, number: int) -> KeepBest:
        """Trains the model and leaves it with the weights of its best epoch."""
        settings = self.settings
        batches, steps = self._batches(settings.seed + number)
        self.on_event(self._summary(model, steps))
        with self.strategy.scope():
            _compile(model, settings, steps * settings.epochs)
        best = KeepBest(
            self.dev,
            metric=settings.metric,
            patience=settings.patience,
            batch_size=2 * settings.batch_size,
            on_event=self.on_event,
            trial=number + 1,
            predictor=ReplicatedPredictor(model) if self._is_shared else model,
        )
        swaps = [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)]
        model.fit(
            batches,
            epochs=settings.epochs,
            steps_per_epoch=steps if self._is_shared else None,
            shuffle=False,
            verbose=0,
            callbacks=[*(swaps if settings.ema is not None else ()), best],
        )
        best.restore()
        return best

    @property
    def _is_shared(self) -> bool:
        return self.settings.strategy != "none"

    def _batches(self, seed: int) -> tuple:
        """What `fit` takes, and the steps of an epoch; the same rows a step on any devices."""
        settings = self.settings
        options = {"batch_size": settings.batch_size, "shuffle": True, "seed": seed}
        if not self._is_shared:
            batches = self.train.batches(**options)
            return batches, int(batches.cardinality())
        if isinstance(self.strategy, tf.distribute.TPUStrategy):
            # Static shapes; the rows that fill no batch are others in every epoch.
            options |= {"drop_remainder": True, "pad_to": settings.max_length}

        def share(rank: int, world: int) -> tf.data.Dataset:
            batches = self.train.batches(**options, passes=settings.epochs)
            if world == 1:
                return batches
            return batches.map(
                lambda *batch: keras.tree.map_structure(lambda value: value[rank::world], batch)
            )

        steps = int(self.train.batches(**options).cardinality())
        return strategies.distribute(self.strategy, share), steps

    def _summary(self, model: keras.Model, steps: int) -> TrainingSummary:
        settings, files, rows = self.settings, self.files, self.train.rows
        device = _device()
        if self._is_shared:
            device = strategies.describe(self.strategy, settings.dtype, settings.batch_size)
        return TrainingSummary(
            train=str(files.train.examples.path),
            dev=str(files.dev.examples.path),
            train_examples=len(files.train.examples),
            dev_examples=len(files.dev.examples),
            train_labels=files.train.counts,
            dev_labels=files.dev.counts,
            rows=len(rows),
            tokens=len(rows.token_ids),
            longest=int(rows.lengths.max()),
            truncated=rows.truncated,
            max_length=settings.max_length,
            weights=os.fspath(settings.weights),
            parameters=model.count_params(),
            dtype=settings.dtype,
            device=device,
            epochs=settings.epochs,
            steps_per_epoch=steps,
        )


def _weighted(train: Encoded, files: TrainingFiles) -> Encoded:
    if files.class_weights is None:
        return train
    table = class_weight_table(train.targets, files.class_weights)
    return dataclasses.replace(train, weights=table[train.targets])


def _compile(model: keras.Model, settings: FinetuneSettings, steps: int) -> None:
    schedule = WarmupLinearDecay(settings.learning_rate, steps, round(settings.warmup * steps))
    options = {} if settings.ema is None else {"use_ema": True, "ema_momentum": settings.ema}
    if settings.layer_decay != 1:
        options["rates"] = layer_rates(model, settings.layer_decay)
        optimizer = LayerwiseAdamW(schedule, **options)
    else:
        optimizer = AdamW(schedule, **options)
    # Every batch has a length of its own, for each of which XLA would compile anew.
    model.compile(
        optimizer,
        jit_compile=False,
        micro_batches=settings.micro_batches,
        r_drop=settings.r_drop,
        adversarial=settings.adversarial,
    )


def _device() -> str:
    devices = keras.distribution.list_devices()
    if all(device.startswith("cpu") for device in devices):
        return f"{os.cpu_count()} CPU cores"
    return ", ".join(devices)
