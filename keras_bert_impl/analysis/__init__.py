"""What a trained model knows and how it sees texts: words for masks, vectors, attention."""

from keras_bert_impl.analysis.attention import (
    Attention,
    attention,
    write_attention_page,
    write_heatmap,
)
from keras_bert_impl.analysis.features import (
    LAYER_CHOICES,
    TextVectors,
    contextual_vectors,
    each_text_vectors,
)
from keras_bert_impl.analysis.fill_mask import Candidate, fill_mask
from keras_bert_impl.analysis.similarity import (
    cosine_similarity,
    next_sentence_probability,
    sentence_embeddings,
)

__all__ = [
    "LAYER_CHOICES",
    "Attention",
    "Candidate",
    "TextVectors",
    "attention",
    "contextual_vectors",
    "cosine_similarity",
    "each_text_vectors",
    "fill_mask",
    "next_sentence_probability",
    "sentence_embeddings",
    "write_attention_page",
    "write_heatmap",
]
