"""The commands that look at texts: what they write and print, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

from keras_bert_impl import BertConfig, BertEncoder, BertPretrainer, BertTokenizer
from keras_bert_impl.analysis import (
    LAYER_CHOICES,
    contextual_vectors,
    next_sentence_probability,
    sentence_embeddings,
)
from keras_bert_impl.analysis.features import UNITS
from keras_bert_impl.analysis.similarity import POOLINGS
from keras_bert_impl.cli import analysing
from tests.cli.test_commands import refused, run
from tests.jobs.toy import CONFIG, VOCAB, toy, write_tsv

__all__ = ["toy"]
TEXTS = ["the film was great", "dull ! [b]", "a 中 story"]


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    BertPretrainer(BertConfig(**CONFIG)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCAB), encoding="utf-8")
    return folder


def model_of(folder, kind=BertEncoder):
    return kind.from_pretrained(folder), BertTokenizer.from_pretrained(folder)


def test_the_choices_are_those_of_the_package():
    assert tuple(analysing.Layers) == LAYER_CHOICES
    assert tuple(analysing.Unit) == UNITS
    assert tuple(analysing.Pooling) == POOLINGS


def test_features_to_npz(toy, tmp_path):
    output = tmp_path / "x.npz"
    arguments = ("features", *TEXTS, "--model", toy.weights, "--output", output)
    result = run(*arguments, "--layers", "embeddings", "--per", "word")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("12 vectors of 32 numbers, of 3 texts: ")
    expected = contextual_vectors(*model_of(toy.weights), TEXTS, layers="embeddings", per="word")
    with np.load(output, allow_pickle=False) as found:
        assert found["splits"].tolist() == [0, 4, 9, 12]
        assert found["tokens"].tolist() == [token for text in expected for token in text.tokens]
        assert found["starts"][10] == 2
        vectors = np.concatenate([text.vectors for text in expected])
        np.testing.assert_allclose(found["vectors"], vectors, atol=1e-5)
    refused(run(*arguments), f"{output} exists", "--force")
    assert run(*arguments, "--force").exit_code == 0


def test_features_of_a_file_to_jsonl(toy, tmp_path):
    source, output = tmp_path / "texts.txt", tmp_path / "x.jsonl"
    source.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    options = ("--model", toy.weights, "--input", source, "--output", output, "--json")
    result = run("features", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["texts"] == 3
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [line["text"] for line in lines] == TEXTS
    for line, text in zip(lines, contextual_vectors(*model_of(toy.weights), TEXTS), strict=True):
        assert line["tokens"] == text.tokens
        np.testing.assert_allclose(line["vectors"], text.vectors, atol=1e-5)


def test_similarity_of_texts(toy):
    vectors = sentence_embeddings(*model_of(toy.weights), TEXTS, pooling="max")
    options = ("--model", toy.weights, "--pooling", "max")
    result = run("similarity", *TEXTS[:2], *options)
    assert result.exit_code == 0, result.output
    assert float(result.stdout) == pytest.approx(vectors[0] @ vectors[1], abs=2e-4)
    table = run("similarity", *TEXTS, *options).stdout.splitlines()[1:]
    found = [[float(cell) for cell in line.split()[1:4]] for line in table]
    np.testing.assert_allclose(found, vectors @ vectors.T, atol=2e-4)
    assert table[1].rstrip().endswith("dull ! [b]")


def test_similarity_of_a_file(toy, tmp_path):
    pairs = write_tsv(tmp_path / "p.tsv", [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[2])], None)
    result = run("similarity", "--model", toy.weights, "--input", pairs)
    assert result.exit_code == 0, result.output
    alone = run("similarity", *TEXTS[:2], "--model", toy.weights).stdout
    assert result.stdout.splitlines() == [alone.strip(), "1.0000"]
    write_tsv(pairs, [("a", "b"), ("a", " ")], None)
    refused(run("similarity", "--model", toy.weights, "--input", pairs), f"{pairs}:2: a text of")


def test_next_sentence(pretrained, toy, tmp_path):
    wanted = next_sentence_probability(*model_of(pretrained, BertPretrainer), *TEXTS[:2])[0]
    result = run("next-sentence", *TEXTS[:2], "--model", pretrained)
    assert result.exit_code == 0, result.output
    assert float(result.stdout) == pytest.approx(wanted, abs=1e-4)
    pairs = write_tsv(tmp_path / "p.tsv", [(TEXTS[0], TEXTS[1])] * 2, None)
    many = run("next-sentence", "--input", pairs, "--model", pretrained).stdout.splitlines()
    assert many == [result.stdout.strip()] * 2
    message = f"{toy.weights} has no next-sentence head"
    refused(run("next-sentence", *TEXTS[:2], "--model", toy.weights), message)


def test_attention(toy, tmp_path):
    page, picture = tmp_path / "a.html", tmp_path / "a.png"
    options = ("--model", toy.weights, "--output", page, "--png", picture)
    result = run("attention", "great film", "--pair", "dull story", *options)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        f"7 tokens, 1 layers of 2 heads: {page}",
        f"heatmap: {picture}",
    ]
    assert "great film / dull story" in page.read_text("utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    refused(run("attention", "great", *options), f"{page} exists", "--force")
    assert run("attention", "great", *options, "--force").exit_code == 0
    refused(run("attention", " ", *options, "--force"), "the text has no token to look at")
    refused(
        run("attention", "great", *options, "--force", "--layer", 2), "layer must be from 1 to 1"
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["features", "a", "--output", "x.csv"], "expected a name that ends in .npz or .jsonl"),
        (["features", "a", "--output", "x.npz", "--layers", "sum-last-4"], "takes 4 layers"),
        (["similarity", "a"], "expected two texts or more to compare, got 1"),
        (["similarity", "a", ""], "text 2 is empty"),
    ],
)
def test_what_is_refused(toy, tmp_path, monkeypatch, arguments, part):
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments, "--model", toy.weights), part)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_model(toy, tmp_path):
    refused(run("similarity", "a", "b", "--model", tmp_path), str(tmp_path))
    (tmp_path / "vocab.txt").write_bytes((toy.weights / "vocab.txt").read_bytes())
    refused(
        run("attention", "a", "--model", tmp_path, "--output", tmp_path / "a.html"),
        f"{tmp_path} holds no weights that can be read",
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["similarity"], "expected texts as arguments, or --input FILE"),
        (["similarity", "a", "b", "--input", "f"], "expected texts as arguments, or --input FILE"),
        (["features", "a", "--output", "x.npz", "--layers", "first"], "'first' is not one of"),
        (["next-sentence", "a", "--model", "m"], "expected two texts, got 1"),
    ],
)
def test_usage_errors(arguments, part):
    result = run(*arguments)
    assert result.exit_code == 2
    assert part in result.stderr
