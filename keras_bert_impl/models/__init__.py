"""Layers wired together."""

from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretraining import BertPretrainer
from keras_bert_impl.models.span_predictor import BertSpanPredictor

__all__ = ["BertClassifier", "BertEncoder", "BertPretrainer", "BertSpanPredictor"]
