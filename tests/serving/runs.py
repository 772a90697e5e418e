"""A random run of every kind of task, small enough to export in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.data.columns import Columns
from keras_bert_impl.jobs.runs import ChoiceRun, QuestionRun, Run, TaggingRun, TextRun
from keras_bert_impl.models import (
    BertClassifier,
    BertMultipleChoice,
    BertSpanPredictor,
    BertTokenClassifier,
)
from keras_bert_impl.tasks import TASKS, TaskOptions
from tests.serving.tiny import CONFIG, MAX_LENGTH, tokenizer

TAGS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
TOPICS = ("film", "gut 👍", "plot")
# Windows that are short enough for several to a text.
LENGTHS = {"max_length": MAX_LENGTH, "doc_stride": 4, "max_query_length": 5}


def make_run(kind: str, config: BertConfig = CONFIG, tokens=None, **options) -> Run:
    """A run that was never trained; `options` are those of its task."""
    keras.utils.set_random_seed(11)
    labels: tuple[str, ...] = ()
    if kind == "regression":
        make, model = TextRun, BertClassifier(config, 1, problem=kind)
    elif kind == "multi-label":
        make, labels = TextRun, TOPICS
        model = BertClassifier(config, len(labels), problem="multi_label", labels=labels)
    elif kind == "multiple-choice":
        make, model = ChoiceRun, BertMultipleChoice(config)
    elif kind == "token-classification":
        make, labels = TaggingRun, TAGS
        model = BertTokenClassifier(config, len(labels), labels=labels)
    else:
        make, model = QuestionRun, BertSpanPredictor(config)
    return make(
        model=model,
        tokenizer=tokens or tokenizer(),
        labels=labels,
        pairs=kind == "regression",
        columns=Columns(),
        folder=Path("tiny"),
        task=TASKS[kind],
        options=TaskOptions(**{**LENGTHS, **options}),
    )


def run_fresh(script: str, *arguments) -> dict:
    """What a script prints last, as JSON, in a fresh process on the CPU."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
