"""Pre-training on two machines, which are processes over loopback: equal, and it comes back."""

from __future__ import annotations

import random
import re
import shutil
import signal

import h5py
import keras
import numpy as np
import pytest

from keras_bert_impl.jobs import PretrainSettings, pretrain
from tests.jobs import pretraining_toy
from tests.jobs.machines import arguments_of, run_machines

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tf.distribute is TensorFlow's"
)
CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A function: (name of the run, config, options) -> arguments of `pretrain`."""
    folder = tmp_path_factory.mktemp("machines")
    shards = pretraining_toy.make_shards(folder / "shards")
    configs = {
        "calm": pretraining_toy.write_config(folder / "calm.json", **CALM),
        "dropout": pretraining_toy.write_config(folder / "dropout.json"),
    }

    def arguments(name, config="calm", **options):
        return arguments_of(shards, configs[config], folder / name, **options)

    arguments.folder = folder
    return arguments


@pytest.fixture(scope="module")
def two(toy):
    """The folder of a run on two machines without dropout, and how they ended."""
    return toy.folder / "two", run_machines([toy("two")] * 2)


def weights_of(folder) -> np.ndarray:
    found = []
    with h5py.File(folder / "model.weights.h5") as file:
        file.visititems(
            lambda name, item: (
                found.append(item[()].ravel()) if isinstance(item, h5py.Dataset) else None
            )
        )
    return np.concatenate(found)


def digests(ended) -> set[str]:
    return {digest for end in ended for digest in re.findall(r"digest (\w+)", end.said)}


def test_two_machines_give_the_weights_of_one(toy, two):
    folder, ended = two
    assert [end.code for end in ended] == [0, 0], ended
    assert len(digests(ended)) == 1
    assert "MultiWorkerMirroredStrategy: 2 CPU devices" in ended[0].said
    (one,) = run_machines([toy("one")])
    assert one.code == 0, one.said
    difference = weights_of(folder) - weights_of(toy.folder / "one")
    assert np.abs(difference).max() <= 3e-6


def test_a_run_that_was_stopped_and_killed_ends_as_one_that_was_not(toy):
    draw = random.Random()
    ended = run_machines([toy("whole", "dropout")] * 2)
    assert [end.code for end in ended] == [0, 0], ended

    begin = [toy("hurt", "dropout")] * 2
    again = [["--output", str(toy.folder / "hurt"), "--resume"]] * 2
    # First the machine that writes nothing, then the chief.
    for arguments, stopped, step in ((begin, 1, draw.randint(1, 3)), (again, 0, 5)):
        ended = run_machines(arguments, signals={stopped: (signal.SIGTERM, step)})
        assert [end.code for end in ended] == [128 + signal.SIGTERM] * 2, ended
        for end in ended:
            assert f"stopped after step {step} by SIGTERM" in end.said
            assert "Traceback" not in end.said
        assert (toy.folder / f"hurt/checkpoints/step-{step:08d}").is_dir()

    victim, last = draw.randrange(2), draw.randint(step + 1, 9)
    ended = run_machines(again, signals={victim: (signal.SIGKILL, last)})
    assert f"going on after step {step}" in ended[0].said
    assert ended[victim].code == -signal.SIGKILL, ended
    survivor = ended[1 - victim]
    assert survivor.code == 1, survivor
    assert "error: another machine of the run went away" in survivor.said
    assert "Traceback" not in survivor.said

    ended = run_machines(again)
    assert [end.code for end in ended] == [0, 0], ended
    np.testing.assert_array_equal(weights_of(toy.folder / "hurt"), weights_of(toy.folder / "whole"))


def test_machines_that_were_started_differently(toy):
    ended = run_machines([toy("unlike"), toy("unlike", learning_rate=1e-3)])
    for end in ended:
        assert end.code == 1
        assert "the machines of the run differ in settings, data or model" in end.said


def test_machines_that_begin_with_other_weights(toy, two):
    folder, _ = two
    other = shutil.copytree(folder, toy.folder / "other")
    with h5py.File(other / "model.weights.h5", "r+") as file:
        names = []
        file.visit(lambda name: names.append(name) if "embeddings/token" in name else None)
        file[names[-1]][...] += 0.01
    given = toy("astray")
    at = given.index("--size")
    starts = [["--init-checkpoint", str(start)] for start in (folder, other)]
    ended = run_machines([given[:at] + start + given[at + 2 :] for start in starts])
    for end in ended:
        assert end.code == 1
        assert "the machines of the run differ in settings, data or model" in end.said


def test_the_others_end_when_the_chief_refuses(toy, two):
    folder, _ = two
    ended = run_machines([toy(folder.name)] * 2)
    assert [end.code for end in ended] == [1, 1]
    assert "holds a finished run" in ended[0].said
    assert "another machine of the run went away" in ended[1].said


@pytest.mark.parametrize("name", ["data", "output"])
def test_a_tpu_refuses_local_paths(name):
    paths = {"data": "gs://bucket/shards", "output": "gs://bucket/run", name: "here"}
    settings = PretrainSettings(size="tiny", strategy="tpu", **paths)
    with pytest.raises(ValueError, match=f"--{name} here is a local path: .* gs:// only"):
        pretrain(settings)
