"""Answers that a graph finds against those that are found for whole files."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.document_windows import encode_questions
from keras_bert_impl.data.graph_windows import question_rows
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.decoding.graph_spans import best_answers
from keras_bert_impl.decoding.spans import decode_spans
from keras_bert_impl.models.span_predictor import PADDING_LOGIT
from keras_bert_impl.text.characters import Characters
from keras_bert_impl.text.tokenizer import BertTokenizer
from tests.decoding.test_spans import CONTEXTS, SHORT, TOKENIZER, some_logits, some_windows

QUESTIONS = ["who", "who a b c", "a", "who", "who", "\u200b b"]


def graph_of(tokenizer, lengths, **options):
    @tf.function
    def answers(questions, contexts, logits):
        rows = question_rows(tokenizer, questions, contexts, **lengths)
        found = best_answers(rows, logits, Characters(contexts), **options)
        return [column for column in found if column is not None]

    return answers


def without_padding(windows, starts, ends):
    """Logits [W, S] of both with padding as the model has it, and of the tokens, [tokens, 2]."""
    real = np.arange(starts.shape[1]) < windows.rows.lengths[:, None]
    dense = [np.where(real, x, PADDING_LOGIT).astype(np.float32) for x in (starts, ends)]
    return dense, np.stack([x[real] for x in dense], axis=1)


def check(columns, expected):
    texts, starts, ends, probabilities, *odds = (column.numpy().tolist() for column in columns)
    assert [text.decode() for text in texts] == [one.text for one in expected]
    assert starts == [one.start for one in expected]
    assert ends == [one.end for one in expected]
    np.testing.assert_allclose(probabilities, [one.probability for one in expected], rtol=1e-9)
    if expected and expected[0].null_odds is not None:
        np.testing.assert_allclose(odds[0], [one.null_odds for one in expected], atol=1e-12)


@pytest.mark.parametrize("unanswerable", [False, True])
@pytest.mark.parametrize(("n_best", "max_answer_length"), [(20, 30), (3, 2), (1, 1)])
def test_answers_are_those_of_predict(n_best, max_answer_length, unanswerable):
    options = {
        "n_best": n_best,
        "max_answer_length": max_answer_length,
        "unanswerable": unanswerable,
        "null_threshold": 0.3,
    }
    windows, graph = some_windows(), graph_of(TOKENIZER, SHORT, **options)
    empty = 0
    for seed in range(20):
        starts, ends = some_logits(windows, seed, decimals=seed % 3)
        dense, logits = without_padding(windows, starts, ends)
        expected = decode_spans(windows, *dense, **options)
        check(graph(tf.constant(QUESTIONS), tf.constant(CONTEXTS), logits), expected)
        empty += sum(not one.text for one in expected)
    assert empty < 20 * len(CONTEXTS)


def test_no_questions():
    graph = graph_of(
        TOKENIZER, SHORT, n_best=3, max_answer_length=3, unanswerable=True, null_threshold=0.0
    )
    none = tf.constant([], tf.string)
    assert [len(column) for column in graph(none, none, np.zeros([0, 2], np.float32))] == [0] * 5


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("unanswerable", [False, True])
def test_answers_to_real_questions(language, unanswerable, shared):
    """Contexts of several windows, logits that fall on all of them."""
    vocab = shared / "data/vocab/bert-base-multilingual-cased-vocab.txt"
    tokenizer = BertTokenizer(type(TOKENIZER.vocab).load(vocab), lowercase=False)
    found = read_questions(shared / f"data/qa_xquad/xquad.{language}.json")
    questions = found.questions[::24]
    lengths = {"max_length": 96, "doc_stride": 24, "max_query_length": 20}
    windows = encode_questions(tokenizer, QuestionSet(found.contexts, questions), **lengths)
    assert np.bincount(windows.question_of).max() > 4
    shape = (2, len(windows), int(windows.rows.lengths.max()))
    starts, ends = np.random.default_rng(5).normal(size=shape).round(2).astype(np.float32)
    options = {
        "n_best": 20,
        "max_answer_length": 30,
        "unanswerable": unanswerable,
        "null_threshold": -2.0,
    }
    dense, logits = without_padding(windows, starts, ends)
    expected = decode_spans(windows, *dense, **options)
    graph = graph_of(tokenizer, lengths, **options)
    contexts = [found.contexts[question.context] for question in questions]
    texts = tf.constant([question.text for question in questions])
    check(graph(texts, tf.constant(contexts), logits), expected)
    assert len({one.text for one in expected}) > len(expected) / 2
