"""Layers wired together."""

from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretraining import BertPretrainer
from keras_bert_impl.models.span_predictor import BertSpanPredictor
from keras_bert_impl.models.token_classifier import BertTokenClassifier

__all__ = [
    "BertClassifier",
    "BertEncoder",
    "BertMultipleChoice",
    "BertPretrainer",
    "BertSpanPredictor",
    "BertTokenClassifier",
]
