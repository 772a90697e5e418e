"""Fine-tuning on two devices and on two machines: the run of one device."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_bert_impl import jobs
from keras_bert_impl.sources import storage
from tests.conftest import REPO
from tests.jobs.machines import free_ports
from tests.jobs.toy import settings, weights_of

if keras.backend.backend() != "tensorflow":
    pytest.skip("tf.distribute is TensorFlow's", allow_module_level=True)

from tests.jobs.finetuning_cases import CASES


def start(*arguments, **environment) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.finetuning_cases", *map(str, arguments)],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO), "CUDA_VISIBLE_DEVICES": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end(process: subprocess.Popen) -> str:
    try:
        said, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, said[-3000:]
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strategies")
    end(start(folder))
    return folder


def assert_same_run(folder, expected):
    ours, theirs = weights_of(folder), weights_of(expected)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], rtol=0, atol=3e-6, err_msg=name)
    histories = [
        json.loads((each / "history.json").read_text())["epochs"] for each in (folder, expected)
    ]
    for epoch, other in zip(*histories, strict=True):
        assert epoch["loss"] == pytest.approx(other["loss"], abs=1e-5)
        assert epoch["train"] == pytest.approx(other["train"], abs=1e-6)
        assert epoch["dev"] == pytest.approx(other["dev"], abs=1e-6)
        assert epoch["dev_loss"] == pytest.approx(other["dev_loss"], abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_two_devices_give_the_run_of_one(case, folder):
    assert_same_run(folder / f"{case}-mirrored", folder / f"{case}-none")


def test_two_machines_give_the_run_of_one(folder):
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    processes = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        given = (folder, "classes", "machines")
        processes.append(start(*given, TF_CONFIG=json.dumps(task)))
    for process in processes:
        end(process)
    assert_same_run(folder / "classes-machines", folder / "classes-none")


def test_a_batch_that_replicas_cannot_share(toy, tmp_path, monkeypatch):
    class Three:
        num_replicas_in_sync = 3

    monkeypatch.setattr(
        "keras_bert_impl.training.strategies.make_strategy", lambda name: Three if name else None
    )
    with pytest.raises(ValueError, match="batch_size 8 does not divide among 3 replicas: use 6 or"):
        jobs.finetune(settings(toy, tmp_path / "run", strategy="mirrored"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("file", ["train", "dev"])
def test_what_machines_must_have_in_common(file, toy, tmp_path, monkeypatch):
    records = []

    def keep(gather, record, model):
        records.append(record)
        raise ValueError("seen")

    monkeypatch.setattr("keras_bert_impl.training.strategies.check_same", keep)
    for name in ("spans_machines", "is_chief"):
        monkeypatch.setattr(f"keras_bert_impl.training.strategies.{name}", lambda _: True)
    lines = getattr(toy, file).read_text().splitlines()
    texts = [line.rsplit("\t", 1) for line in lines[1:]]
    labels = [label for _, label in texts]
    names = sorted(set(labels))
    flipped = dict(zip(names, reversed(names), strict=True))
    other = tmp_path / f"{file}.tsv"
    rows = [f"{text}\t{flipped[label]}" for text, label in texts]
    other.write_text("\n".join([lines[0], *rows]) + "\n")
    for changes in ({}, {file: other}):
        with pytest.raises(ValueError, match="seen"):
            jobs.finetune(settings(toy, tmp_path / "run", **changes))
    assert records[0]["files"] != records[1]["files"]
    assert records[0]["tokens"] == records[1]["tokens"]


def test_an_unknown_strategy(toy, tmp_path):
    with pytest.raises(ValueError, match="strategy must be one of none, mirrored"):
        jobs.finetune(settings(toy, tmp_path / "run", strategy="gpu"))


def test_a_run_in_a_bucket(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path))
    output = f"ram://{tmp_path.name}/run"
    result = jobs.finetune(settings(toy, output, epochs=1))
    assert result.folder == output
    assert jobs.evaluate(output, toy.dev).report == result.dev
    with pytest.raises(FileExistsError, match=f"output folder {output} is not empty"):
        jobs.finetune(settings(toy, output))
    assert storage.exists(f"{output}/keras_bert.json")
