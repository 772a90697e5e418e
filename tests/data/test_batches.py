from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.batches import (
    PerToken,
    as_one_batch,
    bucketed_batches,
    length_sorted_batches,
    row_batches,
)
from keras_bert_impl.data.encoding import encode_texts
from keras_bert_impl.data.labels import discover_labels, encode_labels
from keras_bert_impl.data.readers import read_labelled
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

CLS, SEP, PAD = 101, 102, 7


class Tokens(NamedTuple):
    ids: tf.RaggedTensor


class CharacterTokenizer:
    """Stands in for `BertTokenizer`: one id a byte, the byte plus 1000."""

    vocab = SimpleNamespace(cls_id=CLS, sep_id=SEP, pad_id=PAD)

    def tokenize(self, texts: tf.Tensor) -> Tokens:
        characters = tf.strings.bytes_split(texts)
        codes = tf.strings.unicode_decode(characters.flat_values, "UTF-8").flat_values
        return Tokens(characters.with_flat_values(codes + 1000))


class WordTokenizer(CharacterTokenizer):
    """One id a word."""

    def tokenize(self, texts: tf.Tensor) -> Tokens:
        words = tf.strings.split(texts)
        codes = tf.strings.to_hash_bucket_fast(words.flat_values, 30000)
        return Tokens(words.with_flat_values(tf.cast(codes, tf.int32)))


def texts_of_many_lengths(number: int, longest: int = 30) -> list[str]:
    lengths = np.random.default_rng(0).integers(0, longest, number)
    return ["".join(chr(97 + (row + k) % 26) for k in range(n)) for row, n in enumerate(lengths)]


def expected_row(text: str) -> list[int]:
    return [CLS, *(ord(character) + 1000 for character in text), SEP]


def rows_of(dataset) -> list[list[int]]:
    """Unpadded rows of all batches, after a look at the padding."""
    rows = []
    for element in dataset.as_numpy_iterator():
        features = element if isinstance(element, dict) else element[0]
        assert all(value.dtype == np.int32 for value in features.values())
        for ids, segments, mask in zip(
            features["token_ids"], features["segment_ids"], features["padding_mask"], strict=True
        ):
            length = mask.sum()
            assert mask[:length].all()
            assert (ids[length:] == PAD).all()
            assert not segments[length:].any()
            rows.append(ids[:length].tolist())
    return rows


def test_file_order_with_padding_to_the_longest_row():
    texts = texts_of_many_lengths(70)
    dataset = bucketed_batches(CharacterTokenizer(), texts, batch_size=8)
    assert rows_of(dataset) == [expected_row(text) for text in texts]
    assert rows_of(dataset) == rows_of(dataset)
    assert int(dataset.cardinality()) == 9
    for batch, start in zip(dataset, range(0, 70, 8), strict=True):
        longest = max(map(len, texts[start : start + 8])) + 2
        assert batch["token_ids"].shape == (min(8, 70 - start), longest)


def test_element_spec():
    texts = ["a", "bc"]
    spec = bucketed_batches(CharacterTokenizer(), texts).element_spec
    assert set(spec) == {"token_ids", "segment_ids", "padding_mask"}
    for value in spec.values():
        assert value == tf.TensorSpec([None, None], tf.int32)
    features, labels, weights = bucketed_batches(
        CharacterTokenizer(),
        texts,
        labels=[0, 1],
        class_weights="balanced",
        batch_size=2,
        pad_to=128,
        drop_remainder=True,
    ).element_spec
    assert features["token_ids"] == tf.TensorSpec([2, 128], tf.int32)
    assert labels == tf.TensorSpec([2], tf.int32)
    assert weights == tf.TensorSpec([2], tf.float32)


def test_shuffled_passes_hold_every_row_once_in_new_orders():
    texts = [f"{number:03d}" + "x" * (number % 17) for number in range(100)]
    expected = sorted(expected_row(text) for text in texts)

    def passes(seed):
        dataset = bucketed_batches(
            CharacterTokenizer(), texts, batch_size=8, shuffle=True, seed=seed, pool_batches=3
        )
        assert int(dataset.cardinality()) == 13
        return [rows_of(dataset) for _ in range(3)]

    first, again, other = passes(1), passes(1), passes(2)
    for rows in first + other:
        assert sorted(rows) == expected
    assert first == again
    assert len({str(rows) for rows in first + other}) == 6


def test_labels_and_weights_stay_with_their_rows():
    texts = texts_of_many_lengths(50)
    labels = [len(text) % 3 for text in texts]
    dataset = bucketed_batches(
        CharacterTokenizer(),
        texts,
        labels=labels,
        batch_size=4,
        shuffle=True,
        class_weights={0: 0.5, 2: 4.0},
    )
    for features, label, weight in dataset.as_numpy_iterator():
        lengths = features["padding_mask"].sum(axis=1) - 2
        assert label.tolist() == (lengths % 3).tolist()
        assert weight.tolist() == [{0: 0.5, 1: 1.0, 2: 4.0}[value] for value in label]


def test_float_labels_are_scores():
    dataset = bucketed_batches(CharacterTokenizer(), ["a", "b"], labels=np.array([0.5, 1.5]))
    _, labels = next(dataset.as_numpy_iterator())
    assert labels.dtype == np.float32
    assert labels.tolist() == [0.5, 1.5]


def test_pairs():
    dataset = bucketed_batches(CharacterTokenizer(), ["ab", "c"], ["d", ""])
    batch = next(dataset.as_numpy_iterator())
    assert batch["token_ids"].tolist() == [
        [CLS, 1097, 1098, SEP, 1100, SEP],
        [CLS, 1099, SEP, SEP, PAD, PAD],
    ]
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]]


def test_cut_texts_are_counted(caplog):
    texts = ["a" * length for length in (5, 6, 7, 8)]
    with caplog.at_level(logging.WARNING):
        rows = encode_texts(CharacterTokenizer(), texts, max_length=8)
    assert rows.lengths.tolist() == [7, 8, 8, 8]
    assert rows.truncated == 2
    assert "2 of 4 texts (50.0 %) are longer than max_length=8 tokens" in caplog.text
    caplog.clear()
    assert encode_texts(CharacterTokenizer(), ["aaa"], ["aa"], max_length=8).truncated == 0
    assert encode_texts(CharacterTokenizer(), ["aaa"], ["aaa"], max_length=8).truncated == 1
    assert encode_texts(CharacterTokenizer(), ["", ""], max_length=8).lengths.tolist() == [2, 2]


def test_drop_remainder_leaves_out_other_rows_each_pass():
    texts = [chr(97 + number) * (number + 1) for number in range(11)]
    dataset = bucketed_batches(
        CharacterTokenizer(), texts, batch_size=4, shuffle=True, drop_remainder=True
    )
    assert int(dataset.cardinality()) == 2
    kept = [frozenset(map(len, rows_of(dataset))) for _ in range(8)]
    assert all(len(lengths) == 8 for lengths in kept)
    assert len(set(kept)) > 1
    with pytest.raises(ValueError, match="11 rows give no full batch of 12"):
        bucketed_batches(CharacterTokenizer(), texts, batch_size=12, drop_remainder=True)


def test_fixed_length():
    texts = texts_of_many_lengths(20)
    dataset = bucketed_batches(CharacterTokenizer(), texts, max_length=40, pad_to=64)
    assert next(iter(dataset))["token_ids"].shape == (20, 64)
    assert rows_of(dataset) == [expected_row(text) for text in texts]
    with pytest.raises(ValueError, match="pad_to=32 is less than max_length=40"):
        bucketed_batches(CharacterTokenizer(), texts, max_length=40, pad_to=32)


def test_sorted_batches_can_be_put_back_in_order():
    texts = texts_of_many_lengths(45)
    labels = list(range(45))
    dataset, restore = length_sorted_batches(CharacterTokenizer(), texts, labels=labels)
    rows = rows_of(dataset)
    assert [len(row) for row in rows] == sorted(map(len, rows), reverse=True)
    assert [rows[place] for place in restore] == [expected_row(text) for text in texts]
    seen = np.concatenate([label for _, label in dataset.as_numpy_iterator()])
    assert seen[restore].tolist() == labels


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": []}, "at least one text, got none"),
        ({"pairs": ["a"]}, r"pairs: expected one a text \(2\), got 1"),
        ({"labels": [1]}, r"labels: expected one a text \(2\), got 1"),
        ({"labels": ["pos", "neg"]}, "expected class indices or scores.*encode_labels"),
        ({"class_weights": "balanced"}, "class_weights need labels"),
        ({"labels": [0.5, 1], "class_weights": "balanced"}, "class_weights need class indices"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"pool_batches": 0}, "pool_batches must be at least 1, got 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        bucketed_batches(CharacterTokenizer(), **{"texts": ["a", "b"], **arguments})


def padding_share(dataset) -> float:
    masks = [features["padding_mask"] for features, _ in dataset.as_numpy_iterator()]
    return 1 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)


def test_little_padding_on_real_sentences(shared):
    examples = read_labelled(shared / "data/glue_en/SST-2/train.tsv")
    labels = encode_labels(examples, discover_labels(examples))
    dataset = bucketed_batches(WordTokenizer(), examples.texts, labels=labels, shuffle=True)
    assert int(dataset.cardinality()) == 2105
    assert padding_share(dataset) < 0.1


@pytest.mark.parametrize("truncation", ["longest_first", "only_first", "only_second"])
def test_rows_are_those_of_the_tokenizer(truncation):
    vocab = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abc", "##a", "##b", "##c"])
    tokenizer = BertTokenizer(vocab)
    texts = ["ab c", "", "A ccc b", "  ", "\u200b", "x"]
    pairs = ["c", "", "abc abc", "b", "a", "c" * 9]
    for second, limit in ((None, 6), (pairs, 9)):
        options = {"max_length": limit, "truncation": truncation}
        dataset = bucketed_batches(tokenizer, texts, second, **options)
        direct = tokenizer(texts, second, **options)
        for name, value in next(iter(dataset)).items():
            np.testing.assert_array_equal(value, direct[name])


def test_texts_that_are_encoded_already_give_the_same_batches():
    texts = texts_of_many_lengths(7)
    rows = encode_texts(CharacterTokenizer(), texts, max_length=16)
    again = bucketed_batches(None, rows, batch_size=3)
    plain = bucketed_batches(CharacterTokenizer(), texts, batch_size=3, max_length=16)
    assert rows_of(again) == rows_of(plain)
    again, restore = length_sorted_batches(None, rows, batch_size=3)
    sorted_rows = rows_of(again)
    assert [sorted_rows[place] for place in restore] == rows_of(plain)
    assert rows_of(tf.data.Dataset.from_tensors(as_one_batch(rows))) == rows_of(plain)


@pytest.mark.parametrize("shuffle", [False, True])
def test_targets_of_tokens_and_rows_follow_their_rows(shuffle):
    rows = encode_texts(CharacterTokenizer(), texts_of_many_lengths(11), max_length=16)
    per_token = PerToken(rows.token_ids * 10)
    targets = {"tokens": per_token, "row": np.stack([rows.lengths, rows.lengths], 1)}
    weights = {"tokens": PerToken(np.ones(len(rows.token_ids), "float32")), "row": rows.lengths}
    batches = row_batches(rows, targets, weights, batch_size=2, shuffle=shuffle, seed=1)
    seen = 0
    for features, target, weight in batches.as_numpy_iterator():
        mask = features["padding_mask"]
        np.testing.assert_array_equal(target["tokens"], features["token_ids"] * 10 * mask)
        np.testing.assert_array_equal(weight["tokens"], mask)
        np.testing.assert_array_equal(target["row"], np.stack([mask.sum(1)] * 2, 1))
        np.testing.assert_array_equal(weight["row"], mask.sum(1))
        seen += len(mask)
    assert seen == len(rows)


def test_targets_of_another_length_are_refused():
    rows = encode_texts(CharacterTokenizer(), texts_of_many_lengths(11), max_length=16)
    with pytest.raises(ValueError, match=f"each of {len(rows.token_ids)}, got 3"):
        row_batches(rows, PerToken(np.zeros(3)))
    with pytest.raises(ValueError, match=f"each of {len(rows)}, got 2"):
        row_batches(rows, np.zeros(2))
    with pytest.raises(ValueError, match="weights need targets"):
        row_batches(rows, weights=np.zeros(len(rows)))
