"""Words to rows: one labelled piece a word, whatever its length and that of its sentence."""

from __future__ import annotations

import random

import numpy as np
import pytest

from keras_bert_impl.data.windows import encode_words
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

LETTERS = "abcdefg"
VOCAB = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{c}" for c in LETTERS)])
CLS, SEP, UNK = VOCAB.cls_id, VOCAB.sep_id, VOCAB.unk_id


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCAB)


def test_a_sentence_that_fits(tokenizer):
    found = encode_words(tokenizer, [["ab", "c"], [], ["d"]])
    a, b, c, d = (VOCAB.token_to_id(t) for t in ("a", "##b", "c", "d"))
    assert found.rows.token_ids.tolist() == [CLS, a, b, c, SEP, CLS, d, SEP]
    assert found.rows.lengths.tolist() == [5, 3]
    assert found.lengths.tolist() == [2, 0, 1]
    assert found.spread([7, 8, 9]).tolist() == [0, 7, 0, 8, 0, 0, 9, 0]
    assert found.weights().tolist() == [0, 1, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("word", ["\u200b", "\x00", "\ufffd", "", " "])
def test_a_word_without_pieces_has_one(tokenizer, word):
    found = encode_words(tokenizer, [["a", word, "b"]])
    assert found.rows.token_ids[found.positions[1]] == UNK
    assert len(found.positions) == 3


@pytest.mark.parametrize("seed", range(40))
def test_each_word_has_one_label(tokenizer, seed):
    choose = random.Random(seed)
    max_length = choose.randint(3, 20)
    overlap = choose.choice([None, 0, (max_length - 2) // 2, max_length - 3])
    sentences = [
        [
            "".join(choose.choices(LETTERS, k=choose.choice([1, 1, 2, 3, 5, 12])))
            for _ in range(choose.randint(1, 40))
        ]
        for _ in range(5)
    ]
    found = encode_words(tokenizer, sentences, max_length=max_length, overlap=overlap)
    words = [word for sentence in sentences for word in sentence]
    assert found.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert len(set(found.positions.tolist())) == len(words)
    ids = found.rows.token_ids
    assert [VOCAB.id_to_token(i) for i in ids[found.positions]] == [word[0] for word in words]
    assert found.rows.lengths.max() <= max_length
    assert (ids[found.rows.starts] == CLS).all()
    assert (ids[found.rows.starts + found.rows.lengths - 1] == SEP).all()
    assert found.weights().sum() == len(words)


def test_400_words_take_the_label_with_most_context(tokenizer):
    found = encode_words(tokenizer, [list("abcdefg" * 57 + "a")], max_length=66, overlap=32)
    row = np.searchsorted(found.rows.starts, found.positions, side="right") - 1
    column = found.positions - found.rows.starts[row]
    assert len(found.positions) == 400
    assert found.windowed == 1
    inner = (row > 0) & (row < row.max())
    assert column[inner].min() >= 16
    assert (found.rows.lengths[row] - 1 - column)[inner].min() >= 16
    assert found.rows.lengths[-1] == 66


def test_one_word_longer_than_a_row(tokenizer, caplog):
    found = encode_words(tokenizer, [["a", "b" * 50, "c"]], max_length=10)
    assert found.cut == 1
    assert "1 words have more than 8 pieces" in caplog.text
    assert [VOCAB.id_to_token(i) for i in found.rows.token_ids[found.positions]] == list("abc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sentences": [[], []]}, "expected at least one word, got none"),
        ({"sentences": [["a"]], "max_length": 2}, "max_length must be at least 3, got 2"),
        ({"sentences": [["a"]], "max_length": 9, "overlap": 7}, r"overlap must be in \[0, 7\)"),
    ],
)
def test_bad_arguments(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        encode_words(tokenizer, **arguments)
