"""Records that cannot be trained on are named before training."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.shards import open_shards
from keras_bert_impl.text.vocab import Vocab

STATIC = {
    "input_ids": [2, 7, 4, 3, 0, 0],
    "input_mask": [1, 1, 1, 1, 0, 0],
    "segment_ids": [0, 0, 1, 1, 0, 0],
    "masked_lm_positions": [2, 0],
    "masked_lm_ids": [8, 0],
    "masked_lm_weights": [1.0, 0.0],
    "next_sentence_labels": [1],
}
DYNAMIC = {
    "token_ids": [2, 7, 8, 3],
    "first_length": [2],
    "is_random_next": [0],
    "continues": [0, 0, 1, 0],
}


def encoded(values: dict) -> bytes:
    features = {}
    for key, value in values.items():
        if key == "masked_lm_weights":
            features[key] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
        else:
            features[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(path, good: dict, *others: dict):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for values in (good, good, *others, good):
            writer.write(encoded(values))
    return path


@pytest.mark.parametrize("good", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_good_records(good, tmp_path):
    shards = open_shards(write(tmp_path / "x.tfrecord", good, good))
    assert len(shards) == 4
    assert shards.read(np.array([2])) == [encoded(good)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_ids": [2, 7, 4, -3, 0, 0]}, "input_ids holds -3, expected 0 or more"),
        ({"input_mask": [1, 1, 7, 1, 0, 0]}, "input_mask holds 7, expected from 0 to 1"),
        ({"segment_ids": [0, 0, 2, 1, 0, 0]}, "segment_ids holds 2, expected from 0 to 1"),
        ({"masked_lm_positions": [6, 0]}, "masked_lm_positions holds 6, expected from 0 to 5"),
        ({"masked_lm_positions": [-1, 0]}, "masked_lm_positions holds -1, expected from 0 to 5"),
        ({"masked_lm_ids": [-1, 0]}, "masked_lm_ids holds -1, expected 0 or more"),
        ({"masked_lm_weights": [float("nan"), 0.0]}, "masked_lm_weights must be finite and not"),
        ({"masked_lm_weights": [-1.0, 0.0]}, "masked_lm_weights must be finite and not"),
        ({"next_sentence_labels": [2]}, "next_sentence_labels holds 2, expected from 0 to 1"),
        ({"input_mask": [1, 1, 1]}, "input_mask"),
        ({"segment_ids": [0]}, "segment_ids"),
        ({"next_sentence_labels": []}, "next_sentence_labels"),
        ({"masked_lm_weights": [1.0]}, "masked_lm_weights"),
        ({"input_mask": None}, "has no input_mask"),
        ({"next_sentence_labels": None}, "has has_sentence_task False, and record 0 has True"),
        ({"input_ids": [2, 3]}, "has seq_length 2, and record 0 has 6"),
    ],
)
def test_static_records_that_cannot_be_trained_on(changes, message, tmp_path):
    refused(STATIC, changes, message, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": []}, "record 2"),
        ({"token_ids": [2, 7, -8, 3]}, "token_ids holds -8, expected 0 or more"),
        ({"first_length": [5]}, "first_length holds 5, expected from 0 to 4"),
        ({"first_length": [0]}, "do not fit each other"),
        ({"first_length": []}, "first_length"),
        ({"is_random_next": [3]}, "is_random_next holds 3, expected from 0 to 1"),
        ({"is_random_next": None}, "has has_sentence_task False, and record 0 has True"),
        ({"continues": [0]}, "do not fit each other"),
        ({"first_length": None}, "record 2 is no example of pre-training"),
    ],
)
def test_dynamic_records_that_cannot_be_trained_on(changes, message, tmp_path):
    refused(DYNAMIC, changes, message, tmp_path)


def refused(good: dict, changes: dict, message: str, folder) -> None:
    wrong = {key: value for key, value in (good | changes).items() if value is not None}
    path = write(folder / "x.tfrecord", good, wrong)
    with pytest.raises(ValueError, match=r"x\.tfrecord: record 2") as error:
        open_shards(path)
    assert message in str(error.value)


def test_ids_under_masks_must_be_in_the_vocabulary_too(tmp_path):
    path = write(tmp_path / "x.tfrecord", STATIC, {**STATIC, "masked_lm_ids": [40, 0]})
    vocab = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"])
    with pytest.raises(ValueError, match=r"record 2 holds token id 40, and the vocabulary has 11"):
        open_shards(path).check(vocab=vocab)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no zip file", None])
def test_an_index_that_is_damaged_is_made_again(damage, tmp_path):
    path = write(tmp_path / "x.tfrecord", STATIC)
    open_shards(path)
    (index,) = tmp_path.glob(".*.npz")
    whole = index.read_bytes()
    index.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert len(open_shards(path)) == 3
    assert index.read_bytes() != damage
