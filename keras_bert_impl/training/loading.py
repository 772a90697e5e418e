"""Loads `.keras` files."""

from __future__ import annotations

import os

import keras

# Keras finds a class by name only once its module is imported.
from keras_bert_impl import models as models
from keras_bert_impl.training import lamb as lamb
from keras_bert_impl.training import optimizers as optimizers

__all__ = ["load_model"]


def load_model(path: str | os.PathLike, **kwargs) -> keras.Model:
    """`keras.models.load_model` with every class of this package known to Keras.

    Args:
        path: a `.keras` file.
        **kwargs: as `keras.models.load_model`.

    Raises:
        ValueError: as `keras.models.load_model`.
    """
    return keras.models.load_model(path, **kwargs)
