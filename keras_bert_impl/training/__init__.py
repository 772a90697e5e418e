"""The recipe: schedule and optimizer as BERT used them."""

from keras_bert_impl.training.optimizers import AdamW, WarmupLinearDecay

__all__ = ["AdamW", "WarmupLinearDecay"]
