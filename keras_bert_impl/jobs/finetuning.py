"""Fine-tunes a classifier and writes its run folder."""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from keras_bert_impl import __version__
from keras_bert_impl.data.batches import bucketed_batches
from keras_bert_impl.data.encoding import EncodedTexts
from keras_bert_impl.jobs.preparation import (
    TrainingFiles,
    check_space,
    make_model,
    make_tokenizer,
    read_files,
    write_json,
)
from keras_bert_impl.jobs.progress import EpochDone, KeepBest, OnEvent, Stage, TrainingSummary
from keras_bert_impl.jobs.runs import FORMAT_VERSION, RUN_FILE
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.sources import atomic_folder
from keras_bert_impl.training import AdamW, WarmupLinearDecay

__all__ = ["FinetuneResult", "finetune"]

METRICS_FILE = "metrics.json"
HISTORY_FILE = "history.json"


@dataclass(frozen=True)
class FinetuneResult:
    """What fine-tuning gave; the model itself is in `folder`.

    `dev` is the report of the best epoch, see `keras_bert_impl.metrics.classification_report`.
    """

    folder: str
    labels: list[str]
    best_epoch: int
    metric: str
    score: float
    dev: dict
    history: list[EpochDone]
    seconds: float


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
    keras.utils.set_random_seed(settings.seed)
    with atomic_folder(settings.output) as folder:
        source = "at random" if settings.from_scratch else f"from {settings.weights}"
        on_event(Stage(f"making the model, weights {source}"))
        tokenizer = make_tokenizer(settings)
        model = make_model(settings, tokenizer, files.labels, pairs=files.pairs)
        check_space(folder, model.count_params())
        on_event(Stage("tokenizing"))
        train, dev = (s.encode(tokenizer, settings.max_length) for s in (files.train, files.dev))
        best = _train(settings, model, files, train, dev, on_event)
        on_event(Stage("writing the run"))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        result = FinetuneResult(
            folder=os.fspath(settings.output),
            labels=files.labels,
            best_epoch=best.best_epoch,
            metric=settings.metric,
            score=best.best_score,
            dev=best.best_report,
            history=best.history,
            seconds=round(time.monotonic() - began, 2),
        )
        _write_records(folder, settings, files, result)
    return result


def _train(
    settings: FinetuneSettings,
    model: BertClassifier,
    files: TrainingFiles,
    train: EncodedTexts,
    dev: EncodedTexts,
    on_event: OnEvent,
) -> KeepBest:
    """Trains the model and leaves it with the weights of its best epoch."""
    batches = bucketed_batches(
        None,
        train,
        labels=files.train.classes,
        batch_size=settings.batch_size,
        max_length=settings.max_length,
        shuffle=True,
        seed=settings.seed,
        class_weights=files.class_weights,
    )
    steps = int(batches.cardinality())
    on_event(_summary(settings, model, files, train, steps))
    _compile(model, settings, steps * settings.epochs)
    best = KeepBest(
        dev,
        files.dev.classes,
        files.labels,
        metric=settings.metric,
        patience=settings.patience,
        batch_size=2 * settings.batch_size,
        on_event=on_event,
    )
    model.fit(batches, epochs=settings.epochs, verbose=0, callbacks=[best])
    best.restore()
    return best


def _compile(model: BertClassifier, settings: FinetuneSettings, steps: int) -> None:
    schedule = WarmupLinearDecay(settings.learning_rate, steps, round(settings.warmup * steps))
    # Every batch has a length of its own, for each of which XLA would compile anew.
    model.compile(AdamW(schedule), jit_compile=False)
    # A step that finds no variable to create is traced once and not twice.
    model.optimizer.build(model.trainable_variables)
    model.compute_metrics(None, np.zeros(1, "int32"), np.zeros((1, model.num_classes), "float32"))
    model.reset_metrics()


def _summary(
    settings: FinetuneSettings,
    model: BertClassifier,
    files: TrainingFiles,
    train: EncodedTexts,
    steps: int,
) -> TrainingSummary:
    return TrainingSummary(
        train=files.train.examples.path,
        dev=files.dev.examples.path,
        train_labels=files.train.counts(files.labels),
        dev_labels=files.dev.counts(files.labels),
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
    folder: Path, settings: FinetuneSettings, files: TrainingFiles, result: FinetuneResult
) -> None:
    """Writes `training.json`, `metrics.json` and `history.json`."""
    version = {"format_version": FORMAT_VERSION}
    training = {
        "task": "classification",
        "max_length": settings.max_length,
        "pairs": files.pairs,
        "columns": files.train.examples.columns._asdict(),
        "labels": files.train.counts(files.labels),
        "best_epoch": result.best_epoch,
        "metric": result.metric,
        "score": result.score,
        "seconds": result.seconds,
        "settings": settings.to_dict(),
        "versions": {"keras_bert_impl": __version__, "keras": keras.__version__},
    }
    write_json(folder / RUN_FILE, version | training)
    write_json(folder / METRICS_FILE, version | {"epoch": result.best_epoch, "dev": result.dev})
    epochs = [dataclasses.asdict(epoch) for epoch in result.history]
    write_json(folder / HISTORY_FILE, version | {"epochs": epochs})
