"""The command as a user meets it, in this process: options, output, messages, exit codes."""

from __future__ import annotations

import errno
import json
import shutil

import pytest
from typer.testing import CliRunner

import keras_bert_impl
from keras_bert_impl import jobs
from keras_bert_impl.cli import app
from tests.jobs.toy import VOCAB, rows, write_tsv, write_weights
from tests.sources.conftest import entries


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def finetune(toy, output, **changes):
    options = {"train": toy.train, "dev": toy.dev, "weights": toy.weights, "output": output}
    options |= {"epochs": 1, "max-length": 32, **changes}
    return run("finetune", *(part for name, v in options.items() for part in (f"--{name}", v)))


def refused(result, *parts: str) -> None:
    """Exit code 1, one plain message with these parts, nothing on standard output."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert "keras-bert: error: " in result.stderr
    assert "Traceback" not in result.stderr
    message = result.stderr[result.stderr.index("keras-bert: error: ") :]
    for part in parts:
        assert part in message, last


FILES = "--train a --dev b --output c".split()


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"keras-bert {keras_bert_impl.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["finetune"], "Missing option '--output'"),
        (["nonsense"], "No such command 'nonsense'"),
        (["evaluate", "--nonsense"], "No such option: --nonsense"),
        (["finetune", *FILES, "--epochs", "0"], "Invalid value for '--epochs'"),
        (["finetune", *FILES, "--dtype", "int4"], "'int4' is not one of"),
        (["finetune", *FILES, "--class-weights", '{"a": "b"}'], "expected balanced or JSON"),
    ],
)
def test_usage_errors_have_exit_code_2(arguments, part):
    result = run(*arguments)
    assert result.exit_code == 2
    assert part in result.stderr


def test_evaluate_prints_a_report(trained, toy):
    result = run("evaluate", "--model", trained.folder, "--data", toy.test)
    assert result.exit_code == 0, result.output
    report = jobs.evaluate(trained.folder, toy.test).report
    first, *table = result.stdout.splitlines()
    assert f"20 rows, accuracy {report['accuracy']:.4f}, macro F1 " in first
    assert table[0].split() == ["label", "precision", "recall", "f1", "rows"]
    assert [line.split()[0] for line in table[1:3]] == ["bad", "good"]
    assert [line.split()[-1] for line in table[1:3]] == ["10", "10"]
    matrix = [[int(cell) for cell in line.split()[1:]] for line in table[-2:]]
    assert matrix == report["confusion_matrix"]


def test_evaluate_prints_json(trained, toy):
    result = run("evaluate", "--model", trained.folder, "--data", toy.test, "--json")
    assert json.loads(result.stdout)["report"] == jobs.evaluate(trained.folder, toy.test).report


def test_predict_reads_standard_input_and_writes_standard_output(trained):
    text = "the film was great\n\n\u4e2d\u6587 [x] [/b]\nawful and dull story"
    result = run("predict", "--model", trained.folder, input=text.encode())
    assert result.exit_code == 0, result.output
    wanted = jobs.load(trained.folder).predict(text.split("\n"))
    assert result.stdout == "".join(f"{p.label}\t{p.probability:.6f}\n" for p in wanted)


def test_predict_from_a_file_to_a_file(trained, toy, tmp_path):
    output = tmp_path / "out.jsonl"
    arguments = ("predict", "--model", trained.folder, "--input", toy.test, "--output", output)
    assert run(*arguments).exit_code == 0
    first = output.read_bytes()
    assert len(first.splitlines()) == 20
    refused(run(*arguments), f"{output} exists", "--force")
    assert run(*arguments, "--force", "--output-format", "tsv").exit_code == 0
    assert [line.split("\t")[0] for line in output.read_text().splitlines()] == [
        json.loads(line)["label"] for line in first.splitlines()
    ]


WRONG_FILES = {
    "empty": (b"", "the file is empty"),
    "header only": (b"text\tlabel\n", "a header (text, label) and no rows"),
    "ragged": (b"text\tlabel\na b\tgood\nc d\n", "train.tsv:3: expected 2 columns as in line 1"),
    "one label": (b"text\tlabel\na\tgood\nb\tgood\n", "all 2 examples have the label 'good'"),
    "unlabelled": (b"text\tlabel\na\t\nb\t\n", "no labels: column 'label' is empty in all 2 rows"),
    "no label column": (b"text\na\nb\n", "no labels: cannot tell which column holds them"),
    "one empty label": (b"text\tlabel\na\tgood\nb\t\n", "train.tsv:3: empty label"),
    "not UTF-8": (b"text\tlabel\na\xff\tgood\n", "train.tsv:2: not UTF-8: byte 0xff"),
    "label with a tab": (b'text,label\na,"x\ty"\nb,z\n', "a label must hold no tab or line break"),
}


@pytest.mark.parametrize("kind", WRONG_FILES)
def test_wrong_training_files(toy, tmp_path, kind):
    content, message = WRONG_FILES[kind]
    file = tmp_path / "train.tsv"
    file.write_bytes(content)
    options = {"format": "csv"} if content.startswith(b"text,") else {}
    refused(finetune(toy, tmp_path / "run", train=file, **options), str(file), message)
    assert entries(tmp_path) == ["train.tsv"]


def test_a_label_in_dev_that_train_lacks(toy, tmp_path):
    dev = write_tsv(tmp_path / "dev.tsv", [("a b", "good"), ("c d", "[so-so]")])
    result = finetune(toy, tmp_path / "run", dev=dev)
    refused(result, f"{dev}:3: unknown label '[so-so]'", "known labels: 'bad', 'good'")


def test_files_that_are_not_there(toy, trained, tmp_path):
    missing = tmp_path / "no.tsv"
    refused(finetune(toy, tmp_path / "run", train=missing), f"No such file or directory: {missing}")
    refused(finetune(toy, tmp_path / "run", weights=tmp_path / "no"), f"no such folder: {tmp_path}")
    refused(run("predict", "--model", tmp_path / "no"), f"no such folder: {tmp_path}")
    (tmp_path / "in.tsv").mkdir()
    refused(
        run("predict", "--model", trained.folder, "--input", tmp_path / "in.tsv"),
        f"Is a directory: {tmp_path / 'in.tsv'}",
    )
    refused(run("verify", tmp_path / "no"), f"no such folder: {tmp_path / 'no'}")


def test_files_that_look_odd_are_read_right(toy, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(jobs, "finetune", lambda settings, _: seen.append(read(settings)) or done)
    from keras_bert_impl.jobs.preparation import read_files as read

    report = {"accuracy": 1.0, "macro_f1": 1.0, "matthews_correlation": 1.0, "examples": 2}
    done = jobs.FinetuneResult("run", [], 1, "accuracy", 1.0, report | {"classes": {}}, [], 0.0)
    plain = 'say "hi\tgood\nit\u2028is [b]\tbad\n'
    variants = [
        ("\ufefftext\tlabel\r\n" + plain.replace("\n", "\r\n")).encode(),
        ('label\ttext\ngood\tsay "hi\nbad\tit\u2028is [b]').encode(),
        plain.encode(),
    ]
    for content in variants:
        (tmp_path / "odd.tsv").write_bytes(content)
        result = finetune(toy, tmp_path / "run", train=tmp_path / "odd.tsv")
        assert result.exit_code == 0, result.output
    for files in seen:
        assert files.train.examples.texts == ['say "hi', "it\u2028is [b]"]
        assert files.train.examples.labels == ["good", "bad"]
    assert len(seen) == 3


def test_wrong_weights(toy, tmp_path):
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "pytorch_model.bin").write_bytes(b"")
    shutil.copy(toy.weights / "vocab.txt", pickled)
    refused(
        finetune(toy, tmp_path / "run", weights=pickled),
        *("has only pytorch_model.bin", "Convert it once", "model.safetensors"),
    )
    larger = write_weights(tmp_path / "larger", vocab_size=len(VOCAB) - 1)
    refused(
        finetune(toy, tmp_path / "run", weights=larger),
        f"the vocabulary has {len(VOCAB)} tokens and the config says vocab_size {len(VOCAB) - 1}",
    )
    (larger / "vocab.txt").write_text("a\nb\n")
    refused(
        finetune(toy, tmp_path / "run", weights=larger),
        *(str(larger), "[PAD], [UNK], [CLS], [SEP] not found among 2 tokens"),
    )
    assert entries(tmp_path) == ["larger", "pickled"]


def test_a_length_that_the_model_has_not(toy, tmp_path):
    result = finetune(toy, tmp_path / "run", **{"max-length": 65})
    refused(result, "max_length 65 (--max-length) is more than", "max_position_embeddings 64")
    result = finetune(toy, tmp_path / "run", **{"max-length": 2})
    refused(result, "max_length (--max-length) must be at least 3, got 2")


def test_output_folders_that_cannot_be_written(toy, trained, tmp_path):
    before = entries(trained.folder)
    refused(finetune(toy, trained.folder), f"output folder {trained.folder} is not empty")
    assert entries(trained.folder) == before
    blocked = toy.train / "run"
    refused(finetune(toy, blocked), f"cannot write {blocked}: {toy.train} is a file")
    refused(
        run("predict", "--model", trained.folder, "--input", toy.test, "--output", blocked),
        f"cannot write {blocked}: {toy.train} is a file",
    )
    refused(run("export", "--model", trained.folder, "--output", blocked), f"{toy.train} is a file")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_disk_space(toy, tmp_path, monkeypatch, number):
    def full(*_):
        raise OSError(number, "No space left on device", "x")

    monkeypatch.setattr("keras_bert_impl.jobs.finetuning.make_tokenizer", full)
    result = finetune(toy, tmp_path / "run")
    refused(result, f"no disk space left to write {tmp_path / 'run'}")
    assert entries(tmp_path) == []


def test_verbose_shows_the_traceback(tmp_path):
    for arguments in (["--verbose", "verify", tmp_path / "no"], ["verify", tmp_path, "--verbose"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
    assert "Traceback" not in run("verify", tmp_path).stderr


def test_an_interruption_is_said_in_a_line(trained, toy, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "evaluate", interrupt)
    result = run("evaluate", "--model", trained.folder, "--data", toy.test)
    assert (result.exit_code, result.stderr) == (130, "keras-bert: interrupted\n")


def test_class_weights_name_known_labels(toy, tmp_path):
    result = finetune(toy, tmp_path / "run", **{"class-weights": '{"fair": 2}'})
    refused(result, "class_weights: unknown label 'fair'; known labels: ['bad', 'good']")


def test_dev_may_not_have_pairs_where_train_has_single_texts(toy, tmp_path):
    table = [(text, text, label) for text, label in rows(4, 0)]
    dev = write_tsv(tmp_path / "dev.tsv", table, "sentence1\tsentence2\tlabel")
    result = finetune(toy, tmp_path / "run", dev=dev)
    refused(result, f"{dev} has pairs of texts and {toy.train} has single ones")
