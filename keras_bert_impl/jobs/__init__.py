"""What each command does, as functions that return objects and print nothing."""

from __future__ import annotations

from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.masking import Masking
from keras_bert_impl.jobs.analysing import (
    AttentionView,
    PairScores,
    TextSimilarities,
    WrittenFeatures,
    compare_pairs,
    compare_texts,
    next_sentences,
    read_pairs,
    read_texts,
    view_attention,
    write_features,
)
from keras_bert_impl.jobs.corpora import (
    LearnedVocabulary,
    MadeShards,
    make_shards,
    make_vocabulary,
)
from keras_bert_impl.jobs.evaluation import Evaluation, evaluate
from keras_bert_impl.jobs.exporting import export_run, verify_export
from keras_bert_impl.jobs.filling import FilledTexts, fill_texts
from keras_bert_impl.jobs.finetuning import FinetuneResult, finetune
from keras_bert_impl.jobs.prediction import predict_rows
from keras_bert_impl.jobs.pretraining import PretrainResult, pretrain, settings_to_resume
from keras_bert_impl.jobs.pretraining_settings import PretrainSettings
from keras_bert_impl.jobs.quick_start import QuickstartResult, quickstart
from keras_bert_impl.jobs.runs import Prediction, Run, load
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.tasks.inputs import InputOptions

__all__ = [
    "AttentionView",
    "PairScores",
    "TextSimilarities",
    "WrittenFeatures",
    "compare_pairs",
    "compare_texts",
    "next_sentences",
    "read_pairs",
    "read_texts",
    "view_attention",
    "write_features",
    "make_vocabulary",
    "make_shards",
    "Masking",
    "MadeShards",
    "LearnedVocabulary",
    "ExampleSettings",
    "Evaluation",
    "FilledTexts",
    "FinetuneResult",
    "FinetuneSettings",
    "InputOptions",
    "Prediction",
    "PretrainResult",
    "PretrainSettings",
    "QuickstartResult",
    "Run",
    "evaluate",
    "export_run",
    "fill_texts",
    "finetune",
    "load",
    "predict_rows",
    "pretrain",
    "quickstart",
    "settings_to_resume",
    "verify_export",
]
