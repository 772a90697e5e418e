"""BERT for Keras 3: from raw text to a served classifier.

Names are imported on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = {
    "AdamW": "training",
    "BertClassifier": "models",
    "BertConfig": "config",
    "BertEncoder": "models",
    "BertMultipleChoice": "models",
    "BertPretrainer": "models",
    "BertSpanPredictor": "models",
    "BertTokenClassifier": "models",
    "BertTokenizer": "text.tokenizer",
    "Lamb": "training",
    "Vocab": "text.vocab",
    "WarmupLinearDecay": "training",
    "bucketed_batches": "data.batches",
    "fill_mask": "analysis",
    "generate": "data.generation",
    "learn_vocab": "text.vocab_learning",
    "load": "jobs",
    "load_model": "training",
    "open_shards": "data.shards",
    "pretraining_batches": "data.pretraining_batches",
    "read_documents": "data.corpus",
    "read_labelled": "data.readers",
    "read_questions": "data.question_files",
    "read_tagged": "data.tagging",
    "row_batches": "data.batches",
}

__all__ = [*_MODULES, "__version__"]

if TYPE_CHECKING:
    from keras_bert_impl.analysis import fill_mask as fill_mask
    from keras_bert_impl.config import BertConfig as BertConfig
    from keras_bert_impl.data.batches import bucketed_batches as bucketed_batches
    from keras_bert_impl.data.batches import row_batches as row_batches
    from keras_bert_impl.data.corpus import read_documents as read_documents
    from keras_bert_impl.data.generation import generate as generate
    from keras_bert_impl.data.pretraining_batches import pretraining_batches as pretraining_batches
    from keras_bert_impl.data.question_files import read_questions as read_questions
    from keras_bert_impl.data.readers import read_labelled as read_labelled
    from keras_bert_impl.data.shards import open_shards as open_shards
    from keras_bert_impl.data.tagging import read_tagged as read_tagged
    from keras_bert_impl.jobs import load as load
    from keras_bert_impl.models import BertClassifier as BertClassifier
    from keras_bert_impl.models import BertEncoder as BertEncoder
    from keras_bert_impl.models import BertMultipleChoice as BertMultipleChoice
    from keras_bert_impl.models import BertPretrainer as BertPretrainer
    from keras_bert_impl.models import BertSpanPredictor as BertSpanPredictor
    from keras_bert_impl.models import BertTokenClassifier as BertTokenClassifier
    from keras_bert_impl.text.tokenizer import BertTokenizer as BertTokenizer
    from keras_bert_impl.text.vocab import Vocab as Vocab
    from keras_bert_impl.text.vocab_learning import learn_vocab as learn_vocab
    from keras_bert_impl.training import AdamW as AdamW
    from keras_bert_impl.training import Lamb as Lamb
    from keras_bert_impl.training import WarmupLinearDecay as WarmupLinearDecay
    from keras_bert_impl.training import load_model as load_model


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
