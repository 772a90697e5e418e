"""What a trained model knows: words for masks."""

from keras_bert_impl.analysis.fill_mask import Candidate, fill_mask

__all__ = ["Candidate", "fill_mask"]
