"""What README.md, docs/ and examples/ show is true: files, commands, options, Python."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.conftest import REPO

README = (REPO / "README.md").read_text(encoding="utf-8")
PAGES = [REPO / "README.md", *REPO.glob("docs/*.md"), *REPO.glob("examples/*.md")]


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


def commands_of(page) -> list[tuple[str, str]]:
    """(name, rest of the line) of each command line of ours."""
    return re.findall(r"keras-bert ([a-z-]+)([^`\n]*)", page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page, commands):
    for name, rest in commands_of(page):
        known = {option for parameter in commands[name].params for option in parameter.opts}
        used = set(re.findall(r"(?<=\s)--[a-z-]+", rest))
        assert used <= known | {"--help"}, name


def test_readme_shows_every_command(commands):
    assert {name for name, _ in commands_of(REPO / "README.md")} == set(commands)


def test_examples_are_listed():
    listed = (REPO / "examples/README.md").read_text("utf-8")
    names = {path.name for path in (REPO / "examples").iterdir() if path.suffix in {".py", ".md"}}
    assert {name for name in names - {"README.md"} if f"`{name}`" not in listed} == set()


def test_a_tpu_vm_gets_every_dependency():
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    text = (REPO / "examples/tpu_vm.md").read_text("utf-8")
    given = {
        re.match(r"[\w-]+", word)[0]
        for line in re.findall(r"^pip install (?!--no-deps -e)(.*)$", text, re.MULTILINE)
        for word in re.sub(r"-f \S+|--no-deps", "", line).replace('"', "").split()
    }
    assert needed - given == {"tensorflow"}


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
