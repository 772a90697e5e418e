"""Served answers to real questions and tags of real texts, English and Chinese."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.serving.kinds import signatures_of
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.serving.runs import make_run
from tests.serving.test_kinds import check_tagged
from tests.serving.tiny import CONFIG


@pytest.fixture(scope="module")
def tokenizer(shared):
    vocab = Vocab.load(shared / "data/vocab/bert-base-multilingual-cased-vocab.txt")
    return BertTokenizer(vocab, lowercase=False)


def served(kind, tokenizer, **options):
    config = CONFIG.replace(vocab_size=len(tokenizer.vocab), max_position_embeddings=128)
    run = make_run(kind, config, tokenizer, **options)
    signatures = signatures_of(
        kind, run.model, run.tokenizer, labels=run.labels, options=run.options
    )
    endpoint = signatures.endpoints()["serving_default"]
    return run, tf.function(endpoint.function, input_signature=endpoint.specs)


def some_questions(shared, step):
    for language in ("en", "zh"):
        found = read_questions(shared / f"data/qa_xquad/xquad.{language}.json")
        for question in found.questions[::step]:
            yield question.text, found.contexts[question.context]


def test_answers(shared, tokenizer):
    lengths = {"max_length": 96, "doc_stride": 24, "max_query_length": 20}
    run, call = served("question-answering", tokenizer, unanswerable=True, **lengths)
    questions, contexts = map(list, zip(*some_questions(shared, 60), strict=True))
    assert len(questions) == 40
    answers = call(question=tf.constant(questions), context=tf.constant(contexts))
    expected = run.predict(questions, contexts)
    assert [text.decode() for text in answers["answer"].numpy()] == [one.text for one in expected]
    assert answers["start"].numpy().tolist() == [one.start for one in expected]
    assert answers["end"].numpy().tolist() == [one.end for one in expected]
    for name, values in (
        ("score", [one.probability for one in expected]),
        ("null_odds", [one.null_odds for one in expected]),
    ):
        np.testing.assert_allclose(answers[name], values, atol=1e-4)
    assert len({one.text for one in expected}) > 20


def test_tags(shared, tokenizer):
    run, call = served("token-classification", tokenizer, max_length=48)
    texts = [context for _, context in some_questions(shared, 120)]
    answers = {name: value.numpy() for name, value in call(text=tf.constant(texts)).items()}
    found = run.predict(texts)
    assert min(len(one.words) for one in found) > 46  # several windows each
    starts, ends, counts = (answers[name] for name in ("starts", "ends", "word_count"))
    offsets = [
        list(zip(starts[row][:count], ends[row][:count], strict=True))
        for row, count in enumerate(counts)
    ]
    for text, places, one in zip(texts, offsets, found, strict=True):
        assert [text[start:end] for start, end in places] == one.words
    check_tagged(answers, found, offsets)
