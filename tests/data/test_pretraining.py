"""Packing of documents into unmasked examples, against Google's script."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from keras_bert_impl.data.pretraining import (
    pack_examples,
    tokenize_documents,
)
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.data import google_pretraining as google
from tests.data.google_pretraining import CLS, SEP, ConstantRandom, segments

SPECIAL = {"cls_id": CLS, "sep_id": SEP}


def google_words(vocab):
    return list(dict.fromkeys(vocab.tokens))


def sample_documents(shared, tokenizer):
    text = (shared / "data/pretrain_en/google_bert_sample_text.txt").read_text("utf-8")
    documents = [[]]
    for line in text.split("\n"):
        if line.strip():
            documents[-1].append(line.strip())
        else:
            documents.append([])
    return [document for document in documents if document]


@pytest.fixture(scope="module")
def uncased(shared):
    return BertTokenizer(Vocab.load(shared / "data/vocab/bert-base-uncased-vocab.txt"))


@pytest.mark.parametrize("kind", ["plain", "whole_word_mask"])
def test_the_oracle_gives_the_instances_of_googles_script(shared, uncased, kind):
    path = shared / "reference/google_create_pretraining_data_sample.json"
    expected = json.loads(path.read_text("utf-8"))[kind]
    documents = [
        [uncased.tokens(sentence) for sentence in document]
        for document in sample_documents(shared, uncased)
    ]
    instances = google.create_instances(
        documents,
        google_words(uncased.vocab),
        random.Random(12345),
        dupe_factor=5,
        packing={},
        masking={"whole_words": kind == "whole_word_mask"},
    )
    assert sorted(len(instance.tokens) for instance in instances) == expected["lengths"]
    for ours, theirs in zip(instances, expected["instances"], strict=False):
        assert ours.tokens == theirs["tokens"]
        assert ours.first_length == theirs["segment_ids"].count(0)
        assert ours.is_random_next == theirs["is_random_next"]
        assert ours.positions == theirs["masked_lm_positions"]
        assert ours.labels == theirs["masked_lm_labels"]


def test_sentences_of_googles_sample_are_googles_tokens(shared, uncased):
    path = shared / "reference/google_create_pretraining_data_sample.json"
    documents = tokenize_documents(uncased, sample_documents(shared, uncased))
    text = documents.token_ids.tolist()
    compared = 0
    for instance in json.loads(path.read_text("utf-8"))["plain"]["instances"]:
        tokens = list(instance["tokens"])
        for place, label in zip(
            instance["masked_lm_positions"], instance["masked_lm_labels"], strict=True
        ):
            tokens[place] = label
        middle = instance["segment_ids"].count(0)
        for part in (tokens[1 : middle - 1], tokens[middle:-1]):
            ids = [uncased.vocab.token_to_id(token) for token in part]
            assert any(text[i : i + len(ids)] == ids for i in range(len(text) - len(ids) + 1))
            compared += 1
    assert compared == 24


@pytest.mark.parametrize("draw", [0.02, 0.09, 0.3, 0.49, 0.5, 0.7, 0.999])
@pytest.mark.parametrize("max_seq_length", [5, 16, 64])
def test_equal_draws_give_googles_examples(draw, max_seq_length):
    documents = google.random_documents(1, documents=12, sentences=15, tokens=20)
    rng = ConstantRandom(draw)

    def draw_other_document(documents, number, rng):
        other = rng.randint(0, len(documents) - 2)
        return other + (other >= number)

    expected = [
        (a, b, int(is_random))
        for number in range(len(documents))
        for a, b, is_random in google.pack_document(
            documents,
            number,
            rng,
            max_seq_length=max_seq_length,
            draw_other_document=draw_other_document,
        )
    ]
    examples = pack_examples(
        google.as_documents(documents), rng, max_seq_length=max_seq_length, **SPECIAL
    )
    assert segments(examples) == expected


@pytest.fixture(scope="module")
def many():
    """Lengths and labels of more than 50,000 examples, Google's and ours."""
    documents = google.random_documents(2, documents=400, sentences=40, tokens=40)
    tokenized = google.as_documents(documents)
    draws, rng = random.Random(1), np.random.default_rng(1)
    theirs, ours = [], []
    while len(theirs) < 50_000:
        for number in range(len(documents)):
            theirs += [
                (len(a), len(b), int(is_random))
                for a, b, is_random in google.pack_document(documents, number, draws)
            ]
        examples = pack_examples(tokenized, rng, **SPECIAL)
        first = examples.first_lengths - 2
        second = np.diff(examples.starts) - first - 3
        ours.append(np.stack([first, second, examples.is_random_next], axis=1))
    return np.array(theirs), np.concatenate(ours)


def test_lengths_are_distributed_as_googles(many):
    theirs, ours = many
    assert abs(len(ours) / len(theirs) - 1) < 0.01
    for of in (lambda x: x[:, 0] + x[:, 1], lambda x: x[:, 0], lambda x: x[:, 1]):
        counts = [np.bincount(of(lengths), minlength=126) / len(lengths) for lengths in many]
        distance = np.abs(np.cumsum(counts[0]) - np.cumsum(counts[1])).max()
        assert distance < 0.01, distance
    full = [np.mean(lengths[:, 0] + lengths[:, 1] == 125) for lengths in many]
    assert 0.2 < full[0] < 0.95
    assert abs(full[0] - full[1]) < 0.01


def test_as_many_random_next_as_googles(many):
    theirs, ours = many
    assert abs(theirs[:, 2].mean() - ours[:, 2].mean()) < 0.01


def test_half_of_the_next_segments_are_random():
    documents = google.random_documents(3, documents=60, sentences=600, tokens=12)
    tokenized = google.as_documents(documents)
    rng = np.random.default_rng(1)
    labels = []
    while sum(map(len, labels)) < 50_000:
        examples = pack_examples(tokenized, rng, short_seq_prob=0, **SPECIAL)
        labels.append(examples.is_random_next)
    assert abs(np.concatenate(labels).mean() - 0.5) < 0.01


def test_random_next_is_from_another_document_and_true_next_goes_on():
    # Every id occurs once, so that a segment shows where it is from.
    numbers = iter(range(10, 10**6))
    documents = [
        [[next(numbers) for _ in range(length)] for length in (3, 9, 1, 14, 6, 2, 30)]
        for _ in range(9)
    ]
    owner = {id_: n for n, doc in enumerate(documents) for sentence in doc for id_ in sentence}
    examples = pack_examples(
        google.as_documents(documents), np.random.default_rng(5), max_seq_length=200, **SPECIAL
    )
    seen = Counter()
    for a, b, label in segments(examples):
        assert a == list(range(a[0], a[-1] + 1))
        assert b == list(range(b[0], b[-1] + 1))
        assert (owner[a[0]] != owner[b[0]]) == (label == 1)
        if label == 0:
            assert b[0] == a[-1] + 1
        seen[label] += 1
    assert seen[0]
    assert seen[1]
