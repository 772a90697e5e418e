"""Title: Sentence similarity with a pretrained encoder.

Description: mean-pooled sentence vectors from `BertEncoder`, compared by their cosine.

    python examples/sentence_similarity.py
    python examples/sentence_similarity.py "How old are you?" "What is your age?"
"""

from __future__ import annotations

import sys

import keras_bert_impl as kb
from keras_bert_impl.analysis import cosine_similarity, sentence_embeddings

# Only real tokens are averaged: a sentence has the same vector alone and beside longer ones.


def similarity(first: list[str], second: list[str], weights: str = "minilm"):
    """Cosine of each pair of sentences, float32 [N] in [-1, 1]."""
    tokenizer = kb.BertTokenizer.from_pretrained(weights)
    encoder = kb.BertEncoder.from_pretrained(weights)
    vectors = [sentence_embeddings(encoder, tokenizer, texts) for texts in (first, second)]
    return cosine_similarity(*vectors)


if __name__ == "__main__":
    sentences = sys.argv[1:3] or ["A man is playing a guitar.", "Someone plays an instrument."]
    print(f"{similarity(*[[text] for text in sentences])[0]:.3f}")
