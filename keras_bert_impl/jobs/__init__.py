"""What each command does, as functions that return objects and print nothing."""

from __future__ import annotations

from keras_bert_impl.jobs.evaluation import Evaluation, evaluate
from keras_bert_impl.jobs.exporting import export_run, verify_export
from keras_bert_impl.jobs.finetuning import FinetuneResult, finetune
from keras_bert_impl.jobs.inputs import InputOptions
from keras_bert_impl.jobs.prediction import predict_rows
from keras_bert_impl.jobs.quick_start import QuickstartResult, quickstart
from keras_bert_impl.jobs.runs import Prediction, Run, load
from keras_bert_impl.jobs.settings import FinetuneSettings

__all__ = [
    "Evaluation",
    "FinetuneResult",
    "FinetuneSettings",
    "InputOptions",
    "Prediction",
    "QuickstartResult",
    "Run",
    "evaluate",
    "export_run",
    "finetune",
    "load",
    "predict_rows",
    "quickstart",
    "verify_export",
]
