"""Tags and entities that a graph finds against those that are found for whole files."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.decoding.entities import decode_tags, find_entities
from keras_bert_impl.decoding.graph_tags import best_tags, entities_of_tags

SCHEMES = {
    "IOB2": ["B-X", "B-Y", "I-X", "I-Y", "O"],
    "IOB1": ["I-X", "I-Y", "B-X", "O"],
    "BIOES": ["B-X", "E-X", "I-X", "O", "S-X", "S-Y"],
    "segmentation": ["B", "E", "M", "S"],
    "plain": ["NN", "VB", "DT"],
}
LENGTHS = [3, 0, 1, 25, 2, 0, 7]
SPLITS = np.concatenate([[0], np.cumsum(LENGTHS)])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("decimals", [0, 1, 6])  # few different values, so that many are equal
def test_tags_and_entities_are_those_of_predict(scheme, decimals):
    labels = SCHEMES[scheme]
    graph = tf.function(lambda logits: best_tags(logits, tf.constant(SPLITS), labels))
    for seed in range(20):
        logits = np.random.default_rng(seed).normal(size=(sum(LENGTHS), len(labels)))
        logits = (logits * 1.5).round(decimals).astype(np.float32)
        expected = decode_tags(logits, LENGTHS, labels)
        tags, chances = graph(logits)
        names = [labels[tag] for tag in tags.numpy()]
        assert names == [tag for row in expected.tags for tag in row]
        wanted = [chance for row in expected.probabilities for chance in row]
        np.testing.assert_allclose(chances, wanted, rtol=1e-12)
        check_entities(tags, chances, labels, expected)


def check_entities(tags, chances, labels, expected):
    found = entities_of_tags(tags, chances, tf.constant(SPLITS), labels)
    wanted = []
    for row, (names, scores) in enumerate(zip(*expected, strict=True)):
        base, places = SPLITS[row], [(k, k + 1) for k in range(len(names))]
        for one in find_entities("x" * len(names), places, names, scores):
            words = (base + one.first_word, base + one.last_word)
            wanted.append((row, *words, one.type.encode(), one.score))
    rows = list(zip(*(column.numpy().tolist() for column in found), strict=True))
    assert [row[:4] for row in rows] == [row[:4] for row in wanted]
    np.testing.assert_allclose([row[4] for row in rows], [row[4] for row in wanted], rtol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_any_tags_are_read_as_predict_reads_them(scheme):
    """Also sequences that the scheme does not allow."""
    labels = SCHEMES[scheme]
    for seed in range(5):
        choose = np.random.default_rng(seed)
        tags = choose.integers(0, len(labels), sum(LENGTHS)).astype(np.int32)
        chances = choose.random(len(tags))
        parts = [
            [list(part) for part in np.split(values, SPLITS[1:-1])]
            for values in (np.array(labels, object)[tags], chances)
        ]
        check_entities(tf.constant(tags), tf.constant(chances), labels, parts)


@pytest.mark.parametrize("splits", [[0], [0, 0, 0]])
def test_no_words(splits):
    labels, splits = SCHEMES["IOB2"], tf.constant(splits, tf.int64)
    tags, chances = best_tags(tf.zeros([0, len(labels)]), splits, labels)
    assert tags.shape == chances.shape == [0]
    assert entities_of_tags(tags, chances, splits, labels).types.shape == [0]
