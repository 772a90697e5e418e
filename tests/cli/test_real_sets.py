"""Real files through the command line: a few rows, a tiny random model."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import keras_bert_impl
from keras_bert_impl.cli import app
from keras_bert_impl.data.tagging import read_tagged

CONFIG = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 96,
}


def run(*arguments, **options):
    done = CliRunner().invoke(app, [str(part) for part in arguments], **options)
    assert done.exit_code == 0, done.output
    return done.stdout


def finetuned(folder, shared, vocab, task, train, dev, *options):
    """The report of the command `finetune` on the best epoch; the run is in folder/run."""
    vocab = shared / "data/vocab" / vocab
    size = vocab.read_bytes().count(b"\n")
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": size}))
    arguments = {
        **{"task": task, "train": train, "dev": dev, "output": folder / "run"},
        **{"weights": "none", "size": folder / "config.json", "vocab": vocab},
        **{"epochs": 1, "batch-size": 8, "max-length": 96},
    }
    parts = (part for name, value in arguments.items() for part in (f"--{name}", value))
    return json.loads(run("finetune", *parts, *options, "--json"))["dev"]


@pytest.mark.parametrize(
    ("task", "vocab", "train", "dev"),
    [
        (
            *("squad", "bert-base-uncased-vocab.txt"),
            *("qa_squad/dev-v2.0.part1.json", "qa_squad/dev-v2.0.part2.json"),
        ),
        (
            *("cmrc", "bert-base-chinese-vocab.txt"),
            *("qa_cmrc2018/cmrc2018_trial.json", "qa_cmrc2018/cmrc2018_dev.json"),
        ),
    ],
)
def test_questions(shared, tmp_path, task, vocab, train, dev):
    contexts, files = {}, {}
    for name, path in (("train", train), ("dev", dev)):
        articles = json.loads((shared / "data" / path).read_text("utf-8"))["data"][:3]
        for article in articles:
            article["paragraphs"] = article["paragraphs"][:1]
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(json.dumps({"data": articles}, ensure_ascii=False), "utf-8")
        if name == "dev":
            for article in articles:
                for paragraph in article["paragraphs"]:
                    for entry in paragraph["qas"]:
                        contexts[entry["id"]] = (entry["question"], paragraph["context"])
    lengths = ("--doc-stride", 32, "--max-query-length", 24)
    report = finetuned(tmp_path, shared, vocab, task, *files.values(), *lengths)
    asked = ("--model", tmp_path / "run", "--data", files["dev"], "--json")
    again = json.loads(run("evaluate", *asked))["report"]
    assert again == pytest.approx(report)
    assert again["examples"] == len(contexts)
    options = ("--model", tmp_path / "run", "--output-format", "jsonl")
    lines = run("predict", *options, input=files["dev"].read_bytes()).splitlines()
    found = [json.loads(line) for line in lines]
    assert [row["id"] for row in found] == list(contexts)
    for row in found:
        assert row["answer"] == contexts[row["id"]][1][row["start"] : row["end"]]
    assert any(row["answer"] for row in found)
    answers = keras_bert_impl.load(tmp_path / "run").predict(*zip(*contexts.values(), strict=True))
    assert [a.text for a in answers] == [row["answer"] for row in found]
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "exact match" in page


@pytest.mark.parametrize(
    ("vocab", "train", "dev"),
    [
        (
            "bert-base-cased-vocab.txt",
            *("ner_wnut17/train.conll", "ner_wikigold/wikigold.conll.txt"),
        ),
        (
            "bert-base-chinese-vocab.txt",
            *("ner_zh_weibo/weiboNER_2nd_conll.train", "ner_zh_weibo/weiboNER_2nd_conll.dev"),
        ),
    ],
)
def test_entities(shared, tmp_path, vocab, train, dev):
    files = {}
    for name, path in (("train", train), ("dev", dev)):
        blocks = (shared / "data" / path).read_text("utf-8").split("\n\n")
        files[name] = tmp_path / f"{name}.conll"
        content = "\n\n".join(blocks[: 80 if name == "train" else 25]) + "\n"
        if "wikigold" in path:
            # Its types are others: one of them is in both sets.
            content = content.replace("I-PER", "I-person")
            content = content.replace("I-ORG", "O").replace("I-LOC", "O").replace("I-MISC", "O")
        files[name].write_text(content, "utf-8")
    report = finetuned(tmp_path, shared, vocab, "ner", *files.values())
    asked = ("--model", tmp_path / "run", "--data", files["dev"], "--json")
    again = json.loads(run("evaluate", *asked))["report"]
    assert again["classes"].keys() == report["classes"].keys()
    for name in ("precision", "recall", "f1", "accuracy"):
        assert again[name] == pytest.approx(report[name])
    words = [word for part in read_tagged(files["dev"]).words for word in part]
    long = (words * 5)[:400]
    text = "".join(f"{word}\n" for word in long) + "\n" + "".join(f"{w}\n" for w in words[:3])
    lines = run("predict", "--model", tmp_path / "run", input=text.encode()).split("\n")
    assert [line.split(" ")[0] for line in lines[:400]] == long
    assert lines[400] == ""
    tags = [line.split(" ")[1] for line in [*lines[:400], *lines[401:404]]]
    loaded = keras_bert_impl.load(tmp_path / "run")
    one, other = loaded.predict([long, words[:3]])
    assert tags == one.tags + other.tags
    assert set(tags) <= set(loaded.labels)
