"""Tensors to tensors: the weights and the mathematics of BERT, in `keras.ops`."""

from keras_bert_impl.layers.attention import SelfAttention, attention_bias
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.embeddings import (
    BertEmbeddings,
    PositionEmbedding,
    SegmentEmbedding,
    sinusoidal_table,
)
from keras_bert_impl.layers.heads import ClassificationHead, MaskedLMHead, Pooler
from keras_bert_impl.layers.normalization import LayerNorm
from keras_bert_impl.layers.scalar_mix import ScalarMix
from keras_bert_impl.layers.transformer import EncoderBlock, activate

__all__ = [
    "BertEmbeddings",
    "ClassificationHead",
    "Dropout",
    "EncoderBlock",
    "LayerNorm",
    "MaskedLMHead",
    "Pooler",
    "PositionEmbedding",
    "ScalarMix",
    "SegmentEmbedding",
    "SelfAttention",
    "activate",
    "attention_bias",
    "sinusoidal_table",
]
