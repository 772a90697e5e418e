"""Words that a graph finds against those that Python finds."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.tagged_json import split_words
from keras_bert_impl.text.characters import Characters, find_words, valid_utf8

ODD = [
    "",
    " ",
    'He likes "北京", U.S.',
    "(\u200b)",
    "\u200b",
    "...",
    "!a!",
    "a\n\nb\r\n",
    "北京大学 👍🏽e\u0301",
    "\ufeffa\0b\ufffd",
    "\uffff \U0010ffff",
]
ALPHABET = [*"ab!., \n\t", "北", "，", "\u200b", "\0", "é", "\u0301", "👍", "\u3000", "\U00020000"]


def found(texts):
    strings = valid_utf8(tf.constant(texts, tf.string, [len(texts)]))
    return find_words(strings, Characters(strings))


def check(texts):
    words = found(texts)
    for row, text in enumerate(texts):
        expected, offsets = split_words(text)
        assert [word.decode() for word in words.strings[row].numpy()] == expected
        places = zip(words.starts[row].numpy(), words.ends[row].numpy(), strict=True)
        assert [(int(start), int(end)) for start, end in places] == offsets


def test_odd_texts():
    check(ODD)


def test_random_texts():
    choose = random.Random(0)
    check(["".join(choose.choices(ALPHABET, k=choose.randint(0, 30))) for _ in range(500)])
    every = [chr(c) for c in range(1, 0x110000, 97) if not 0xD800 <= c < 0xE000]
    check(["".join(choose.choices(every, k=20)) for _ in range(200)])


def test_no_texts():
    assert found([]).strings.shape[0] == 0


def test_broken_utf8_is_no_word():
    strings = valid_utf8(tf.constant([b"\xff\xfe a\xc3", b"\xed\xa0\x80"]))
    words = find_words(strings, Characters(strings))
    # Deleted characters stay a part of the word they touch, as in Python.
    assert words.strings.to_list() == [["a\ufffd".encode()], []]
    assert split_words("\ufffd\ufffd a\ufffd")[1] == [(3, 5)]
    np.testing.assert_array_equal(words.starts.flat_values, [3])


def test_parts_are_cut_at_characters():
    characters = Characters(tf.constant(["a北👍e\u0301", "xy"]))
    parts = characters.parts(tf.constant([0, 1, 0, 0]), [1, 0, 0, 2], [3, 2, 0, 5])
    assert [part.decode() for part in parts.numpy()] == ["北👍", "xy", "", "👍e\u0301"]
