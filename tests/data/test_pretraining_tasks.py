"""Sentence order, full sentences, reproducibility and messages of packing."""

from __future__ import annotations

import numpy as np
import pytest

from keras_bert_impl.data.pretraining import check_next_sentence, pack_examples
from tests.data import google_pretraining as google
from tests.data.google_pretraining import CLS, SEP, ConstantRandom, segments

SPECIAL = {"cls_id": CLS, "sep_id": SEP}


def test_without_random_next_all_tokens_are_used_once():
    documents = google.random_documents(4, documents=6, sentences=9, tokens=9)
    documents = [document * 2 for document in documents]
    examples = pack_examples(
        google.as_documents(documents), ConstantRandom(0.9), max_seq_length=10**6, **SPECIAL
    )
    assert [a + b for a, b, _ in segments(examples)] == [
        [token for sentence in document for token in sentence] for document in documents
    ]


def test_sentence_order_swaps_half_of_the_neighbours():
    documents = google.random_documents(6, documents=3000, sentences=90, tokens=40)
    tokenized = google.as_documents(documents)
    examples = pack_examples(
        tokenized, np.random.default_rng(1), sentence_task="sop", short_seq_prob=0, **SPECIAL
    )
    text = tokenized.token_ids.tolist()
    labels = []
    # Untruncated examples are found in the text as they are, after undoing the swap.
    joined = " ".join(map(str, text)) + " "
    for a, b, label in segments(examples)[:200]:
        labels.append(label)
        if len(a) + len(b) < 125:
            both = a + b if label == 0 else b + a
            assert " ".join(map(str, both)) + " " in joined
    assert len(examples) > 15_000
    assert abs(examples.is_random_next.mean() - 0.5) < 0.01
    assert set(labels) == {0, 1}


def test_sentence_order_skips_documents_of_one_sentence_and_uses_all_others():
    documents = [[[11, 12]], [[21], [22], [23, 24]], [[31] * 9, [32] * 9]]
    examples = pack_examples(
        google.as_documents(documents),
        np.random.default_rng(0),
        sentence_task="sop",
        max_seq_length=7,
        short_seq_prob=0,
        **SPECIAL,
    )
    ids = set(examples.token_ids.tolist()) - {CLS, SEP}
    assert ids == {21, 22, 23, 24, 31, 32}


@pytest.mark.parametrize("max_seq_length", [5, 7, 30, 128])
@pytest.mark.parametrize("short_seq_prob", [0.0, 1.0])
def test_full_sentences_hold_every_token_once_in_order(max_seq_length, short_seq_prob):
    documents = google.random_documents(7, documents=20, sentences=12, tokens=50)
    tokenized = google.as_documents(documents)
    examples = pack_examples(
        tokenized,
        np.random.default_rng(0),
        sentence_task="none",
        max_seq_length=max_seq_length,
        short_seq_prob=short_seq_prob,
        **SPECIAL,
    )
    assert examples.is_random_next is None
    lengths = np.diff(examples.starts)
    assert lengths.max() <= max_seq_length
    np.testing.assert_array_equal(examples.first_lengths, lengths)
    rows = [a for a, _, _ in segments_of_one(examples)]
    assert [token for row in rows for token in row] == tokenized.token_ids.tolist()
    if max_seq_length == 128 and not short_seq_prob:
        sentence_ends = set(tokenized.sentence_starts.tolist())
        assert set(np.cumsum([len(row) for row in rows]).tolist()) <= sentence_ends


def segments_of_one(examples):
    for start, end in zip(examples.starts, examples.starts[1:], strict=False):
        ids = examples.token_ids[start:end].tolist()
        assert ids[0] == CLS
        assert ids[-1] == SEP
        yield ids[1:-1], [], None


def test_continuations_do_not_reach_over_the_start_of_a_segment():
    documents = google.random_documents(8, documents=9, sentences=20, tokens=30)
    examples = pack_examples(
        google.as_documents(documents), np.random.default_rng(0), max_seq_length=24, **SPECIAL
    )
    special = np.isin(examples.token_ids, [CLS, SEP])
    after_special = np.append(False, special[:-1])
    expected = (examples.token_ids >= 500) & ~special & ~after_special
    np.testing.assert_array_equal(examples.continues, expected)
    assert (examples.token_ids[after_special] >= 500).any()


def test_the_seed_alone_decides_the_bytes():
    documents = google.as_documents(
        google.random_documents(9, documents=9, sentences=20, tokens=30)
    )
    one, two, other = (
        pack_examples(documents, np.random.default_rng(seed), **SPECIAL) for seed in (1, 1, 2)
    )
    for name in ("token_ids", "continues", "starts", "first_lengths", "is_random_next"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert one.token_ids.tobytes() != other.token_ids.tobytes()
    assert one.token_ids.dtype == np.int32
    assert one.is_random_next.dtype == np.int8


def test_one_document_has_no_random_next():
    documents = google.as_documents([[[11, 12], [13]]])
    with pytest.raises(ValueError, match=r"at least two documents .* got 1.*--no-nsp"):
        pack_examples(documents, np.random.default_rng(0), **SPECIAL)
    check_next_sentence(documents, "sop")
    check_next_sentence(documents, "none")


@pytest.mark.parametrize("task", ["nsp", "sop"])
def test_documents_of_one_sentence_have_no_next_sentence(task):
    documents = google.as_documents([[[11, 12]], [[13]], [[14]]])
    with pytest.raises(ValueError, match=r"all 3 documents have one sentence each.*--no-nsp"):
        check_next_sentence(documents, task)
    check_next_sentence(documents, "none")
    # A chunk of a corpus may look like this.
    examples = pack_examples(documents, np.random.default_rng(0), sentence_task=task, **SPECIAL)
    assert examples.is_random_next.tolist() == ([1, 1, 1] if task == "nsp" else [])


def test_bad_settings_are_named():
    documents = google.as_documents([[[11], [12]], [[13]]])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"one of nsp, sop, none, got 'nps'"):
        pack_examples(documents, rng, sentence_task="nps", **SPECIAL)
    with pytest.raises(ValueError, match=r"max_seq_length must be at least 5, got 4"):
        pack_examples(documents, rng, max_seq_length=4, **SPECIAL)
