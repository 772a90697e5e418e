"""Answers from logits: Google's predictions, offsets, "no answer", properties, messages."""

from __future__ import annotations

import json

import numpy as np
import pytest

from keras_bert_impl.data.document_windows import encode_questions
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.decoding.spans import decode_spans, predict_logits, write_answers
from keras_bert_impl.models import BertSpanPredictor
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.checks import CONFIG
from tests.decoding.google_spans import n_best_of

WORDS = "who a b c d e f ##g 北 京 .".split()
TOKENIZER = BertTokenizer(Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]))
SHORT = {"max_length": 12, "max_query_length": 3, "doc_stride": 3}
ODD = "a\u00a0b\u200bc\t d\U0001f600e 北京\u3000f\u2003ag . \r\nb"
CONTEXTS = [ODD, "a", "a b c d e f " * 4, "\u200b", "北京北京", "ag ag ag"]


def some_windows():
    questions = QuestionSet.of(["who", "who a b c", "a", "who", "who", "\u200b b"], CONTEXTS)
    return encode_questions(TOKENIZER, questions, **SHORT)


def some_logits(windows, seed: int, decimals: int = 1):
    """Few different values, so that many are equal."""
    shape = (2, len(windows), SHORT["max_length"])
    return np.random.default_rng(seed).normal(size=shape).round(decimals).astype("float32")


def test_predictions_are_those_of_google(shared, minilm):
    golden = json.loads((shared / "reference/google_write_predictions_v1.json").read_text())
    found = read_questions(shared / "data/qa_xquad/xquad.en.json")
    by_id = {question.id: question for question in found.questions}
    windows = encode_questions(
        BertTokenizer.from_pretrained(minilm),
        QuestionSet(found.contexts, [by_id[number] for number in golden["predictions"]]),
        max_length=128,
        doc_stride=48,
        max_query_length=32,
    )
    _, starts, ends = zip(*golden["logits"], strict=True)
    answers = decode_spans(
        windows, np.array(starts), np.array(ends), n_best=10, max_answer_length=20
    )
    assert {answer.id: answer.text for answer in answers} == golden["predictions"]
    for answer in answers:
        context = found.contexts[by_id[answer.id].context]
        assert answer.text == context[answer.start : answer.end]
        for ours, theirs in zip(answer.candidates, golden["nbest_top5"][answer.id], strict=False):
            assert ours.text == theirs["text"] == context[ours.start : ours.end]
            assert ours.start_logit == theirs["start_logit"]
            assert ours.end_logit == theirs["end_logit"]
            assert ours.probability == pytest.approx(theirs["probability"], abs=1e-12)


def test_offsets_give_what_google_projects_words_to(shared, minilm):
    """Its cases whose words are pieces of the text; else it returns the text as it is."""
    tokenizer = BertTokenizer.from_pretrained(minilm)
    cases = json.loads((shared / "reference/google_get_final_text.json").read_text())["cases"]
    compared = 0
    for case in cases:
        tokens = tokenizer.tokenize([case["orig_text"]])
        ids, wanted = (
            x.ids[0].numpy().tolist() for x in (tokens, tokenizer.tokenize([case["pred_text"]]))
        )
        places = [i for i in range(len(ids)) if ids[i : i + len(wanted)] == wanted]
        if not places:
            assert case["result"] == case["orig_text"]
            continue
        start = int(tokens.starts[0][places[0]])
        end = int(tokens.ends[0][places[0] + len(wanted) - 1])
        assert case["orig_text"][start:end] == case["result"]
        compared += 1
    assert compared >= len(cases) - 1


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize(("n_best", "max_answer_length"), [(20, 30), (3, 2), (1, 1)])
def test_the_lists_are_those_of_plain_loops(n_best, max_answer_length, negative):
    windows = some_windows()
    for seed in range(10):
        starts, ends = some_logits(windows, seed)
        answers = decode_spans(
            windows,
            starts,
            ends,
            n_best=n_best,
            max_answer_length=max_answer_length,
            unanswerable=negative,
        )
        plain = (x.astype("float64").tolist() for x in (starts, ends))
        expected = n_best_of(windows, *plain, n_best, max_answer_length, negative)
        for answer, wanted in zip(answers, expected, strict=True):
            found = [(c.text, c.start_logit, c.end_logit) for c in answer.candidates]
            assert found == (wanted or [("", 0.0, 0.0)])


def test_every_answer_is_a_part_of_its_context():
    windows = some_windows()
    answers = decode_spans(windows, *some_logits(windows, 0, 5), unanswerable=True)
    assert [answer.id for answer in answers] == [str(i) for i in range(len(CONTEXTS))]
    for answer, context in zip(answers, CONTEXTS, strict=True):
        assert answer.text == context[answer.start : answer.end]
        assert sum(c.probability for c in answer.candidates) == pytest.approx(1)
        assert len({c.text for c in answer.candidates}) == len(answer.candidates)
        for candidate in answer.candidates:
            assert candidate.text == context[candidate.start : candidate.end]
            assert candidate.text == candidate.text.strip()


def test_an_end_before_the_start_never_wins():
    windows = encode_questions(TOKENIZER, QuestionSet.of(["who"], ["a b c"]), **SHORT)
    starts, ends = np.zeros((2, 1, 7))
    starts[0, 5], ends[0, 3], ends[0, 5] = 9, 9, 1
    assert decode_spans(windows, starts, ends)[0].text == "c"


def test_no_answer_wins_above_the_threshold():
    windows = encode_questions(TOKENIZER, QuestionSet.of(["who"], ["a b c"]), **SHORT)
    starts, ends = np.full((2, 1, 7), -5.0)
    starts[0, [0, 3]], ends[0, [0, 4]] = (1, 2), (1, 3)
    for threshold, text in ((-4.0, ""), (-3.0, "a b"), (0.0, "a b")):
        answer = decode_spans(windows, starts, ends, unanswerable=True, null_threshold=threshold)[0]
        assert answer.null_odds == -3.0
        assert answer.text == text
    assert decode_spans(windows, starts, ends)[0].null_odds is None


def test_a_context_of_nothing_has_no_answer():
    """Google's script fails here: no candidate is left."""
    windows = encode_questions(TOKENIZER, QuestionSet.of(["who"], ["\u200b"]), **SHORT)
    starts, ends = np.ones((2, 1, 4))
    answer = decode_spans(windows, starts, ends)[0]
    assert (answer.text, answer.start, answer.end, answer.probability) == ("", 0, 0, 1.0)
    answer = decode_spans(windows, starts, ends, unanswerable=True)[0]
    assert (answer.text, answer.null_odds) == ("", 2.0)
    assert [candidate.text for candidate in answer.candidates] == [""]


def test_padding_and_batch_size_change_nothing():
    windows = some_windows()
    config = CONFIG.replace(vocab_size=len(TOKENIZER.vocab))
    model = BertSpanPredictor(config)
    starts, ends = predict_logits(model, windows, batch_size=32)
    for size in (1, 4):
        for found, expected in zip(
            predict_logits(model, windows, batch_size=size), (starts, ends), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-5)
    expected = decode_spans(windows, starts, ends)
    wide = [np.pad(x, ((0, 0), (0, 9)), constant_values=-1e9) for x in (starts, ends)]
    assert decode_spans(windows, *wide) == expected
    one = QuestionSet.of([windows.questions.questions[2].text], [CONTEXTS[2]])
    alone = encode_questions(TOKENIZER, one, **SHORT)
    answer = decode_spans(alone, *predict_logits(model, alone))[0]
    assert (answer.text, answer.start) == (expected[2].text, expected[2].start)


def test_no_batch_is_wider_than_the_model():
    config = CONFIG.replace(vocab_size=len(TOKENIZER.vocab), max_position_embeddings=12)
    starts, _ = predict_logits(BertSpanPredictor(config), some_windows())
    assert starts.shape[1] == 12


def test_files(tmp_path):
    windows = some_windows()
    answers = decode_spans(windows, *some_logits(windows, 0), unanswerable=True)
    write_answers(answers, tmp_path / "run")
    predictions, n_best, odds = (
        json.loads((tmp_path / "run" / f"{name}.json").read_text("utf-8"))
        for name in ("predictions", "nbest_predictions", "null_odds")
    )
    assert predictions == {answer.id: answer.text for answer in answers}
    assert odds == {answer.id: answer.null_odds for answer in answers}
    assert n_best["0"][0] == answers[0].candidates[0]._asdict()
    write_answers(decode_spans(windows, *some_logits(windows, 0)), tmp_path / "other")
    assert not (tmp_path / "other/null_odds.json").exists()


def test_messages():
    windows = some_windows()
    starts, ends = some_logits(windows, 0)
    with pytest.raises(ValueError, match=r"end_logits: expected the shape \[\d+, at least 12\], "):
        decode_spans(windows, starts, ends[:, :5])
    with pytest.raises(ValueError, match="start_logits: expected the shape"):
        decode_spans(windows, starts[1:], ends)
    with pytest.raises(ValueError, match="must be at least 1, got 0 and 30"):
        decode_spans(windows, starts, ends, n_best=0)
