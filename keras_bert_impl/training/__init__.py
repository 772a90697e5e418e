"""The recipe: schedule and optimizer as BERT used them; loading of what was trained."""

from keras_bert_impl.training.lamb import Lamb
from keras_bert_impl.training.loading import load_model
from keras_bert_impl.training.optimizers import AdamW, WarmupLinearDecay

__all__ = ["AdamW", "Lamb", "WarmupLinearDecay", "load_model"]
