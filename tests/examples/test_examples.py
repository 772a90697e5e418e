"""Each example runs; the similarity of sentences gives MiniLM's published figure."""

from __future__ import annotations

import csv
import importlib.util

import pytest

from tests.conftest import REPO
from tests.jobs import pretraining_toy
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


PAGE = """<page><title>Page {n}</title><ns>0</ns><id>{n}</id><revision><id>{n}</id>
<model>wikitext</model><format>text/x-wiki</format><text>{text}</text></revision></page>"""


def test_wikipedia_to_fill_mask(tmp_path, capsys):
    documents = pretraining_toy.make_corpus(tmp_path / "c.txt", 40).read_text().split("\n\n")
    sentences = [
        [line.capitalize().replace(" .", ".") for line in text.splitlines()] for text in documents
    ]
    pages = [PAGE.format(n=n, text=" ".join(lines)) for n, lines in enumerate(sentences)]
    dump = tmp_path / "dump.xml"
    dump.write_text(f"<mediawiki>{''.join(pages)}</mediawiki>", "utf-8")
    story = example("wikipedia_to_fill_mask")
    config = pretraining_toy.write_config(
        tmp_path / "config.json", vocab_size=210, max_position_embeddings=128
    )
    story.TEXTS = ("the cat sees the [MASK] .",)
    story.main(str(dump), tmp_path / "story", vocab_size=210, size=str(config), steps=2)
    said = capsys.readouterr().out
    assert "documents            40" in said
    assert said.rstrip().splitlines()[-1].startswith("the cat sees the [MASK] . [")
    assert (tmp_path / "story" / "run" / "keras_bert.json").is_file()


def test_continue_pretraining(toy, tmp_path, capsys):  # noqa: F811
    corpus = pretraining_toy.make_corpus(tmp_path / "domain.txt")
    example("continue_pretraining").main(
        toy.weights, corpus, tmp_path / "story", steps=2, batch_size=4
    )
    assert "keras-bert finetune --weights" in capsys.readouterr().out
    assert (tmp_path / "story" / "run" / "keras_bert.json").is_file()
