"""Each example runs; the similarity of sentences gives MiniLM's published figure."""

from __future__ import annotations

import csv
import importlib.util

import pytest

from tests.conftest import REPO
from tests.jobs.toy import toy  # noqa: F401


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, REPO / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_similarity_does_not_depend_on_the_company(toy):  # noqa: F811
    compare = example("sentence_similarity").similarity
    first, second = ["fine play", "a story"], ["the film was warm and witty . . . .", "dull"]
    together = compare(first, second, toy.weights)
    alone = [compare([a], [b], toy.weights)[0] for a, b in zip(first, second, strict=True)]
    assert together == pytest.approx(alone, abs=1e-5)


def test_sts_benchmark_of_minilm(shared, minilm):
    from scipy.stats import spearmanr

    file = shared / "data/stsb_multi/stsb-en-test.csv"
    with file.open(encoding="utf-8", newline="") as stream:
        first, second, scores = zip(*csv.reader(stream), strict=True)
    cosines = example("sentence_similarity").similarity(list(first), list(second), minilm)
    assert 100 * spearmanr(cosines, [float(s) for s in scores])[0] == pytest.approx(82.03, abs=0.02)


def test_finetune_and_export(toy, tmp_path, capsys):  # noqa: F811
    output = tmp_path / "toy_classifier"
    example("finetune_and_export").main(toy.train, toy.dev, output, weights=toy.weights, epochs=1)
    assert (output / "1" / "saved_model.pb").is_file()
    assert str(output / "1") in capsys.readouterr().out
