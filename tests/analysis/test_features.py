"""Contextual vectors against the encoder's own hidden states; words; company; what is refused."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from keras import ops

from keras_bert_impl.analysis import LAYER_CHOICES, contextual_vectors
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertEncoder
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.reference_bert import randomise

WORDS = "the man went to store play ##ing ##ed paris 中 国 北 京 . sep [ ]"
VOCAB = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()])
TOKENIZER = BertTokenizer(VOCAB)
CONFIG = BertConfig(
    vocab_size=len(VOCAB),
    hidden_size=8,
    num_hidden_layers=5,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=12,
)
TEXTS = ["The  playing man.", "", "中国 played", "[SEP] the store"]


@pytest.fixture(scope="module")
def encoder():
    encoder = BertEncoder(CONFIG)
    randomise(encoder, seed=3)
    return encoder


def states_of(encoder, tokens: str) -> list[np.ndarray]:
    ids = np.array([[VOCAB.token_to_id(token) for token in tokens.split()]], "int32")
    states = encoder({"token_ids": ids}, return_hidden_states=True)["hidden_states"]
    return [ops.convert_to_numpy(state)[0] for state in states]


def chosen(states, layers: str) -> np.ndarray:
    return {
        "embeddings": lambda: states[0],
        "second-to-last": lambda: states[4],
        "last": lambda: states[5],
        "sum-last-4": lambda: states[2] + states[3] + states[4] + states[5],
        "concat-last-4": lambda: np.concatenate(states[2:], axis=-1),
        "sum-all": lambda: states[1] + states[2] + states[3] + states[4] + states[5],
    }[layers]()


@pytest.mark.parametrize("layers", LAYER_CHOICES)
def test_vectors_are_the_encoders(encoder, layers):
    tokens = "[CLS] the play ##ing man . [SEP]"
    found = contextual_vectors(encoder, TOKENIZER, TEXTS, layers=layers, batch_size=3)
    assert [len(text.tokens) for text in found] == [7, 2, 6, 7]
    assert found[0].tokens == tokens.split()
    assert found[0].starts.tolist() == [0, 0, 5, 9, 13, 16, 0]
    assert found[0].ends.tolist() == [0, 3, 9, 12, 16, 17, 0]
    expected = chosen(states_of(encoder, tokens), layers)
    assert found[0].vectors.dtype == np.float32
    np.testing.assert_allclose(found[0].vectors, expected, atol=1e-5)


def test_a_word_has_the_vector_of_its_first_piece(encoder):
    by_token = contextual_vectors(encoder, TOKENIZER, TEXTS)
    by_word = contextual_vectors(encoder, TOKENIZER, TEXTS, per="word")
    assert [text.tokens for text in by_word] == [
        ["The", "playing", "man", "."],
        [],
        ["中", "国", "played"],
        ["[", "SEP", "]", "the", "store"],
    ]
    np.testing.assert_array_equal(by_word[0].vectors, by_token[0].vectors[[1, 2, 4, 5]])
    assert by_word[1].vectors.shape == (0, 8)
    for text, words in zip(TEXTS, by_word, strict=True):
        spans = zip(words.starts, words.ends, strict=True)
        assert words.tokens == [text[a:b] for a, b in spans]


def test_company_and_batches_change_nothing(encoder):
    together = contextual_vectors(encoder, TOKENIZER, TEXTS, batch_size=2)
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = contextual_vectors(encoder, TOKENIZER, text)
        np.testing.assert_allclose(alone.vectors, found.vectors, atol=1e-5)
    assert contextual_vectors(encoder, TOKENIZER, []) == []


def test_a_pre_norm_encoder_ends_with_its_norm():
    encoder = BertEncoder(CONFIG.replace(norm_position="pre"))
    ids = np.array([[VOCAB.cls_id, VOCAB.sep_id]], "int32")
    expected = ops.convert_to_numpy(encoder({"token_ids": ids})["sequence_output"])[0]
    (found,) = contextual_vectors(encoder, TOKENIZER, "")
    np.testing.assert_allclose(found.vectors, expected, atol=1e-5)


def test_long_texts_are_cut_and_counted(encoder, caplog):
    texts = ["the " * 11, "the " * 10, "the man " * 20]
    with caplog.at_level(logging.WARNING, "keras_bert_impl"):
        found = contextual_vectors(encoder, TOKENIZER, texts)
    assert [len(text.tokens) for text in found] == [12, 12, 12]
    assert "2 of 3 texts" in caplog.text
    assert [len(text.tokens) for text in contextual_vectors(encoder, TOKENIZER, texts, per="word")]
    with pytest.raises(ValueError, match="max_length=13 is more than the 12 the model takes"):
        contextual_vectors(encoder, TOKENIZER, texts, max_length=13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": "first"}, "layers must be one of embeddings, .*sum-all, got 'first'"),
        ({"per": "piece"}, "per must be one of token, word, got 'piece'"),
        ({"texts": ["a", 3]}, "texts must be strings, element 1 is int"),
    ],
)
def test_wrong_options(encoder, options, message):
    with pytest.raises(ValueError, match=message):
        contextual_vectors(encoder, TOKENIZER, **{"texts": "the", **options})


def test_models_that_do_not_fit(encoder):
    shallow = BertEncoder(CONFIG.replace(num_hidden_layers=2))
    with pytest.raises(ValueError, match="layers='sum-last-4' takes 4 layers, the model has 2"):
        contextual_vectors(shallow, TOKENIZER, "the", layers="sum-last-4")
    larger = BertTokenizer(Vocab([*VOCAB.tokens, "a"]))
    with pytest.raises(ValueError, match="has 23 tokens, the model's vocab_size is 22"):
        contextual_vectors(encoder, larger, "the")
