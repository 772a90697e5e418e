"""Masked language modelling: which pieces are predicted, and what stands in their place."""

from keras_bert_impl.data.masking.dynamic import mask_batch
from keras_bert_impl.data.masking.rules import Masking, mask_id_of
from keras_bert_impl.data.masking.static import MaskedExamples, mask_examples

__all__ = ["MaskedExamples", "Masking", "mask_batch", "mask_examples", "mask_id_of"]
