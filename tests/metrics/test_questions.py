"""Scores of answers: published predictions, the official scripts' cases, messages."""

from __future__ import annotations

import json

import pytest

from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.metrics.chinese_answers import f1_by_characters, segments, without_punctuation
from keras_bert_impl.metrics.questions import (
    cmrc_scores,
    mlqa_scores,
    squad_scores,
    squad_v2_scores,
)


def gold(*paths) -> dict[str, list[str]]:
    return {
        question.id: [answer.text for answer in question.answers]
        for path in paths
        for question in read_questions(path).questions
    }


@pytest.fixture(scope="module")
def squad(shared):
    folder = shared / "data/qa_squad"
    return folder, json.loads((folder / "expected_scores.json").read_text())


def test_published_predictions_on_squad_1(squad):
    folder, expected = squad
    predictions = json.loads((folder / "predictions/v1.1_bert_ensemble.json").read_text())
    parts = [folder / f"dev-v1.1.part{part}.json" for part in (1, 2)]
    files = (parts, parts[:1], parts[1:], [folder.parent / "qa_xquad/xquad.en.json"])
    wanted = expected["scores"]["v1.1_bert_ensemble"].values()
    for paths, scores in zip(files, wanted, strict=True):
        assert squad_scores(gold(*paths), predictions) == scores


def test_published_predictions_on_squad_2(squad):
    folder, expected = squad
    predictions = json.loads((folder / "predictions/v2.0_bert_single.json").read_text())
    parts = [folder / f"dev-v2.0.part{part}.json" for part in (1, 2)]
    wanted = expected["scores"]["v2.0_bert_single"].values()
    for paths, scores in zip((parts, parts[:1], parts[1:]), wanted, strict=True):
        assert squad_v2_scores(gold(*paths), predictions) == scores
    answers = gold(*parts)
    odds = {number: int(number[-6:], 16) % 1000 / 1000 for number in answers}
    for threshold in (1.0, 0.5):
        scores = expected["na_prob_scores"][f"v2.0_bert_single, threshold {threshold}"]
        assert squad_v2_scores(answers, predictions, odds, threshold) == scores


def test_normalization_cases(squad):
    for case in squad[1]["normalization_cases"]:
        scores = squad_scores({"a": [case["gold"]]}, {"a": case["prediction"]})
        assert scores == {"exact_match": 100.0 * case["exact"], "f1": 100.0 * case["f1"]}


def test_cmrc_rule(shared):
    folder = shared / "data/qa_cmrc2018"
    expected = json.loads((folder / "expected_scores.json").read_text())
    answers = gold(folder / "cmrc2018_dev.json")
    predictions = json.loads((folder / "predictions_rule.json").read_text())
    wanted = expected["predictions_rule.json"]
    assert cmrc_scores(answers, predictions) == {
        "exact_match": wanted["EM"],
        "f1": wanted["F1"],
        "average": wanted["AVERAGE"],
    }
    first = {number: golds[0] for number, golds in answers.items()}
    assert cmrc_scores(answers, first)["average"] == 100.0
    for case in expected["cases"]:
        assert segments(case["prediction"]) == case["pred_segments"]
        assert segments(case["gold"]) == case["gold_segments"]
        assert f1_by_characters(case["gold"], case["prediction"]) == case["f1"]
        same = without_punctuation(case["gold"]) == without_punctuation(case["prediction"])
        assert int(same) == case["em"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京BBC News台", ["北", "京", "bbc", "news", "台"]),
        ("don't (we) pay $3.50, 1,000?", "do n't ( we ) pay $ 3.50 , 1,000 ?".split()),
        ("we cannot.", ["we", "can", "not", "."]),
        ("《》，。", []),
        ("a\nb", ["a", "b"]),
    ],
)
def test_segments(text, expected):
    assert segments(text) == expected


def test_the_best_gold_answer_counts():
    scores = squad_scores({"a": ["one two", "one"], "b": ["x"]}, {"a": "The One!", "b": "y x"})
    assert scores == {"exact_match": 50.0, "f1": 100.0 * (1 + 2 / 3) / 2}


def test_no_answer():
    answers = {"a": ["x"], "b": [], "c": ["the"]}
    scores = squad_v2_scores(answers, {"a": "", "b": "", "c": ""})
    assert (scores["HasAns_total"], scores["NoAns_total"]) == (2, 1)
    # "the" is nothing once articles are removed, as in the official script.
    assert (scores["exact"], scores["HasAns_exact"], scores["NoAns_exact"]) == (200 / 3, 50, 100)
    assert "HasAns_total" not in squad_v2_scores({"b": []}, {"b": ""})


def test_best_threshold():
    answers = {"a": ["x"], "b": ["y"], "c": [], "d": []}
    predictions = {"a": "x", "b": "y", "c": "z", "d": "z"}
    odds = {"a": -3.0, "b": 1.0, "c": 2.0, "d": 4.0}
    scores = squad_v2_scores(answers, predictions, odds)
    assert (scores["exact"], scores["best_exact"], scores["best_exact_thresh"]) == (50, 100, 1.0)
    assert squad_v2_scores(answers, predictions, odds, 1.0)["exact"] == 100
    worse = squad_v2_scores({"c": [], "d": []}, predictions, odds)
    assert (worse["best_f1"], worse["best_f1_thresh"]) == (100.0, 0.0)


@pytest.mark.parametrize(
    ("language", "gold_text", "prediction", "exact", "f1"),
    [
        ("zh", "北京大学", "北京", 0.0, 200 / 3),
        ("zh", "北京，大学", "北京大学。", 100.0, 100.0),
        ("de", "der Hund", "ein Hund", 100.0, 100.0),
        ("hi", "भारत।", "भारत", 100.0, 100.0),
        ("en", "“the cat”", "cat", 100.0, 100.0),
    ],
)
def test_mlqa(language, gold_text, prediction, exact, f1):
    scores = mlqa_scores({"a": [gold_text]}, {"a": prediction}, language)
    assert scores == {"exact_match": exact, "f1": pytest.approx(f1)}


def test_a_missing_prediction_counts_0_and_is_named(caplog):
    answers = {"a": ["x"], "b": ["y"]}
    assert squad_scores(answers, {"a": "x"}) == {"exact_match": 50.0, "f1": 50.0}
    assert "1 of 2 questions have no prediction and count 0, e.g. b" in caplog.text
    assert cmrc_scores(answers, {"b": "y"})["f1"] == 50.0
    assert squad_v2_scores(answers, {"a": "x"})["HasAns_exact"] == 50.0


def test_messages():
    with pytest.raises(ValueError, match="expected at least one question"):
        squad_scores({}, {})
    with pytest.raises(ValueError, match=r"1 questions have no gold answer, e\.g\. 'b'"):
        cmrc_scores({"a": ["x"], "b": []}, {})
    with pytest.raises(ValueError, match="language must be one of en, es"):
        mlqa_scores({"a": ["x"]}, {}, "fr")
    with pytest.raises(ValueError, match="a threshold needs null_odds"):
        squad_v2_scores({"a": []}, {"a": ""}, threshold=1.0)
    with pytest.raises(ValueError, match=r"null_odds: none for 1 predictions, e\.g\. 'a'"):
        squad_v2_scores({"a": []}, {"a": ""}, {})
