"""Words' logits, the best allowed tags, and entities with their places in the text."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from keras_bert_impl.data.tagged_json import split_words
from keras_bert_impl.data.windows import encode_words
from keras_bert_impl.decoding.entities import decode_tags, find_entities, predict_word_logits
from keras_bert_impl.models import BertTokenClassifier
from keras_bert_impl.text.tag_schemes import transitions
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.checks import CONFIG

IOB2 = ["O", "B-X", "I-X", "B-Y", "I-Y"]


@pytest.mark.parametrize("labels", [IOB2, ["O", "B-X", "I-X", "E-X", "S-X"]])
def test_viterbi_equals_trying_every_sequence(labels):
    lengths = [3, 0, 1, 5, 2, 4]
    logits = np.random.default_rng(0).normal(size=(15, 5)) * 2
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    rules = transitions(labels)
    found = decode_tags(logits, lengths, labels)
    start = 0
    for length, tags, chances in zip(lengths, found.tags, found.probabilities, strict=True):
        scores = log_probabilities[start : start + length]
        start += length
        allowed = [
            path
            for path in itertools.product(range(5), repeat=length)
            if not path
            or (
                rules.first[path[0]]
                and rules.last[path[-1]]
                and all(rules.next[a, b] for a, b in itertools.pairwise(path))
            )
        ]
        best = max(allowed, key=lambda path: sum(scores[i, k] for i, k in enumerate(path)))
        assert tags == [labels[k] for k in best]
        np.testing.assert_allclose(chances, [np.exp(scores[i, k]) for i, k in enumerate(best)])


def test_unconstrained_and_plain_tags_are_the_best_of_each_word():
    logits = np.array([[0, 0, 9, 0, 0], [9, 0, 0, 0, 0]])
    assert decode_tags(logits, [2], IOB2, constrained=False).tags == [["I-X", "O"]]
    assert decode_tags(logits, [2], IOB2).tags != [["I-X", "O"]]
    assert decode_tags(logits, [1, 1], list("abcde")).tags == [["c"], ["a"]]


def test_words_do_not_depend_on_batches_or_neighbours():
    letters = "abcdefghijk"
    vocab = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{c}" for c in letters)])
    tokenizer = BertTokenizer(vocab)
    model = BertTokenClassifier(CONFIG, 5)
    choose = np.random.default_rng(0)
    sentences = [
        ["".join(choose.choice(list(letters), choose.integers(1, 4))) for _ in range(n)]
        for n in (3, 40, 1, 0, 7)
    ]
    windows = encode_words(tokenizer, sentences, max_length=16)
    whole = predict_word_logits(model, windows, batch_size=64)
    assert whole.shape == (51, 5)
    for batch_size in (1, 3):
        found = predict_word_logits(model, windows, batch_size=batch_size)
        np.testing.assert_allclose(found, whole, atol=1e-5)
    alone = encode_words(tokenizer, sentences[:1], max_length=16)
    np.testing.assert_allclose(predict_word_logits(model, alone), whole[:3], atol=1e-5)


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("José  lives in\tSão Paulo.", "B-PER O O B-LOC I-LOC O", ["José", "São Paulo"]),
        ("😀我在北京大学👍🏽", "O O O B-LOC I-LOC I-LOC I-LOC O", ["北京大学"]),
        ("e\u0301a\u200bb\u00a0c", "B-X I-X", ["e\u0301a\u200bb\u00a0c"]),
    ],
)
def test_places_in_raw_text(text, tags, expected):
    _, offsets = split_words(text)
    found = find_entities(text, offsets, tags.split())
    assert [entity.text for entity in found] == expected
    assert all(entity.text == text[entity.start : entity.end] for entity in found)


def test_score_is_the_mean_probability():
    tags, chances = ["O", "B-PER", "I-PER"], [0.1, 0.5, 1.0]
    [entity] = find_entities("a b c", [(0, 1), (2, 3), (4, 5)], tags, chances)
    assert entity == ("PER", "b c", 2, 5, 1, 3, 0.75)
