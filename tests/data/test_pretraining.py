"""Packing of documents into unmasked examples, against Google's script."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from keras_bert_impl.data.pretraining import (
    check_next_sentence,
    pack_examples,
    tokenize_documents,
)
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.data import google_pretraining as google

CLS, SEP = 2, 3
SPECIAL = {"cls_id": CLS, "sep_id": SEP}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "##ness", "!", "中", "国", "人"]


class ConstantRandom:
    """Draws the same number each time, as `random.Random` and as `numpy.random.Generator`."""

    def __init__(self, draw: float) -> None:
        self.draw = draw

    def random(self, size=None):
        return self.draw if size is None else np.full(size, self.draw)

    def randint(self, low, high):
        return low + int(self.draw * (high - low + 1))

    def binomial(self, number, probability):
        return number if self.draw < probability else 0 * number


def segments(examples):
    """(a, b, label) of each example, without special tokens."""
    rows = []
    labels = examples.is_random_next
    for i, (start, end) in enumerate(zip(examples.starts, examples.starts[1:], strict=False)):
        ids = examples.token_ids[start:end].tolist()
        first = int(examples.first_lengths[i])
        assert ids[0] == CLS
        assert ids[-1] == SEP
        assert ids[first - 1] == SEP
        label = None if labels is None else int(labels[i])
        rows.append((ids[1 : first - 1], ids[first:-1], label))
    return rows


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
        pack_examples(documents, np.random.default_rng(0), sentence_task=task, **SPECIAL)
    check_next_sentence(documents, "none")


def test_bad_settings_are_named():
    documents = google.as_documents([[[11], [12]], [[13]]])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"one of nsp, sop, none, got 'nps'"):
        pack_examples(documents, rng, sentence_task="nps", **SPECIAL)
    with pytest.raises(ValueError, match=r"max_seq_length must be at least 5, got 4"):
        pack_examples(documents, rng, max_seq_length=4, **SPECIAL)


def test_documents_without_tokens_are_dropped_and_counted():
    tokenizer = BertTokenizer(Vocab(WORDS))
    documents = tokenize_documents(
        tokenizer, [["good", " "], ["\u200b\x00", ""], [], ["goodness!", "\u200b", "good"]]
    )
    assert documents.token_ids.tolist() == [5, 5, 6, 7, 5]
    assert documents.continues.tolist() == [False, False, True, False, False]
    assert documents.sentence_starts.tolist() == [0, 1, 4, 5]
    assert documents.document_starts.tolist() == [0, 1, 3]
    assert (documents.dropped_sentences, documents.dropped_documents) == (4, 2)
    assert len(tokenize_documents(tokenizer, [["\u200b"]])) == 0


def test_pieces_of_a_chinese_word_hang_together():
    pytest.importorskip("jieba")
    tokenizer = BertTokenizer(Vocab(WORDS))
    texts = [["中国人good中国goodness", "国"], ["\u200b 中 国 中国！", "\ud800中国"]]
    documents = tokenize_documents(tokenizer, texts, chinese_words=True)
    pieces = [
        "~" * int(continues) + tokenizer.vocab.id_to_token(token)
        for token, continues in zip(documents.token_ids, documents.continues, strict=True)
    ]
    assert pieces[:10] == "中 ~国 人 good 中 ~国 good ~##ness 国 中".split()
    assert pieces[10:] == "国 中 ~国 [UNK] [UNK] 中 ~国".split()
    plain = tokenize_documents(tokenizer, texts)
    np.testing.assert_array_equal(plain.token_ids, documents.token_ids)
    assert plain.continues.sum() == 1


def test_chinese_words_without_jieba_say_what_to_install(monkeypatch):
    from keras_bert_impl.text import words

    words._segmenter.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "jieba", None)
    with pytest.raises(ValueError, match=r"need jieba: pip install 'keras-bert-impl\[chinese\]'"):
        tokenize_documents(BertTokenizer(Vocab(WORDS)), [["中国"]], chinese_words=True)
