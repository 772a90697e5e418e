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
    "BertPretrainer": "models",
    "BertTokenizer": "text.tokenizer",
    "Lamb": "training",
    "Vocab": "text.vocab",
    "WarmupLinearDecay": "training",
    "bucketed_batches": "data.batches",
    "fill_mask": "analysis",
    "load": "jobs",
    "load_model": "training",
    "read_labelled": "data.readers",
}

__all__ = [*_MODULES, "__version__"]

if TYPE_CHECKING:
    from keras_bert_impl.analysis import fill_mask as fill_mask
    from keras_bert_impl.config import BertConfig as BertConfig
    from keras_bert_impl.data.batches import bucketed_batches as bucketed_batches
    from keras_bert_impl.data.readers import read_labelled as read_labelled
    from keras_bert_impl.jobs import load as load
    from keras_bert_impl.models import BertClassifier as BertClassifier
    from keras_bert_impl.models import BertEncoder as BertEncoder
    from keras_bert_impl.models import BertPretrainer as BertPretrainer
    from keras_bert_impl.text.tokenizer import BertTokenizer as BertTokenizer
    from keras_bert_impl.text.vocab import Vocab as Vocab
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
