from __future__ import annotations

import json
import logging
import math
import warnings

import numpy as np
import pytest

from keras_bert_impl import metrics

LABELS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]  # 3 true positives, 1 missed, 2 false, 4 right 0


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_by_hand(kind):
    labels, predictions = kind(LABELS), kind(PREDICTIONS)
    assert metrics.accuracy(labels, predictions) == 0.7
    assert metrics.f1(labels, predictions) == pytest.approx(2 * 3 / (4 + 5))
    assert metrics.f1(labels, predictions, positive=0) == pytest.approx(2 * 4 / (6 + 5))
    macro = (2 * 3 / 9 + 2 * 4 / 11) / 2
    assert metrics.f1(labels, predictions, average="macro") == pytest.approx(macro)
    matthews = (3 * 4 - 2 * 1) / math.sqrt(5 * 4 * 6 * 5)
    assert metrics.matthews_correlation(labels, predictions) == pytest.approx(matthews)
    assert metrics.confusion_matrix(labels, predictions).tolist() == [[4, 2], [1, 3]]


def test_names_as_classes():
    labels, predictions = ["pos", "neg", "pos"], ["pos", "pos", "pos"]
    assert metrics.accuracy(labels, predictions) == pytest.approx(2 / 3)
    assert metrics.f1(labels, predictions, positive="pos") == pytest.approx(0.8)
    assert metrics.confusion_matrix(labels, predictions, ["pos", "neg", "neutral"]).tolist() == [
        [2, 0, 0],
        [1, 0, 0],
        [0, 0, 0],
    ]


def test_one_class_only():
    assert metrics.matthews_correlation([0, 1, 1], [1, 1, 1]) == 0.0
    assert metrics.matthews_correlation([1, 1], [1, 1]) == 0.0
    assert metrics.f1([0, 0], [0, 0]) == 0.0
    assert metrics.f1([1, 1], [1, 1]) == 1.0
    assert metrics.f1([1, 1], [1, 1], average="macro") == 1.0
    assert metrics.confusion_matrix([2, 2], [2, 2], [0, 1, 2]).tolist() == [
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, 2],
    ]


def test_correlations_by_hand():
    labels, predictions = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 10.0]
    # Deviations -1.5 -0.5 0.5 1.5 and -3 -1 -2 6: products sum to 13, squares to 5 and 50.
    assert metrics.pearson(labels, predictions) == pytest.approx(13 / math.sqrt(5 * 50))
    # Ranks 1 3 2 4: squared differences sum to 2.
    assert metrics.spearman(labels, predictions) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert metrics.spearman([1, 2, 2, 3], [10, 20, 20, 30]) == pytest.approx(1)
    assert metrics.pearson(labels, [-value for value in labels]) == pytest.approx(-1)


@pytest.mark.parametrize("function", [metrics.pearson, metrics.spearman])
def test_constant_side_scores_zero_and_says_so(function, caplog):
    with caplog.at_level(logging.WARNING):
        assert function([1.0, 2.0, 3.0], [0.5, 0.5, 0.5]) == 0.0
        assert function([2, 2, 2], [1, 2, 3]) == 0.0
    assert "all predictions are 0.5" in caplog.text
    assert "all labels are 2" in caplog.text


@pytest.mark.parametrize("function", [metrics.pearson, metrics.spearman])
def test_correlations_of_bad_values(function):
    with pytest.raises(ValueError, match="at least two examples, got 1"):
        function([1.0], [1.0])
    with pytest.raises(ValueError, match=r"predictions\[1\]: expected a finite number, got nan"):
        function([1.0, 2.0], [1.0, math.nan])


@pytest.mark.parametrize(
    "function",
    [
        metrics.accuracy,
        metrics.f1,
        metrics.matthews_correlation,
        metrics.pearson,
        metrics.spearman,
        metrics.confusion_matrix,
        lambda labels, predictions: metrics.classification_report(labels, predictions, ["a", "b"]),
    ],
)
def test_lengths(function):
    with pytest.raises(ValueError, match=r"equally long, got shapes \[2\] and \[3\]"):
        function([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="are empty"):
        function([], [])
    with pytest.raises(ValueError, match=r"got shapes \[1, 2\] and \[1, 2\]"):
        function([[0, 1]], [[0, 1]])


def test_unknown_average_and_class():
    with pytest.raises(ValueError, match='"binary" or "macro", got \'micro\''):
        metrics.f1(LABELS, PREDICTIONS, average="micro")
    with pytest.raises(ValueError, match="unknown class 2; known classes: \\[0, 1\\]"):
        metrics.confusion_matrix([0, 2], [0, 1], [0, 1])


def test_report():
    report = metrics.classification_report(LABELS, PREDICTIONS, ["neg", "pos", "never"])
    assert json.loads(json.dumps(report)) == report
    assert report["accuracy"] == 0.7
    assert report["examples"] == 10
    assert report["confusion_matrix"] == [[4, 2, 0], [1, 3, 0], [0, 0, 0]]
    assert report["classes"]["pos"] == {
        "precision": pytest.approx(3 / 5),
        "recall": pytest.approx(3 / 4),
        "f1": pytest.approx(2 / 3),
        "support": 4,
    }
    assert report["classes"]["never"] == {"precision": 0, "recall": 0, "f1": 0, "support": 0}
    assert report["macro_f1"] == pytest.approx((2 / 3 + 8 / 11) / 2)
