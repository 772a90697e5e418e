"""Layers wired together."""

import os

import keras

from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder

__all__ = ["BertClassifier", "BertEncoder", "load_model"]


def load_model(path: str | os.PathLike, **kwargs) -> keras.Model:
    """`keras.models.load_model` with every class of this package known to Keras."""
    return keras.models.load_model(path, **kwargs)
