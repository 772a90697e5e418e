"""Title: Sentence similarity with a pretrained encoder.

Description: mean-pooled sentence vectors from `BertEncoder`, compared by their cosine.

    python examples/sentence_similarity.py
    python examples/sentence_similarity.py "How old are you?" "What is your age?"
"""

from __future__ import annotations

import sys

import keras

import keras_bert_impl as kb

# The encoder's `sequence_output` carries the padding mask, so a stock Keras layer averages the
# real tokens only and a sentence has the same vector alone and beside longer ones.


def sentence_model(weights: str = "minilm") -> keras.Model:
    """Token ids -> one vector of length 1 for each sentence."""
    encoder = kb.BertEncoder.from_pretrained(weights)
    inputs = {
        name: keras.Input([None], dtype="int32", name=name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    tokens = encoder(inputs)["sequence_output"]
    mean = keras.layers.GlobalAveragePooling1D()(tokens)
    return keras.Model(inputs, keras.layers.UnitNormalization()(mean))


def similarity(first: list[str], second: list[str], weights: str = "minilm"):
    """Cosine of each pair of sentences, float32 [N] in [-1, 1]."""
    tokenizer = kb.BertTokenizer.from_pretrained(weights)
    model = sentence_model(weights)
    vectors = [
        model.predict(kb.bucketed_batches(tokenizer, texts), verbose=0) for texts in (first, second)
    ]
    return (vectors[0] * vectors[1]).sum(axis=-1)


if __name__ == "__main__":
    sentences = sys.argv[1:3] or ["A man is playing a guitar.", "Someone plays an instrument."]
    print(f"{similarity(*[[text] for text in sentences])[0]:.3f}")
