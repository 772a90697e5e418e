"""What README.md shows is true: its files exist, its commands are there, its Python runs."""

from __future__ import annotations

import re

import pytest

from tests.conftest import REPO

README = (REPO / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def tree() -> set[str]:
    """Paths in the file tree, relative to the repository."""
    paths, folder = set(), ""
    for line in blocks("")[-1].splitlines():
        name = line.split()[0]
        folder = "" if not line.startswith(" ") else folder
        paths.add(folder + name.rstrip("/"))
        folder = name if not line.startswith(" ") else folder
    return paths


def test_files_of_the_tree_exist():
    assert [path for path in sorted(tree()) if not (REPO / path).exists()] == []


def test_tree_lists_every_part_of_the_package():
    parts = {
        f"keras_bert_impl/{path.name}"
        for path in (REPO / "keras_bert_impl").iterdir()
        if not path.name.startswith("_") and path.name != "py.typed"
    }
    assert parts - tree() == set()


def test_licence_is_the_whole_text():
    text = (REPO / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")


@pytest.fixture
def commands():
    import typer.main

    from keras_bert_impl.cli import app

    return typer.main.get_command(app).commands


def test_commands_and_their_options_exist(commands):
    lines = re.findall(r"keras-bert ([a-z-]+)([^`\n]*)", README)
    assert {name for name, _ in lines} == set(commands)
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        used = set(re.findall(r"(?<=\s)--[a-z-]+", rest))
        assert used <= known | {"--help"}, name


def test_python_lines_run(tmp_path, monkeypatch):
    import keras_bert_impl as kb

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "fine", "film", "what", "evening"]
    config = kb.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    kb.BertClassifier(config, num_classes=2).save_pretrained(tmp_path / "tiny")
    kb.Vocab(words).save(tmp_path / "tiny" / "vocab.txt")
    monkeypatch.setattr("keras_bert_impl.sources.resolve_minilm", lambda: tmp_path / "tiny")
    (lines,) = blocks("python")
    names: dict = {}
    exec(compile(lines, "README.md", "exec"), names)
    logits = names["model"].predict(names["kb"].bucketed_batches(names["tokenizer"], ["a film"]))
    assert logits.shape == (1, 2)
