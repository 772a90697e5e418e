"""Files of texts and pairs as the jobs read them; outputs that are whole or not there."""

from __future__ import annotations

import pytest

from keras_bert_impl import jobs
from tests.jobs.toy import toy, write_tsv

__all__ = ["toy"]


def test_pairs_by_the_names_of_their_columns(tmp_path):
    table = [("1", "a b", "c"), ("2", "d", "e f")]
    file = write_tsv(tmp_path / "p.tsv", table, "number\tleft\tright")
    pairs = jobs.read_pairs(file, jobs.InputOptions("right", "left"))
    assert pairs == (["c", "e f"], ["a b", "d"])


def test_lines_are_texts_blank_ones_too(tmp_path):
    (tmp_path / "t.txt").write_text("a, b\n\n中文\n", "utf-8")
    assert jobs.read_texts(tmp_path / "t.txt") == ["a, b", "", "中文"]


def test_one_text_a_row_is_no_pair(tmp_path):
    (tmp_path / "t.txt").write_text("a\nb\n", "utf-8")
    with pytest.raises(ValueError, match=r"t.txt: .*one text a row"):
        jobs.read_pairs(tmp_path / "t.txt")


def test_a_failure_leaves_no_file(toy, tmp_path):
    with pytest.raises(ValueError, match="element 1 is int"):
        jobs.write_features(toy.weights, ["a", 3], tmp_path / "x.npz")
    with pytest.raises(ValueError, match="expected at least one text, got none"):
        jobs.write_features(toy.weights, [], tmp_path / "x.npz")
    with pytest.raises(ValueError, match="head must be from 1 to 2, got 3"):
        jobs.view_attention(toy.weights, "a film", tmp_path / "x.html", head=3)
    assert list(tmp_path.iterdir()) == []


def test_the_cosines_are_symmetric(toy):
    found = jobs.compare_texts(toy.weights, ["a film", "dull", "great music"]).cosines
    for i, row in enumerate(found):
        assert row[i] == pytest.approx(1, abs=1e-6)
        assert row == pytest.approx([other[i] for other in found], abs=1e-6)
