"""Masks drawn on arrays and inside tf.data: the same properties and statistics for both."""

from __future__ import annotations

import random

import numpy as np
import pytest

from keras_bert_impl.data.masking import Masking
from tests.data import google_pretraining as google
from tests.data.masked_rows import (
    CLS,
    IN_PIECES,
    IN_WORDS,
    LENGTH,
    MASK,
    MASKINGS,
    SEP,
    SIZE,
    VOCAB,
    corpus,
    dynamic,
    first,
    static,
)


@pytest.fixture(scope="module")
def examples():
    return corpus()


@pytest.fixture(scope="module", params=list(MASKINGS))
def masking(request):
    return MASKINGS[request.param]


@pytest.fixture(scope="module", params=[static, dynamic])
def masked(request, examples, masking):
    few = examples if masking == MASKINGS["pieces"] else first(examples, 8000)
    return request.param(few, masking)


def test_slots_are_ascending_and_filled_from_the_left(masked, masking):
    assert masked.positions.shape[1] == masking.slots(LENGTH)
    counts = masked.weights.sum(axis=1).astype(int)
    assert counts.min() >= 1
    used = np.arange(masked.positions.shape[1]) < counts[:, None]
    np.testing.assert_array_equal(masked.weights, used)
    steps = np.diff(masked.positions, axis=1)[used[:, 1:]]
    assert steps.min() > 0
    assert not masked.positions[~used].any()
    assert not masked.ids[~used].any()
    assert (masked.positions.dtype, masked.ids.dtype) == (np.int32, np.int32)
    assert masked.weights.dtype == np.float32


def test_special_tokens_and_padding_are_never_chosen(masked):
    allowed = masked.real & ~np.isin(masked.before, [CLS, SEP])
    assert not (masked.chosen & ~allowed).any()


def test_putting_the_labels_back_gives_the_input(masked):
    row, slot = np.nonzero(masked.weights)
    restored = masked.after.copy()
    restored[row, masked.positions[row, slot]] = masked.ids[row, slot]
    np.testing.assert_array_equal(restored, masked.before)


def test_numbers_of_predictions(masked, masking):
    lengths = masked.real.sum(axis=1)
    wanted = [max(1, round(int(n) * masking.probability)) for n in lengths]
    wanted = np.minimum(wanted, masking.max_predictions or LENGTH)
    counts = masked.weights.sum(axis=1)
    if not masking.in_units:
        np.testing.assert_array_equal(counts, wanted)
        return
    assert np.mean(counts == wanted) > 0.97
    over = counts > wanted
    assert over.mean() < 0.03
    # More only where no unit was short enough.
    assert all(masked.continues[row].any() for row in np.flatnonzero(over))
    assert counts.max() <= masked.weights.shape[1]


def test_shares_of_masks_random_pieces_and_kept_ones(masked, masking):
    row, slot = np.nonzero(masked.weights)
    labels = masked.ids[row, slot]
    new = masked.after[row, masked.positions[row, slot]]
    total = masked.real.sum()
    assert abs(len(new) / total - masking.probability) < 0.005
    assert abs(np.mean(new == MASK) - 0.8) < 0.01
    assert abs(np.mean(new == labels) - 0.1) < 0.01
    other = new[(new != MASK) & (new != labels)]
    assert abs(len(other) / len(new) - 0.1) < 0.01
    # Random pieces come from the whole vocabulary.
    assert other.min() < 10
    assert other.max() > SIZE - 20
    assert abs(other.mean() / SIZE - 0.5) < 0.02


@pytest.mark.parametrize("masking", IN_PIECES, indirect=True)
def test_every_place_is_chosen_alike(masked):
    full = masked.real.all(axis=1)
    rate = masked.chosen[full].mean(axis=0)
    inside = rate[1:-1]
    # One [SEP] lies somewhere inside.
    assert inside.std() < 0.02
    assert abs(inside[:30].mean() - inside[-30:].mean()) < 0.01


def test_whole_words_are_never_split(masked, masking):
    split = masked.continues[:, 1:] & (masked.chosen[:, 1:] != masked.chosen[:, :-1])
    assert split.any() != masking.whole_words


@pytest.mark.parametrize("masking", IN_WORDS, indirect=True)
def test_replacement_per_word_is_one_for_all_its_pieces(masked, masking):
    became_mask = (masked.after == MASK)[:, 1:] != (masked.after == MASK)[:, :-1]
    inside = masked.continues[:, 1:] & masked.chosen[:, 1:]
    mixed = became_mask[inside].mean()
    if masking.replace_per_word:
        # A random piece may happen to be [MASK].
        assert mixed < 0.002
    else:
        assert abs(mixed - 2 * 0.8 * 0.2) < 0.02


def runs(chosen: np.ndarray) -> np.ndarray:
    """Lengths of runs of chosen pieces."""
    edges = np.diff(np.pad(chosen, [[0, 0], [1, 1]]).astype(int), axis=1)
    return np.nonzero(edges == -1)[1] - np.nonzero(edges == 1)[1]


@pytest.mark.parametrize("form", [static, dynamic])
def test_spans_have_lengths_of_one_to_n_the_shorter_the_more(form, examples):
    # So few predictions that spans hardly touch.
    masking = Masking(ngram=3, probability=0.06, max_predictions=8)
    few = first(examples, 8000)
    long = np.diff(few.starts) > 120
    lengths = runs(form(few, masking).chosen[long])
    shares = np.bincount(lengths)[1:4] / np.sum(lengths <= 3)
    assert np.mean(lengths > 3) < 0.15
    expected = np.array([1, 1 / 2, 1 / 3]) / (1 + 1 / 2 + 1 / 3)
    assert np.abs(shares - expected).max() < 0.06
    single = runs(form(few, Masking(probability=0.06, max_predictions=8)).chosen[long])
    assert np.mean(single == 1) > 0.8


@pytest.mark.parametrize("form", [static, dynamic])
@pytest.mark.parametrize("whole_words", [False, True])
def test_predictions_are_as_many_as_googles(form, whole_words, examples):
    few = first(examples, 4000)
    masking = Masking(whole_words=whole_words)
    ours = form(few, masking)
    words = list(VOCAB.tokens)
    draws = random.Random(1)
    counts, sizes = [], []
    for row, real in zip(ours.before, ours.real, strict=True):
        tokens = [words[i] for i in row[real]]
        _, positions, _ = google.mask_tokens(tokens, words, draws, whole_words=whole_words)
        counts.append(len(positions))
        sizes.append(sum(tokens[p].startswith("##") for p in positions))
    ours_counts = ours.weights.sum(axis=1)
    if not whole_words:
        np.testing.assert_array_equal(ours_counts, counts)
    # Google masks nothing where all words are too long for a short example.
    assert np.mean(ours_counts != counts) < 0.02
    ours_pieces = np.sum(ours.chosen & (ours.before >= 500)) / ours_counts.sum()
    assert abs(ours_pieces - sum(sizes) / sum(counts)) < 0.01
