"""Sentence vectors, cosines and the next sentence against sums written out."""

from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from keras_bert_impl.analysis import (
    cosine_similarity,
    next_sentence_probability,
    sentence_embeddings,
)
from keras_bert_impl.models import BertClassifier, BertPretrainer
from tests.analysis.test_features import CONFIG, TEXTS, TOKENIZER, encoder, states_of
from tests.reference_bert import randomise

__all__ = ["encoder"]


@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ("mean", lambda x: x.mean(axis=0)),
        ("cls", lambda x: x[0]),
        ("max", lambda x: x.max(axis=0)),
    ],
)
def test_pooling(encoder, pooling, pooled):
    expected = pooled(states_of(encoder, "[CLS] the play ##ing man . [SEP]")[-1])
    raw = sentence_embeddings(encoder, TOKENIZER, TEXTS, pooling=pooling, normalize=False)
    assert raw.shape == (4, 8)
    np.testing.assert_allclose(raw[0], expected, atol=1e-5)
    unit = sentence_embeddings(encoder, TOKENIZER, TEXTS, pooling=pooling)
    np.testing.assert_allclose(unit, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_padding_does_not_matter(encoder, pooling):
    together = sentence_embeddings(encoder, TOKENIZER, TEXTS, pooling=pooling)
    alone = [sentence_embeddings(encoder, TOKENIZER, text, pooling=pooling)[0] for text in TEXTS]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert sentence_embeddings(encoder, TOKENIZER, []).shape == (0, 8)


def test_unknown_pooling(encoder):
    with pytest.raises(ValueError, match="pooling must be one of mean, cls, max, got 'sum'"):
        sentence_embeddings(encoder, TOKENIZER, "the", pooling="sum")


def test_cosines():
    first = [[3.0, 4.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]
    second = [[6.0, 8.0], [0.0, 9.0], [-5.0, 0.0], [1.0, 1.0]]
    assert cosine_similarity(first, second) == pytest.approx([1, 0, -1, 0])
    with pytest.raises(ValueError, match=r"one shape, got \(4, 2\) and \(3, 2\)"):
        cosine_similarity(first, second[:3])


@pytest.fixture(scope="module")
def pretrainer():
    model = BertPretrainer(CONFIG)
    randomise(model, seed=4)
    return model


def test_next_sentence_is_label_0(pretrainer):
    firsts, seconds = ["the man went", "paris", "中国"], ["to the store.", "played", "北京."]
    batch = TOKENIZER(firsts, seconds)
    logits = ops.convert_to_numpy(pretrainer(batch)["next_sentence"])
    expected = np.exp(logits[:, 0]) / np.exp(logits).sum(axis=1)
    found = next_sentence_probability(pretrainer, TOKENIZER, firsts, seconds, batch_size=2)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    alone = next_sentence_probability(pretrainer, TOKENIZER, "paris", "played")
    np.testing.assert_allclose(alone, found[1:2], atol=1e-5)
    assert next_sentence_probability(pretrainer, TOKENIZER, [], []).shape == (0,)


@pytest.mark.parametrize(
    ("firsts", "seconds", "message"),
    [
        (["the", "man"], ["to"], r"seconds: expected one a text \(2\), got 1"),
        (["the", " "], ["to", "to"], "the first text of pair 2 is empty"),
        ("the", "", "the second text of pair 1 is empty"),
    ],
)
def test_pairs_are_checked(pretrainer, firsts, seconds, message):
    with pytest.raises(ValueError, match=message):
        next_sentence_probability(pretrainer, TOKENIZER, firsts, seconds)


def test_models_without_the_head():
    with pytest.raises(ValueError, match=r"takes a BertPretrainer.*got BertClassifier"):
        next_sentence_probability(BertClassifier(CONFIG, 2), TOKENIZER, "the", "man")
    with pytest.raises(ValueError, match="has no next-sentence head"):
        next_sentence_probability(BertPretrainer(CONFIG, False), TOKENIZER, "the", "man")
