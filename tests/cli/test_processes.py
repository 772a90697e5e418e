"""The command in processes of its own: what it imports, and the whole chain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from keras_bert_impl.jobs import quick_start
from keras_bert_impl.jobs.quick_start import SENTENCES, ask_in_fresh_process
from tests.conftest import REPO
from tests.jobs.toy import write_weights

HEAVY = {"keras", "tensorflow", "tensorflow_text", "jax", "numpy", "sklearn", "huggingface_hub"}


def started(arguments, cwd) -> dict:
    python_path = os.pathsep.join(filter(None, [str(REPO), os.environ.get("PYTHONPATH")]))
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    return {
        "args": [sys.executable, "-m", "keras_bert_impl", *map(str, arguments)],
        "cwd": cwd,
        "env": {**environment, "PYTHONPATH": python_path},
    }


def command(*arguments, cwd, check: bool = True, **options) -> subprocess.CompletedProcess:
    done = subprocess.run(
        **started(arguments, cwd),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("name", [None, "quickstart", "finetune", "predict"])
def test_help_imports_nothing_heavy(name):
    arguments = ["--help"] if name is None else [name, "--help"]
    code = (
        "import sys, keras_bert_impl.cli as cli\n"
        f"try: cli.app({arguments}, prog_name='keras-bert')\n"
        "except SystemExit as end: print(end.code, *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO
    )
    assert f"Usage: keras-bert {name or '[OPTIONS] COMMAND'}" in done.stdout
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0"
    assert {module.partition(".")[0] for module in modules} & HEAVY == set()


def test_from_a_file_to_a_served_model(toy, tmp_path):
    done = command(
        *("finetune", "--train", toy.train, "--dev", toy.dev, "--weights", toy.weights),
        *("--output", "runs/toy", "--epochs", 10, "--batch-size", 8, "--learning-rate", 3e-3),
        *("--max-length", 32, "--dtype", "mixed_bfloat16", "--json"),
        cwd=tmp_path,
    )
    result = json.loads(done.stdout)
    assert result["folder"] == "runs/toy"
    assert result["score"] >= 0.8
    for part in ("96 examples; bad 48, good 48", "mixed_bfloat16 on ", "epoch 10: loss "):
        assert part in done.stderr
    assert "\x1b" not in done.stderr
    noise = [line for line in done.stderr.splitlines() if "tensorflow" in line or "cuda" in line]
    assert noise == []

    texts = ["a great film", "", "dull music"]
    done = command("predict", "--model", "runs/toy", cwd=tmp_path, input="\n".join(texts))
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert [label in ("bad", "good") for label, _ in answers] == [True] * 3

    done = command("export", "--model", "runs/toy", cwd=tmp_path)
    assert f"version 1 of toy: {tmp_path / 'saved_models' / 'toy' / '1'}" in done.stdout
    assert "docker run --rm -p 8501:8501 " in done.stdout
    assert 'curl -d \'{"instances": ["A fine film, ' in done.stdout
    assert (tmp_path / "saved_models" / "toy" / "1" / "saved_model.pb").is_file()
    assert (
        json.loads(command("verify", "saved_models/toy", "--json", cwd=tmp_path).stdout)["problems"]
        == []
    )


def test_sigterm_in_training_leaves_nothing_and_exits_as_shells_expect(toy, tmp_path):
    arguments = (
        *("finetune", "--train", toy.train, "--dev", toy.dev, "--weights", toy.weights),
        *("--output", "run", "--epochs", 10_000, "--max-length", 32),
    )
    with subprocess.Popen(
        **started(arguments, tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        lines = iter(process.stderr)
        shown = [next(line for line in lines if line.startswith("epoch 1:"))]
        process.send_signal(signal.SIGTERM)
        shown += lines
    assert (process.returncode, shown[-1]) == (143, "keras-bert: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_quickstart(tmp_path):
    weights = write_weights(tmp_path / "weights")
    done = command("quickstart", "--weights", weights, "--epochs", 1, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("dev accuracy ")
    assert lines[1].startswith("test accuracy ")
    assert "SavedModel     saved_models/quickstart/1" in lines
    for sentence in SENTENCES:
        (line,) = (line for line in lines if line.endswith(f"  {sentence}"))
        label, probability, *_ = line.split()
        assert label in ("food", "health", "home", "technology", "travel")
        assert 0.2 <= float(probability) <= 1
    assert any(line.startswith("  docker run ") for line in lines)
    assert any(line.startswith("  curl -d ") for line in lines)

    folder = tmp_path / "saved_models" / "quickstart"
    answers, modules = ask_in_fresh_process(folder / "1", ["one", "two"])
    assert [answer.text for answer in answers] == ["one", "two"]
    assert not any(module.startswith("keras_bert_impl") for module in modules)


def test_a_fresh_process_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(quick_start, "_ASK", "raise KeyError('no such signature')")
    with pytest.raises(ValueError, match="fresh process failed: KeyError: 'no such signature'"):
        ask_in_fresh_process(tmp_path, ["one"])
