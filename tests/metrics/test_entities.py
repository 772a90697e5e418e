"""Entity scores: seqeval and conlleval to the last digit, and what each of them leaves open."""

from __future__ import annotations

import json
import random
import warnings

import numpy as np
import pytest
from seqeval import metrics as seqeval
from seqeval.scheme import IOB2, IOBES

from keras_bert_impl.metrics import conlleval, entity_scores, span_scores
from keras_bert_impl.text.tag_schemes import Span


def same_report(ours, theirs) -> None:
    assert set(ours) == set(theirs)
    for name, row in theirs.items():
        for key, value in row.items():
            assert ours[name][key] == value, (name, key)


@pytest.fixture(scope="module")
def reference(shared):
    return json.loads((shared / "reference/ner_metrics.json").read_text())


@pytest.fixture(scope="module")
def chunks(shared):
    """Gold and predicted tags of the file that comes with conlleval."""
    gold, predicted = [[]], [[]]
    for line in (shared / "reference/ner_ground_truth.txt").read_text().split("\n"):
        if line.strip():
            *_, one, other = line.split()
            gold[-1].append(one)
            predicted[-1].append(other)
        else:
            gold.append([])
            predicted.append([])
    return gold, predicted


def test_golden_file_of_conlleval(reference, chunks):
    expected = reference["ground_truth.txt (chunking, columns token POS gold pred)"]
    for key, strict in (("default", False), ("strict_IOB2", True)):
        scores = entity_scores(*chunks, strict=strict)
        assert scores[:4] == tuple(
            expected[key][name] for name in ("precision", "recall", "f1", "accuracy")
        )
        same_report(scores.report, expected[key]["report"])
    assert conlleval(*chunks) == expected["conlleval_pl"]


def test_golden_tags_of_wnut(reference):
    values = reference["wnut_dev_corrupted"]
    for key, strict in (("default", False), ("strict_IOB2", True)):
        scores = entity_scores(values["y_true"], values["y_pred"], strict=strict)
        expected = values[f"scores_first150_{key}"]
        assert scores[:4] == tuple(
            expected[name] for name in ("precision", "recall", "f1", "accuracy")
        )
        same_report(scores.report, expected["report"])


@pytest.mark.parametrize("letters", ["BIO", "BIOES"])
@pytest.mark.parametrize("seed", range(20))
def test_equals_seqeval_on_random_tags(letters, seed):
    choose = random.Random(seed)
    tags = ["O", *(f"{a}-{t}" for a in letters if a != "O" for t in ("PER", "a-b", "LOC"))]
    gold, predicted = (
        [choose.choices(tags, k=n) for n in (1, 5, 9, 30)] for _ in ("gold", "predicted")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loose = seqeval.classification_report(gold, predicted, output_dict=True)
        strict = seqeval.classification_report(
            gold,
            predicted,
            output_dict=True,
            mode="strict",
            scheme=IOB2 if letters == "BIO" else IOBES,
        )
    same_report(entity_scores(gold, predicted).report, loose)
    same_report(entity_scores(gold, predicted, strict=True).report, strict)
    assert entity_scores(gold, predicted).accuracy == seqeval.accuracy_score(gold, predicted)


def test_types_are_told_by_the_whole_rest_of_the_tag():
    scores = entity_scores([["B-creative-work", "O"]], [["B-creative-play", "O"]])
    assert scores.f1 == 0
    assert set(scores.report) >= {"creative-work", "creative-play"}


def test_schemes_may_differ():
    bioes = [["B-PER", "E-PER", "S-LOC"]]
    assert entity_scores(bioes, [["I-PER", "I-PER", "I-LOC"]]).f1 == 1
    assert entity_scores(bioes, [["B-PER", "M-PER", "B-LOC"]]).f1 == 1


def test_segmentation_counts_words():
    scores = entity_scores([["B", "E", "S", "S"]], [["B", "E", "B", "E"]])
    assert (scores.precision, scores.recall) == (1 / 2, 1 / 3)


def test_spans_of_characters():
    gold = [{("name", 9, 11)}, {("org", 0, 3), ("org", 3, 5)}]
    scores = span_scores(gold, [[Span("name", 9, 11)], [Span("org", 0, 5)]])
    assert (scores.precision, scores.recall, scores.f1) == (1 / 2, 1 / 3, pytest.approx(0.4))
    assert scores.accuracy is None


def test_no_entities_at_all():
    scores = entity_scores([["O", "O"], []], [["O", "O"], []])
    assert scores[:4] == (0, 0, 0, 1)
    assert np.isfinite([v for row in scores.report.values() for v in row.values()]).all()
    assert conlleval([["O"]], [["O"]]).startswith("processed 1 tokens with 0 phrases; found: 0")


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([["O"], ["O"]], [["O"]], "2 sentences have labels and 1 predictions"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sentence 2: 2 labels and 1 predictions"),
    ],
)
def test_numbers_that_differ(labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        entity_scores(labels, predictions)
