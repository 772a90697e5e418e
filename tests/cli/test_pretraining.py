"""The commands of pre-training as a user meets them: results, messages, exit codes."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_commands import refused, run
from tests.jobs.pretraining_toy import WORDS, make_corpus, write_config
from tests.sources.conftest import entries

LENGTHS = ("--max-seq-length", 24, "--max-predictions", 4, "--uncased")


@pytest.fixture(scope="module")
def toy_corpus(tmp_path_factory):
    """Folder with ``corpus.txt``, ``vocab.txt`` and ``config.json``."""
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder / "corpus.txt", 60)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "."]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    write_config(folder / "config.json")
    return folder


def make(toy_corpus, output, *options, corpus=None):
    corpus = corpus or toy_corpus / "corpus.txt"
    files = ("--corpus", corpus, "--vocab", toy_corpus / "vocab.txt", "--output", output)
    return run("pretrain-data", *files, *LENGTHS, *options)


def train(toy_corpus, data, output, *options):
    return run(
        *("pretrain", "--data", data, "--size", toy_corpus / "config.json", "--output", output),
        *("--steps", 4, "--batch-size", 8, *options),
    )


@pytest.fixture(scope="module")
def shards(toy_corpus, tmp_path_factory):
    output = tmp_path_factory.mktemp("shards") / "dynamic"
    result = make(toy_corpus, output, "--hold-out", 0.2, "--json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert made["folder"] == str(output)
    assert set(made["examples"]) == {"train", "eval"}
    return output


@pytest.fixture(scope="module")
def finished(toy_corpus, shards, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "run"
    result = train(toy_corpus, shards, output)
    assert result.exit_code == 0, result.output
    first, second, last = result.stdout.splitlines()
    assert first.startswith("train     loss ")
    assert "next_sentence_accuracy" in second
    assert last.startswith(f"run written to {output} (")
    for part in (f"data       {shards}: ", "held out   ", "step 4: loss ", "steps      4: "):
        assert part in result.stderr
    return output


def test_a_finished_run_fills_masks(finished):
    result = run("fill-mask", "the cat sees [MASK] [MASK]", "--model", finished, "--top-k", 2)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "the cat sees [MASK] [MASK]  (mask 1)"
    assert len(lines) == 6
    refused(run("fill-mask", "the cat", "--model", finished), "text 1 has no [MASK]")


def test_filled_masks_as_json(finished):
    text = "the [MASK] sees"
    result = run("fill-mask", text, "--model", finished, "--json", "--top-k", 3)
    found = json.loads(result.stdout)
    assert (found["model"], found["texts"]) == (str(finished), [text])
    ((candidates,),) = found["masks"]
    assert [set(candidate) for candidate in candidates] == [
        {"token", "id", "probability", "text"}
    ] * 3


def test_a_finished_run_is_not_touched(finished, toy_corpus, shards):
    before = entries(finished)
    refused(train(toy_corpus, shards, finished), f"{finished} holds a finished run")
    refused(run("pretrain", "--output", finished, "--resume"), f"{finished} holds a finished run")
    for option in ("--size", "--init-checkpoint"):
        result = run("pretrain", "--output", finished, "--resume", option, "tiny")
        refused(result, "give what it was begun with, or --allow-changes (not for the model)")
        assert "in the run" in result.stderr
    assert entries(finished) == before


def test_finished_shards_are_not_touched(shards, toy_corpus):
    before = entries(shards)
    refused(make(toy_corpus, shards), f"{shards} holds finished shards (manifest.json)")
    assert entries(shards) == before


CORPORA = {
    "empty": (b"", "corpus.txt: the file is empty"),
    "blank": (b"\n\n \n", "corpus.txt: the file has blank lines only"),
    "binary": (b"the cat .\nthe \0 dog .\n", "corpus.txt:2: NUL at byte 15 of the file"),
    "not UTF-8": (b"the cat .\nthe caf\xe9 .\n", "corpus.txt:2: not UTF-8: byte 0xe9 at byte 18"),
    "late not UTF-8": (
        b"the cat .\nthe dog .\n\n" * 20_000 + b"\xe9",
        "corpus.txt:60001: not UTF-8: byte 0xe9 at byte 420001",
    ),
    "control": (b"\x01 \x02\n\x03\n", "control characters only, such as "),
    "a document": (b"the cat .\nthe dog .\n" * 20, "got 1: separate documents by blank lines"),
    "a sentence each": (b"the cat .\n\nthe dog .\n\n" * 9, "(--no-nsp)"),
    "broken JSON": (
        b'{"text": "the cat ."}\n{"text": "the\n',
        "corpus.txt:2: broken JSON: Invalid control character at at character 14",
    ),
    "broken XML": (b"<mediawiki><page>\n<title>x</page>", "corpus.txt:2: broken XML"),
}


@pytest.mark.parametrize("kind", CORPORA)
def test_a_corpus_that_cannot_be_used_leaves_nothing(kind, toy_corpus, tmp_path):
    content, message = CORPORA[kind]
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(content)
    refused(make(toy_corpus, tmp_path / "shards", corpus=corpus), message)
    assert entries(tmp_path) == ["corpus.txt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--language", "fr"), "language must be one of auto, en, zh, got 'fr'"),
        (("--form", "both"), "form must be one of dynamic, static, got 'both'"),
        (("--max-seq-length", 4), "max_seq_length must be at least 5, got 4"),
        (("--seed", -1), "seed must be at least 0, got -1"),
        (("--format", "pdf"), "format must be one of auto, sentences"),
    ],
)
def test_settings_of_shards_out_of_range(options, message, toy_corpus, tmp_path):
    refused(make(toy_corpus, tmp_path / "shards", *options), message)
    assert entries(tmp_path) == []


def test_usage_errors_have_exit_code_2(toy_corpus, tmp_path):
    assert make(toy_corpus, tmp_path / "s", "--sop", "--no-nsp").exit_code == 2
    result = run("pretrain", "--output", tmp_path / "run", "--size", "tiny")
    assert result.exit_code == 2
    assert "--data is needed, unless a run is resumed" in result.stderr
    assert entries(tmp_path) == []


def test_folders_that_cannot_be_written(toy_corpus, shards, tmp_path):
    file = tmp_path / "file"
    file.touch()
    for output in (file, file / "sub"):
        refused(make(toy_corpus, output), f"cannot write {output}", f"{file} is a file")
        refused(train(toy_corpus, shards, output), f"cannot write {output}: {file} is a file")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes").touch()
    refused(make(toy_corpus, full), f"{full} is not empty")
    refused(train(toy_corpus, shards, full), f"output folder {full} is not empty (notes)")


def test_a_vocabulary_is_learned_once(toy_corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    arguments = ("vocab", "--corpus", toy_corpus / "corpus.txt", "--output", output, "--size", 210)
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["tokens"] == len(output.read_text().splitlines())
    refused(run(*arguments), f"{output} exists", "--force")
    refused(run(*arguments, "--size", 20, "--force"), "a vocabulary of 20 tokens has no room")


def test_from_a_corpus_to_a_model_in_a_bucket(toy_corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path))
    bucket = f"ram://{tmp_path.name}"
    made = make(toy_corpus, f"{bucket}/shards", "--hold-out", 0.2)
    assert made.exit_code == 0, made.output
    assert list((tmp_path / "generated").iterdir()) == []
    again = make(toy_corpus, f"{bucket}/shards")
    refused(again, f"{bucket}/shards holds finished shards (manifest.json)")
    trained = train(toy_corpus, f"{bucket}/shards", f"{bucket}/run")
    assert trained.exit_code == 0, trained.output
    assert f"run written to {bucket}/run (" in trained.stdout
    filled = run("fill-mask", "the [MASK] sees", "--model", f"{bucket}/run")
    assert filled.exit_code == 0, filled.output
    missing = train(toy_corpus, f"{bucket}/none", f"{bucket}/other")
    refused(missing, f"{bucket}/none: no such file or folder")
