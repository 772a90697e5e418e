"""Packing against the loops of google-research/bert."""

from __future__ import annotations

import itertools

import pytest
import tensorflow as tf

from keras_bert_impl.text.packing import TRUNCATIONS, pack, to_dense, truncated_lengths

CLS, SEP = 101, 102


def truncate_seq_pair(first, second, budget):
    """``_truncate_seq_pair`` of run_classifier.py."""
    first, second = list(first), list(second)
    while len(first) + len(second) > budget:
        (first if len(first) > len(second) else second).pop()
    return first, second


def test_longest_first_is_googles_for_all_small_lengths():
    for budget in range(0, 12):
        pairs = list(itertools.product(range(14), repeat=2))
        got = truncated_lengths(
            tf.constant([a for a, _ in pairs]),
            tf.constant([b for _, b in pairs]),
            budget=budget,
            truncation="longest_first",
        )
        want = [tuple(map(len, truncate_seq_pair(range(a), range(b), budget))) for a, b in pairs]
        assert list(zip(*(lengths.numpy().tolist() for lengths in got), strict=True)) == want


@pytest.mark.parametrize(
    ("truncation", "first", "second", "want"),
    [
        ("only_second", 3, 9, (3, 2)),
        ("only_second", 9, 9, (5, 0)),
        ("only_second", 1, 2, (1, 2)),
        ("only_first", 9, 3, (2, 3)),
        ("only_first", 9, 9, (0, 5)),
        ("only_first", 2, 1, (2, 1)),
    ],
)
def test_one_sided_truncation(truncation, first, second, want):
    got = truncated_lengths(
        tf.constant([first]), tf.constant([second]), budget=5, truncation=truncation
    )
    assert tuple(int(length[0]) for length in got) == want


def test_pairs_are_laid_out_as_google_does():
    first = tf.ragged.constant([[1, 2, 3, 4], [], [5]], dtype=tf.int32)
    second = tf.ragged.constant([[6, 7, 8, 9], [10], []], dtype=tf.int32)
    token_ids, segment_ids = pack(first, second, max_length=8, cls_id=CLS, sep_id=SEP)
    assert token_ids.to_list() == [
        [CLS, 1, 2, 3, SEP, 6, 7, SEP], [CLS, SEP, 10, SEP], [CLS, 5, SEP, SEP],
    ]  # fmt: skip
    assert segment_ids.to_list() == [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]


def test_single_texts_are_cut_at_the_end():
    token_ids, segment_ids = pack(
        tf.ragged.constant([[1, 2, 3, 4], []], dtype=tf.int32),
        max_length=4, cls_id=CLS, sep_id=SEP,
    )  # fmt: skip
    assert token_ids.to_list() == [[CLS, 1, 2, SEP], [CLS, SEP]]
    assert segment_ids.to_list() == [[0, 0, 0, 0], [0, 0]]
    features = to_dense(token_ids, segment_ids, pad_id=9, pad_to=5)
    assert features["token_ids"].numpy().tolist() == [[CLS, 1, 2, SEP, 9], [CLS, SEP, 9, 9, 9]]
    assert features["padding_mask"].numpy().tolist() == [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]
    assert features["segment_ids"].numpy().tolist() == [[0] * 5] * 2
    assert {value.dtype for value in features.values()} == {tf.int32}


def test_rows_are_padded_to_the_longest():
    rows = tf.ragged.constant([[1, 2], [3, 4, 5]], dtype=tf.int32)
    assert to_dense(rows, tf.zeros_like(rows))["token_ids"].shape == (2, 3)


@pytest.mark.parametrize("truncation", TRUNCATIONS)
@pytest.mark.parametrize("max_length", [3, 4, 7])
def test_no_row_is_longer_than_asked(truncation, max_length):
    lengths = list(itertools.product(range(6), repeat=2))
    first = tf.ragged.constant([[1] * a for a, _ in lengths], dtype=tf.int32)
    second = tf.ragged.constant([[2] * b for _, b in lengths], dtype=tf.int32)
    token_ids, segment_ids = pack(
        first, second, max_length=max_length, truncation=truncation, cls_id=CLS, sep_id=SEP
    )
    wanted = [min(a + b + 3, max_length) for a, b in lengths]
    assert token_ids.row_lengths().numpy().tolist() == wanted
    assert segment_ids.row_lengths().numpy().tolist() == wanted


def test_bad_arguments_are_named():
    rows = tf.ragged.constant([[1]], dtype=tf.int32)
    with pytest.raises(ValueError, match="max_length must be at least 2, got 1"):
        pack(rows, max_length=1, cls_id=CLS, sep_id=SEP)
    with pytest.raises(ValueError, match="max_length must be at least 3, got 2"):
        pack(rows, rows, max_length=2, cls_id=CLS, sep_id=SEP)
    with pytest.raises(ValueError, match=r"one of longest_first, only_first, .* got 'shortest'"):
        pack(rows, rows, max_length=9, truncation="shortest", cls_id=CLS, sep_id=SEP)
