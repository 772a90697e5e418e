"""What fine-tuning writes beside the model: settings, scores, predictions, and where."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import keras

from keras_bert_impl import __version__
from keras_bert_impl.checkpoints.store import CONFIG_FILE
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.jobs.preparation import TrainingFiles, write_errors, write_json
from keras_bert_impl.jobs.progress import DevSet
from keras_bert_impl.jobs.runs import FORMAT_VERSION, RUN_FILE
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.sources import storage
from keras_bert_impl.tasks import TaskOptions

__all__ = ["run_folder", "write_dev", "write_records"]

METRICS_FILE = "metrics.json"
HISTORY_FILE = "history.json"
PREDICTIONS_FILE = "dev_predictions.jsonl"
ERRORS_FILE = "errors.tsv"


@contextlib.contextmanager
def run_folder(output: str, is_chief: bool) -> Iterator[Path]:
    """Yields a local folder whose files become those of `output`, if the block succeeds.

    Of several machines only the chief writes; the others get a folder that is thrown away.

    Raises:
        FileExistsError: `output` holds something.
        OSError: it cannot be written.
    """
    if not is_chief:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    if storage.is_remote(output) and storage.names(output):
        raise FileExistsError(f"output folder {output} is not empty: name another folder")
    with storage.new_folder(output, last=CONFIG_FILE) as folder:
        yield folder


def write_records(
    folder: Path,
    settings: FinetuneSettings,
    files: TrainingFiles,
    result,
    options: TaskOptions,
) -> None:
    """Writes `training.json`, `metrics.json` and `history.json` of a `FinetuneResult`."""
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


def write_dev(folder: Path, dev: DevSet, model, batch_size: int) -> None:
    """Writes `dev_predictions.jsonl`, and `errors.tsv` with what is wrong of them.

    Args:
        model: whatever predicts as the trained model.
    """
    outputs = dev.task.outputs(model, dev.encoded, 2 * batch_size)
    found = dev.task.predictions(outputs, dev.encoded, dev.labels, dev.options)
    lines = (json.dumps(x, ensure_ascii=False) for x in dev.task.json_lines(dev.examples, found))
    (folder / PREDICTIONS_FILE).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    write_errors(folder / ERRORS_FILE, dev.task.errors(dev.examples, found))
