"""Masks drawn on arrays and inside tf.data: the same properties and statistics for both forms."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.masking import Masking, mask_batch, mask_examples
from keras_bert_impl.data.pretraining import PackedExamples, pack_examples
from keras_bert_impl.text.vocab import Vocab
from tests.data import google_pretraining as google

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SIZE = 1000
# Ids from 500 on are "##" pieces, as in `google.as_documents`.
VOCAB = Vocab(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + [f"w{i}" if i < 500 else f"##{i}" for i in range(5, SIZE)]
)
LENGTH = 128
MASKINGS = {
    "pieces": Masking(),
    "words": Masking(whole_words=True),
    "words replaced whole": Masking(whole_words=True, replace_per_word=True),
    "spans of pieces": Masking(ngram=3),
    "spans of words": Masking(whole_words=True, ngram=3, replace_per_word=True),
    "without cap": Masking(max_predictions=None, probability=0.3),
}


class Masked(NamedTuple):
    """Masked rows, padded, beside what they were made of."""

    before: np.ndarray
    after: np.ndarray
    real: np.ndarray
    continues: np.ndarray
    positions: np.ndarray
    ids: np.ndarray
    weights: np.ndarray

    @property
    def chosen(self):
        """Bool [N, S]."""
        chosen = np.zeros(self.before.shape, bool)
        row, slot = np.nonzero(self.weights)
        chosen[row, self.positions[row, slot]] = True
        return chosen


def padded(examples: PackedExamples, flat: np.ndarray, width: int = LENGTH) -> np.ndarray:
    real = np.arange(width) < np.diff(examples.starts)[:, None]
    rows = np.zeros(real.shape, flat.dtype)
    rows[real] = flat
    return rows


def features_of(examples: PackedExamples, width: int = LENGTH):
    lengths = np.diff(examples.starts)[:, None]
    real = np.arange(width) < lengths
    features = {
        "token_ids": padded(examples, examples.token_ids, width),
        "segment_ids": (np.arange(width) >= examples.first_lengths[:, None]) & real,
        "padding_mask": real,
    }
    return {name: values.astype(np.int32) for name, values in features.items()}


def static(examples: PackedExamples, masking: Masking, seed: int = 1) -> Masked:
    masked = mask_examples(
        examples, np.random.default_rng(seed), masking, VOCAB, max_seq_length=LENGTH
    )
    return Masked(
        padded(examples, examples.token_ids),
        padded(examples, masked.token_ids),
        padded(examples, np.ones_like(examples.continues)),
        padded(examples, examples.continues),
        masked.masked_positions,
        masked.masked_ids,
        masked.masked_weights,
    )


def dynamic(examples: PackedExamples, masking: Masking, seed: int = 1) -> Masked:
    features = features_of(examples)
    features["continues"] = padded(examples, examples.continues)
    batches = tf.data.Dataset.from_tensor_slices(features).batch(512).enumerate()
    batches = batches.map(
        lambda number, batch: mask_batch(batch, tf.stack([seed, number]), masking, VOCAB)
    )
    rows = [
        (
            inputs["token_ids"],
            inputs["masked_positions"],
            targets["masked_lm"],
            weights["masked_lm"],
        )
        for inputs, targets, weights in batches.as_numpy_iterator()
    ]
    after, positions, ids, weights = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Masked(
        features["token_ids"],
        after,
        features["padding_mask"] > 0,
        features["continues"],
        positions,
        ids,
        weights,
    )


@pytest.fixture(scope="module")
def examples():
    """50,000 examples; two pieces of five go on with a word."""
    documents = google.random_documents(2, documents=400, sentences=40, tokens=40)
    for document in documents:
        for sentence in document:
            sentence[:] = [i if i < 500 or i > 900 else i - 490 for i in sentence]
    rng, tokenized = np.random.default_rng(1), google.as_documents(documents)
    parts = [pack_examples(tokenized, rng, cls_id=CLS, sep_id=SEP) for _ in range(40)]
    kept = PackedExamples(
        np.concatenate([part.token_ids for part in parts]),
        np.concatenate([part.continues for part in parts]),
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.starts) for p in parts]))]),
        np.concatenate([part.first_lengths for part in parts]),
        np.concatenate([part.is_random_next for part in parts]),
    )
    return first(kept, 50_000)


def first(examples: PackedExamples, count: int) -> PackedExamples:
    assert len(examples) >= count
    end = examples.starts[count]
    return PackedExamples(
        examples.token_ids[:end],
        examples.continues[:end],
        examples.starts[: count + 1],
        examples.first_lengths[:count],
        examples.is_random_next[:count],
    )


IN_WORDS = [name for name, masking in MASKINGS.items() if masking.whole_words]
IN_PIECES = [name for name, masking in MASKINGS.items() if not masking.in_units]


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


def packed(*rows) -> PackedExamples:
    """Examples of one segment, given without special tokens."""
    ids = [[CLS, *row, SEP] for row in rows]
    flat = np.array([i for row in ids for i in row], np.int32)
    lengths = np.array([len(row) for row in ids])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return PackedExamples(flat, flat >= 500, starts, lengths.astype(np.int32), None)


@pytest.mark.parametrize("form", [static, dynamic])
@pytest.mark.parametrize("masking", ["pieces", *IN_WORDS], indirect=True)
def test_the_shortest_examples_have_one_prediction(form, masking):
    result = form(packed([10], [10, 11], [10, 500], [10, 500, 501, 502]), masking)
    counts = result.weights.sum(axis=1).tolist()
    assert counts[:2] == [1, 1]
    assert counts[2:] == ([2, 4] if masking.whole_words else [1, 1])
    assert result.positions[0, 0] == 1


@pytest.mark.parametrize("form", [static, dynamic])
def test_a_word_longer_than_all_slots_is_passed_over(form):
    long_word = [10, *range(500, 525)]
    result = form(packed(long_word, [*long_word, 11]), Masking(whole_words=True))
    assert result.weights.sum(axis=1).tolist() == [0, 1]
    assert result.ids[1, 0] == 11


def test_static_masks_follow_from_the_seed(examples, masking):
    few = first(examples, 3000)
    one, same, other = (static(few, masking, seed) for seed in (1, 1, 2))
    for a, b in zip(one, same, strict=True):
        assert a.tobytes() == b.tobytes()
    assert one.positions.tobytes() != other.positions.tobytes()


def test_static_masks_keep_the_examples(examples):
    few = first(examples, 100)
    before = few.token_ids.copy()
    masked = mask_examples(few, np.random.default_rng(1), Masking(), VOCAB, max_seq_length=LENGTH)
    np.testing.assert_array_equal(few.token_ids, before)
    assert masked.starts is few.starts
    assert masked.is_random_next is few.is_random_next
    assert len(masked) == 100
    none = packed()
    empty = mask_examples(none, np.random.default_rng(1), Masking(), VOCAB, max_seq_length=LENGTH)
    assert empty.masked_positions.shape == (0, 19)


def test_dynamic_masks_follow_from_the_seed_in_a_parallel_pipeline(examples, masking):
    features = features_of(first(examples, 400))

    def batches(epoch, calls):
        data = tf.data.Dataset.from_tensor_slices(features).batch(16, drop_remainder=True)
        data = data.enumerate().map(
            lambda number, batch: mask_batch(batch, tf.stack([epoch, number]), masking, VOCAB),
            num_parallel_calls=calls,
        )
        return list(data.as_numpy_iterator())

    one, same, other = batches(3, tf.data.AUTOTUNE), batches(3, None), batches(4, tf.data.AUTOTUNE)
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(same), strict=True):
        np.testing.assert_array_equal(a, b)
    names = ("token_ids", "masked_positions")
    for name in names:
        assert any((a[0][name] != b[0][name]).any() for a, b in zip(one, other, strict=True))
    positions = [batch[0]["masked_positions"] for batch in one]
    assert (positions[0] != positions[1]).any()


def test_batches_have_the_schema_and_static_shapes(examples, masking):
    features = features_of(first(examples, 64))
    features["is_random_next"] = examples.is_random_next[:64]
    data = tf.data.Dataset.from_tensor_slices(features).batch(8, drop_remainder=True)
    data = data.map(lambda batch: mask_batch(batch, [1, 2], masking, VOCAB))
    slots = masking.slots(LENGTH)
    row, predictions = tf.TensorSpec([8, LENGTH], tf.int32), tf.TensorSpec([8, slots], tf.int32)
    assert data.element_spec == (
        {
            "token_ids": row,
            "segment_ids": row,
            "padding_mask": row,
            "masked_positions": predictions,
        },
        {"masked_lm": predictions, "next_sentence": tf.TensorSpec([8], tf.int32)},
        {
            "masked_lm": tf.TensorSpec([8, slots], tf.float32),
            "next_sentence": tf.TensorSpec([8], tf.float32),
        },
    )
    inputs, targets, weights = next(iter(data))
    np.testing.assert_array_equal(targets["next_sentence"], examples.is_random_next[:8])
    np.testing.assert_array_equal(weights["next_sentence"], 1)
    np.testing.assert_array_equal(inputs["segment_ids"], features["segment_ids"][:8])
    del features["is_random_next"]
    _, targets, weights = mask_batch(features, [1, 2], masking, VOCAB)
    assert set(targets) == set(weights) == {"masked_lm"}


def test_words_are_those_of_the_vocabulary_where_records_do_not_say(examples):
    few = first(examples, 500)
    features = features_of(few)
    masking = MASKINGS["words replaced whole"]
    without = mask_batch(features, [1, 2], masking, VOCAB)
    features["continues"] = padded(few, few.continues)
    for a, b in zip(
        tf.nest.flatten(without),
        tf.nest.flatten(mask_batch(features, [1, 2], masking, VOCAB)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_bad_settings_are_named(examples):
    with pytest.raises(ValueError, match=r"probability must be above 0 and at most 1, got 15"):
        Masking(probability=15)
    with pytest.raises(ValueError, match=r"max_predictions must be at least 1, got 0"):
        Masking(max_predictions=0)
    with pytest.raises(ValueError, match=r"ngram must be at least 1, got 0"):
        Masking(ngram=0)
    with pytest.raises(ValueError, match=r"together at most 1, got 0.9 and 0.2"):
        Masking(mask_share=0.9, random_share=0.2)
    no_mask = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    few = first(examples, 8)
    with pytest.raises(ValueError, match=r"the vocabulary of 5 tokens has no \[MASK\]"):
        mask_examples(few, np.random.default_rng(0), Masking(), no_mask, max_seq_length=LENGTH)
    with pytest.raises(ValueError, match=r"the vocabulary of 5 tokens has no \[MASK\]"):
        mask_batch(features_of(few), [1, 2], Masking(), no_mask)
    spec = {name: tf.TensorSpec([None, None], tf.int32) for name in features_of(few)}
    ragged = tf.data.Dataset.from_generator(lambda: [features_of(few)], output_signature=spec)
    with pytest.raises(ValueError, match=r"token_ids must have a static length"):
        ragged.map(lambda batch: mask_batch(batch, [1, 2], Masking(), VOCAB))
