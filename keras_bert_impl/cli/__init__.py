"""The command ``keras-bert``."""

from keras_bert_impl.cli.commands import app, main

__all__ = ["app", "main"]
