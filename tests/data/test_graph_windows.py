"""Windows that a graph makes against those that are made for whole files."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.document_windows import encode_questions
from keras_bert_impl.data.graph_windows import question_rows, word_rows
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.data.windows import encode_words
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

LETTERS = "abcdefgh"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{c}" for c in LETTERS), "北", "京"]
TOKENIZER = BertTokenizer(Vocab(VOCAB))


def some_sentences(seed: int, longest_word: int):
    choose = np.random.default_rng(seed)
    letters = [*LETTERS, "\u200b"]
    sizes = [0, 1, 2, 30, 0, 7, 60, 0]
    return [
        ["".join(choose.choice(letters, choose.integers(0, longest_word))) for _ in range(size)]
        for size in sizes
    ]


@pytest.mark.parametrize("longest_word", [2, 30])
@pytest.mark.parametrize("max_length", [3, 9, 64])
def test_rows_of_words(max_length, longest_word):
    graph = tf.function(lambda words: word_rows(TOKENIZER, words, max_length=max_length))
    for seed in range(2):
        sentences = some_sentences(seed, longest_word)
        expected = encode_words(TOKENIZER, sentences, max_length=max_length)
        words = tf.ragged.constant(sentences, tf.string, ragged_rank=1)
        rows = graph(words)
        np.testing.assert_array_equal(rows.token_ids.flat_values, expected.rows.token_ids)
        np.testing.assert_array_equal(rows.token_ids.row_lengths(), expected.rows.lengths)
        np.testing.assert_array_equal(rows.positions, expected.positions)
        assert not rows.segment_ids.flat_values.numpy().any()


def test_no_words_are_no_rows():
    for sentences in ([], [[], []]):
        words = tf.ragged.constant(sentences, tf.string, ragged_rank=1)
        rows = word_rows(TOKENIZER, words, max_length=9)
        assert rows.token_ids.nrows() == 0
        assert rows.positions.shape == [0]


@pytest.mark.parametrize("doc_stride", [1, 3, 5])
def test_rows_of_questions(doc_stride):
    choose = np.random.default_rng(doc_stride)
    contexts = [" ".join(choose.choice([*LETTERS, "北京"], size)) for size in (1, 6, 7, 8, 40)]
    contexts.append("\u200b")
    questions = ["a b c d e f g", "a", "\u200b", "ab", "北京", "c d"]
    lengths = {"max_length": 14, "doc_stride": doc_stride, "max_query_length": 4}
    expected = encode_questions(TOKENIZER, QuestionSet.of(questions, contexts), **lengths)
    rows = question_rows(TOKENIZER, tf.constant(questions), tf.constant(contexts), **lengths)
    np.testing.assert_array_equal(rows.token_ids.flat_values, expected.rows.token_ids)
    np.testing.assert_array_equal(rows.token_ids.row_lengths(), expected.rows.lengths)
    np.testing.assert_array_equal(rows.question_of, expected.question_of)
    np.testing.assert_array_equal(rows.first_lengths, expected.rows.first_lengths)
    np.testing.assert_array_equal(rows.first_pieces, expected.first_pieces)
    np.testing.assert_array_equal(rows.piece_counts, expected.piece_counts)
    np.testing.assert_array_equal(rows.starts, expected.pieces.starts)
    np.testing.assert_array_equal(rows.ends, expected.pieces.ends)
    segments = (rows.token_ids.row_lengths() - rows.first_lengths).numpy()
    np.testing.assert_array_equal(tf.reduce_sum(rows.segment_ids, axis=1), segments)
