"""Layers wired together."""

from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder

__all__ = ["BertClassifier", "BertEncoder"]
