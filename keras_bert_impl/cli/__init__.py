"""The command ``keras-bert``."""

from keras_bert_impl.cli import analysing as _analysing  # noqa: F401 (adds its commands)
from keras_bert_impl.cli import pretraining as _pretraining  # noqa: F401 (adds its commands)
from keras_bert_impl.cli.commands import app, main

__all__ = ["app", "main"]
