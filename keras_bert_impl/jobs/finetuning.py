"""Fine-tunes a model for any task and writes its run folder."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import keras

from keras_bert_impl import __version__
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.data.encoding import EncodedTexts
from keras_bert_impl.data.labels import class_weight_table
from keras_bert_impl.jobs.preparation import (
    TrainingFiles,
    check_space,
    make_model,
    make_tokenizer,
    read_files,
    warn_of_unknown,
    write_errors,
    write_json,
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
from keras_bert_impl.jobs.runs import FORMAT_VERSION, RUN_FILE
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.sources import atomic_folder
from keras_bert_impl.tasks import Encoded, TaskOptions
from keras_bert_impl.training import AdamW, WarmupLinearDecay
from keras_bert_impl.training.layers import LayerwiseAdamW, choose_trainable, layer_rates

__all__ = ["FinetuneResult", "Trial", "finetune"]

METRICS_FILE = "metrics.json"
HISTORY_FILE = "history.json"
PREDICTIONS_FILE = "dev_predictions.jsonl"
ERRORS_FILE = "errors.tsv"

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


def _nothing(event) -> None:
    del event


def finetune(settings: FinetuneSettings, on_event: OnEvent = _nothing) -> FinetuneResult:
    """Reads and checks everything, trains, keeps the best epoch, writes the run folder.

    The folder appears when all is done: on any error, and on an interruption, it is not there.

    Args:
        settings: what to do.
        on_event: told of the parts, steps and epochs as they pass.

    Raises:
        FileExistsError: the output folder holds something.
        FileNotFoundError, ValueError: as `read_files`, `make_tokenizer`, `make_model`; or the
            loss is not finite.
        OSError: the output folder cannot be written, or the disk is full.
    """
    began = time.monotonic()
    on_event(Stage("reading the data"))
    files = read_files(settings)
    task, options = settings.kind, settings.kind.options_of(files.train.examples, settings.options)
    with atomic_folder(settings.output) as folder:
        tokenizer = make_tokenizer(settings)
        keras.utils.set_random_seed(settings.seed)
        model = _make_model(settings, tokenizer, files, on_event)
        check_space(folder, model.count_params())
        on_event(Stage("tokenizing"))
        train = task.encode(tokenizer, files.train.examples, files.labels, options, training=True)
        warn_of_unknown(settings, train.rows, tokenizer.vocab)
        train = _weighted(train, files)
        rows = task.encode(tokenizer, files.dev.examples, files.labels, options)
        dev = DevSet(task, files.dev.examples, rows, files.labels, options)
        trials: list[Trial] = []
        best = None
        for number in range(settings.num_trials):
            if number:
                keras.utils.set_random_seed(settings.seed + number)
                model = _make_model(settings, tokenizer, files, on_event)
            found = _train(settings, model, files, train, dev, on_event, number)
            collapsed = task.is_collapsed(found.best_report)
            seed = settings.seed + number
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
        model = best.model
        on_event(Stage("writing the run"))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
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
        _write_records(folder, settings, files, result, options)
        _write_dev(folder, dev, model, settings.batch_size)
        write_pages(folder)
    return result


def _make_model(settings, tokenizer, files: TrainingFiles, on_event: OnEvent) -> keras.Model:
    source = "at random" if settings.from_scratch else f"from {settings.weights}"
    on_event(Stage(f"making the model, weights {source}"))
    model = make_model(settings, tokenizer, files.labels, pairs=files.pairs)
    choose_trainable(model, settings.freeze_layers, settings.lora_rank)
    return model


def _weighted(train: Encoded, files: TrainingFiles) -> Encoded:
    if files.class_weights is None:
        return train
    table = class_weight_table(train.targets, files.class_weights)
    return dataclasses.replace(train, weights=table[train.targets])


def _train(
    settings: FinetuneSettings,
    model: keras.Model,
    files: TrainingFiles,
    train: Encoded,
    dev: DevSet,
    on_event: OnEvent,
    number: int,
) -> KeepBest:
    """Trains the model and leaves it with the weights of its best epoch."""
    seed = settings.seed + number
    batches = train.batches(batch_size=settings.batch_size, shuffle=True, seed=seed)
    steps = int(batches.cardinality())
    on_event(_summary(settings, model, files, train.rows, steps))
    _compile(model, settings, steps * settings.epochs)
    best = KeepBest(
        dev,
        metric=settings.metric,
        patience=settings.patience,
        batch_size=2 * settings.batch_size,
        on_event=on_event,
        trial=number + 1,
    )
    averages = [] if settings.ema is None else [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)]
    model.fit(batches, epochs=settings.epochs, verbose=0, callbacks=[*averages, best])
    best.restore()
    return best


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
    # A step that finds no variable to create is traced once and not twice.
    model.optimizer.build(model.trainable_variables)


def _summary(
    settings: FinetuneSettings,
    model: keras.Model,
    files: TrainingFiles,
    train: EncodedTexts,
    steps: int,
) -> TrainingSummary:
    return TrainingSummary(
        train=str(files.train.examples.path),
        dev=str(files.dev.examples.path),
        train_labels=files.train.counts,
        dev_labels=files.dev.counts,
        tokens=len(train.token_ids),
        longest=int(train.lengths.max()),
        truncated=train.truncated,
        max_length=settings.max_length,
        weights=os.fspath(settings.weights),
        parameters=model.count_params(),
        dtype=settings.dtype,
        device=_device(),
        epochs=settings.epochs,
        steps_per_epoch=steps,
    )


def _device() -> str:
    devices = keras.distribution.list_devices()
    if all(device.startswith("cpu") for device in devices):
        return f"{os.cpu_count()} CPU cores"
    return ", ".join(devices)


def _write_records(
    folder: Path,
    settings: FinetuneSettings,
    files: TrainingFiles,
    result: FinetuneResult,
    options: TaskOptions,
) -> None:
    """Writes `training.json`, `metrics.json` and `history.json`."""
    version = {"format_version": FORMAT_VERSION}
    training = {
        "task": settings.kind.name,
        "layout": settings.inputs.layout,
        "options": dataclasses.asdict(options),
        "max_length": settings.max_length,
        "pairs": files.pairs,
        "columns": getattr(files.train.examples, "columns", Columns())._asdict(),
        "labels": files.train.counts,
        "dev_labels": files.dev.counts,
        "best_epoch": result.best_epoch,
        "metric": result.metric,
        "score": result.score,
        "seconds": result.seconds,
        "trials": [dataclasses.asdict(trial) for trial in result.trials],
        "settings": settings.to_dict(),
        "versions": {"keras_bert_impl": __version__, "keras": keras.__version__},
    }
    write_json(folder / RUN_FILE, version | training)
    write_json(folder / METRICS_FILE, version | {"epoch": result.best_epoch, "dev": result.dev})
    epochs = [dataclasses.asdict(epoch) for epoch in result.history]
    write_json(folder / HISTORY_FILE, version | {"epochs": epochs})


def _write_dev(folder: Path, dev: DevSet, model: keras.Model, batch_size: int) -> None:
    """Writes `dev_predictions.jsonl`, and `errors.tsv` with what is wrong of them."""
    outputs = dev.task.outputs(model, dev.encoded, 2 * batch_size)
    found = dev.task.predictions(outputs, dev.encoded, dev.labels, dev.options)
    lines = (json.dumps(x, ensure_ascii=False) for x in dev.task.json_lines(dev.examples, found))
    (folder / PREDICTIONS_FILE).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    write_errors(folder / ERRORS_FILE, dev.task.errors(dev.examples, found))
