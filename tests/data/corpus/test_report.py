"""The figures of a corpus."""

from __future__ import annotations

import json
import pickle
import random

import pytest

from keras_bert_impl.data.corpus import CorpusReport
from keras_bert_impl.data.corpus import report as report_module
from keras_bert_impl.data.corpus.documents import CUT_LINE, REDIRECT


def test_figures():
    report = CorpusReport()
    report.add_document(["One two.", "Three.", "One two."], lengths=[3, 2, 3], unknown=2)
    report.add_document(["Three."], lengths=[2])
    report.add_document([], lengths=[])
    report.skipped("a.xml: A", REDIRECT)
    report.skipped("a.txt:5", CUT_LINE)
    figures = report.to_dict()
    assert json.loads(json.dumps(figures)) == {
        "documents": 2,
        "sentences": 4,
        "tokens": 10,
        "characters": 28,
        "tokens_per_sentence": 2.5,
        "sentences_per_document": 2.0,
        "one_sentence_documents": 1,
        "duplicate_line_rate": 0.5,
        "duplicate_line_rate_is_exact": True,
        "unknown_rate": 0.2,
        "skipped": {REDIRECT: {"count": 1, "examples": ["a.xml: A"]}},
        "cut": {CUT_LINE: {"count": 1, "examples": ["a.txt:5"]}},
    }
    text = "\n".join(report.lines())
    for part in ("2\n", "4 (2.0 a document)", "10 (2.5 a sentence)", "20.00%", "28", "50.0%"):
        assert part in text
    assert f"1: {REDIRECT} (such as a.xml: A)" in text


def test_an_empty_report():
    report = CorpusReport()
    assert report.to_dict()["duplicate_line_rate"] == 0
    assert report.notes() == []


def sentences(seed, count, kinds):
    source = random.Random(seed)
    return [f"Sentence {source.randrange(kinds)}." for _ in range(count)]


@pytest.mark.parametrize("most", [1 << 17, 1 << 9])
def test_merged_reports_are_the_report_of_all(monkeypatch, most):
    monkeypatch.setattr(report_module, "_MOST_HASHES", most)
    whole = CorpusReport()
    parts = [CorpusReport() for _ in range(3)]
    for number in range(60):
        found = sentences(number, 100 if number else 5000, 4000)
        for report in (whole, parts[number % 3]):
            report.add_document(found, [2] * len(found), unknown=number)
            report.skipped("a", REDIRECT)
    merged = CorpusReport()
    for part in reversed(parts):
        merged.merge(pickle.loads(pickle.dumps(part)))
    assert merged.to_dict() == whole.to_dict()
    assert whole.to_dict()["duplicate_line_rate_is_exact"] == (most > 4000)


def test_the_rate_of_a_large_corpus_is_estimated_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(report_module, "_MOST_HASHES", 1 << 12)
    report = CorpusReport()
    seen = set()
    total = 0
    for number in range(40):
        found = sentences(number, 2500, 80_000)
        report.add_document(found)
        seen.update(found)
        total += len(found)
        assert len(report._hashes) <= 1 << 12
    assert report.duplicate_line_rate == pytest.approx(1 - len(seen) / total, abs=0.02)
    assert "about" in "\n".join(report.lines())


@pytest.mark.parametrize(
    ("documents", "note"),
    [
        ([["A.", "B."]], "the corpus is one document"),
        ([["A."], ["B."], ["C.", "D."]], "2 of 3 documents have one sentence and no next one"),
        ([["A.", "B."], ["A.", "B."]], "50% of the lines are repetitions"),
    ],
)
def test_notes(documents, note):
    report = CorpusReport()
    for found in documents:
        report.add_document(found)
    assert any(note in line for line in report.notes()), report.notes()
    assert any(note in line for line in report.lines())


def test_a_vocabulary_that_does_not_fit_is_noted():
    report = CorpusReport()
    report.add_document(["A.", "B."], [10, 10], unknown=2)
    report.add_document(["C.", "D."], [10, 10])
    assert report.notes() == []
    report.add_document(["E.", "F."], [1, 1], unknown=2)
    assert any("[UNK]" in note for note in report.notes())
