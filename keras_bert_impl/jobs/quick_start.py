"""The whole way once, on data that the package ships: weights, training, export, serving."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import keras_bert_impl
from keras_bert_impl import sources
from keras_bert_impl.jobs.evaluation import evaluate
from keras_bert_impl.jobs.exporting import export_run
from keras_bert_impl.jobs.finetuning import FinetuneResult, finetune
from keras_bert_impl.jobs.progress import OnEvent, Stage
from keras_bert_impl.jobs.runs import load
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.serving.export import curl_line, docker_line
from keras_bert_impl.serving.model_folder import versions

__all__ = ["SENTENCES", "QuickstartResult", "ask_in_fresh_process", "quickstart"]

SENTENCES = (
    "The oysters were so fresh that I ordered a second dozen.",
    "My train was cancelled and the next one leaves at midnight.",
    "Since the update my laptop asks for the password twice.",
)
# Found by trying: see the median over three seeds in the test.
EPOCHS, BATCH_SIZE, LEARNING_RATE, MAX_LENGTH = 4, 16, 1e-4, 64

# Imports nothing but TensorFlow, as a server does; reads sentences from standard input.
_ASK = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
texts = json.load(sys.stdin)
answer = model.signatures["serving_default"](text=tf.constant(texts))
labels = [label.decode() for label in answer["label"].numpy().tolist()]
print(json.dumps({"answers": list(zip(labels, answer["score"].numpy().tolist())),
                  "modules": sorted(sys.modules)}))
"""


@dataclass(frozen=True)
class Answer:
    """What a SavedModel says about a text."""

    text: str
    label: str
    probability: float


@dataclass(frozen=True)
class QuickstartResult:
    """What the quick start gave.

    Attributes:
        training: the run and its scores on the dev file.
        test: report on the test file, see `keras_bert_impl.metrics.classification_report`.
        saved_model: the version folder.
        answers: what the fresh process said about `SENTENCES`.
        docker, curl: commands that serve the SavedModel and ask it.
        seconds: wall time of each part.
    """

    training: FinetuneResult
    test: dict
    saved_model: str
    answers: list[Answer]
    docker: str
    curl: str
    seconds: dict[str, float]


def quickstart(
    weights: str | os.PathLike = "minilm",
    output: str | os.PathLike = "saved_models/quickstart",
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    on_event: OnEvent = lambda event: None,
) -> QuickstartResult:
    """Fine-tunes on the shipped sentences, tests, exports, asks the export in a fresh process.

    The SavedModel is ``OUTPUT/VERSION``, the run folder ``OUTPUT-runs/VERSION``.

    Args:
        weights: a folder, ``hf:ORG/NAME`` or ``minilm``.
        output: folder of the SavedModel's versions; the next one is written.
        epochs: passes over the training file.
        seed: of the classifier's weights, dropout and order.
        on_event: as in `finetune`.

    Raises:
        FileNotFoundError, ValueError, OSError: as `finetune` and `export_run`.
    """
    seconds: dict[str, float] = {}
    output = Path(output)
    runs = output.with_name(f"{output.name}-runs")
    version = max([*versions(output), *versions(runs)], default=0) + 1
    with _timed("weights", seconds):
        on_event(Stage(f"fetching the weights: {weights}"))
        folder = sources.resolve(weights)
    with _timed("fine-tuning", seconds):
        training = finetune(_settings(folder, runs / str(version), epochs, seed), on_event)
    with _timed("test", seconds):
        on_event(Stage("testing"))
        run = load(training.folder)
        test = evaluate(run, _data("test")).report
    with _timed("export", seconds):
        on_event(Stage("exporting, and checking the export in a fresh process"))
        export = export_run(run, output, version=version)
    with _timed("fresh process", seconds):
        on_event(Stage("asking the export in a process that imports only TensorFlow"))
        answers, _ = ask_in_fresh_process(export.path, list(SENTENCES))
    return QuickstartResult(
        training=training,
        test=test,
        saved_model=os.fspath(output / str(version)),
        answers=answers,
        docker=docker_line(output),
        curl=curl_line(output, SENTENCES[:1]),
        seconds=seconds,
    )


def ask_in_fresh_process(
    folder: str | os.PathLike, texts: list[str]
) -> tuple[list[Answer], list[str]]:
    """Labels of texts by a SavedModel, in a process without this package.

    Returns:
        The answers, and the modules that the process had imported.

    Raises:
        ValueError: the process failed; its last line of output is shown.
    """
    done = subprocess.run(
        [sys.executable, "-c", _ASK, os.fspath(folder)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
        # The parent holds the GPU, where there is one.
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise ValueError(f"{folder}: the fresh process failed: {last}")
    content = json.loads(done.stdout.splitlines()[-1])
    pairs = zip(texts, content["answers"], strict=True)
    return [Answer(text, *answer) for text, answer in pairs], content["modules"]


def _settings(weights: Path, run: Path, epochs: int, seed: int) -> FinetuneSettings:
    return FinetuneSettings(
        train=_data("train"),
        dev=_data("dev"),
        output=run,
        weights=weights,
        epochs=epochs,
        batch_size=BATCH_SIZE,
        learning_rate=LEARNING_RATE,
        max_length=MAX_LENGTH,
        seed=seed,
    )


def _data(split: str) -> Path:
    return Path(keras_bert_impl.__file__).parent / "quickstart" / f"{split}.tsv"


@contextmanager
def _timed(name: str, seconds: dict[str, float]) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[name] = round(time.monotonic() - began, 1)
