"""Short examples, seeds, schema and messages of masking."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.masking import Masking, mask_batch, mask_examples
from keras_bert_impl.text.vocab import Vocab
from tests.data.masked_rows import (
    IN_WORDS,
    LENGTH,
    MASKINGS,
    SEP,
    VOCAB,
    corpus,
    dynamic,
    features_of,
    first,
    packed,
    padded,
    static,
)


@pytest.fixture(scope="module")
def examples():
    return corpus()


@pytest.fixture(scope="module", params=list(MASKINGS))
def masking(request):
    return MASKINGS[request.param]


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


@pytest.mark.parametrize("form", [static, dynamic])
def test_spans_end_with_their_segment(form):
    examples = packed(*[[10, SEP, 11, 12]] * 10_000)
    chosen = form(examples, Masking(ngram=2, probability=1 / 3)).chosen
    # The last two pieces are one span in 2 of 9 tilings; else two of three pieces are chosen. Were
    # the first and the second one a span where its length is 2, this would be 0.31.
    assert abs(np.mean(chosen[:, 1] & chosen[:, 3]) - 7 / 9 / 3) < 0.02


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
