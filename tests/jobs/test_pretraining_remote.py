"""Pre-training on shards and run folders that are not local: on a file system in memory."""

from __future__ import annotations

import gzip
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.shards import open_shards
from keras_bert_impl.jobs import PretrainSettings, fill_texts, pretrain, settings_to_resume
from keras_bert_impl.jobs.pretraining_progress import PretrainStep
from keras_bert_impl.sources import storage
from keras_bert_impl.sources.locking import LOCK_FILE
from tests.jobs import pretraining_toy
from tests.jobs.test_pretraining import assert_same_weights, interrupt

STEPS = 6


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BERT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr("keras_bert_impl.jobs.pretraining_progress._SECONDS_BETWEEN_STEPS", 0.0)
        yield


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """{"local": folder, "remote": folder}, each with the same `shards`."""
    folder = tmp_path_factory.mktemp("places")
    shards = pretraining_toy.make_shards(folder / "shards")
    remote = f"ram://{folder.name}"
    storage.upload(shards, f"{remote}/shards", last="manifest.json")
    pretraining_toy.write_config(folder / "config.json")
    return {"local": str(folder), "remote": remote}


@pytest.fixture(scope="module")
def settings_of(places):
    def make(place, name, **changes):
        given = {
            "data": storage.join(places[place], "shards"),
            "output": storage.join(places[place], name),
            "size": os.path.join(places["local"], "config.json"),
            **{"steps": STEPS, "save_every": 2, "batch_size": 8, "learning_rate": 5e-3, "keep": 2},
        }
        return PretrainSettings(**{**given, **changes})

    return make


@pytest.fixture(scope="module")
def local(settings_of):
    return pretrain(settings_of("local", "run"))


@pytest.fixture(scope="module")
def remote(settings_of):
    """A run as on a TPU, which takes remote paths only; of one device here."""
    with pytest.MonkeyPatch.context() as patch:
        one = tf.distribute.get_strategy()
        patch.setattr("keras_bert_impl.training.strategies.make_strategy", lambda name: one)
        return pretrain(settings_of("remote", "run", strategy="tpu"))


def assert_same_runs(local, remote):
    assert local.train == remote.train
    scores = [[(line["step"], line["eval"]) for line in run.history] for run in (local, remote)]
    assert scores[0] == scores[1]
    with storage.local_copy(local.folder) as ours:
        theirs = storage.fetch(remote.folder)
        assert_same_weights(ours, theirs)
        for name in ("vocab.txt", "tokenizer_config.json", "keras_bert.json", "metrics.json"):
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_a_remote_run_is_the_local_one(local, remote):
    assert_same_runs(local, remote)
    hidden = {LOCK_FILE}
    ours, theirs = (set(storage.names(run.folder)) - hidden for run in (local, remote))
    assert ours == theirs
    steps = ["step-00000004", "step-00000006"]
    assert sorted(storage.names(f"{remote.folder}/checkpoints")) == steps
    assert storage.names(f"{remote.folder}/logs")


def test_a_remote_run_that_was_stopped_goes_on_bit_for_bit(settings_of, local):
    settings = settings_of("remote", "stopped")
    interrupt(settings, 3)
    assert not storage.exists(f"{settings.output}/keras_bert.json")
    with pytest.raises(FileExistsError, match="holds an unfinished run: --resume goes on with it"):
        pretrain(settings)
    with pytest.raises(ValueError, match=r"settings\.batch_size: 8 in the run, 4 now"):
        pretrain(settings_to_resume(settings.output, batch_size=4))
    assert_same_runs(local, pretrain(settings_to_resume(settings.output)))


def test_a_finished_remote_run_is_not_overwritten(remote, settings_of):
    with pytest.raises(FileExistsError, match="holds a finished run: name another output"):
        pretrain(settings_of("remote", "run"))


def test_what_a_remote_run_is_for(remote, settings_of):
    assert len(fill_texts(remote.folder, "the cat sees the [MASK] .", top_k=3).masks[0][0]) == 3
    start = {"size": None, "init_checkpoint": remote.folder, "steps": 1, "learning_rate": 1e-9}
    result = pretrain(settings_of("remote", "second", **start))
    assert result.eval["loss"] == pytest.approx(remote.eval["loss"], abs=1e-4)


def test_two_remote_runs_in_one_folder(settings_of):
    settings = settings_of("remote", "claimed")

    def claim(event):
        if isinstance(event, PretrainStep) and event.step == 3:
            storage.write_text(f"{settings.output}/{LOCK_FILE}", "process 7 of there, 0123")

    with pytest.raises(FileExistsError, match=r"writes to it now \(process 7 of there\): this"):
        pretrain(settings, claim)
    assert storage.names(f"{settings.output}/checkpoints") == ["step-00000002"]


@pytest.mark.parametrize("pack", [False, True])
def test_foreign_remote_shards(pack, places, tmp_path, settings_of):
    ours = open_shards(os.path.join(places["local"], "shards"), split="train")
    for file in sorted((tmp_path.parent / places["local"] / "shards").glob("train*.tfrecord")):
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(gzip.compress(content) if pack else content)
    folder = f"ram://{tmp_path.name}/foreign"
    storage.upload(tmp_path, folder, last="none")
    shards = open_shards(folder)
    assert shards.fingerprint()["files"] == ours.fingerprint()["files"]
    numbers = np.array([0, 5, len(ours) - 1])
    assert shards.read(numbers) == ours.read(numbers)
    assert not [name for name in storage.names(folder) if name.startswith(".")]
    assert len(open_shards(f"{folder}/*.tfrecord")) == len(ours)
    with pytest.raises(ValueError, match=r"come without vocabulary: give it \(--vocab\)"):
        pretrain(settings_of("remote", "foreign", data=folder))
    if pack:
        vocab = storage.join(places["remote"], "shards/vocab.txt")
        pretrain(settings_of("remote", "packed", data=folder, vocab=vocab, steps=1))


def test_remote_shards_that_are_not_there(settings_of):
    with pytest.raises(FileNotFoundError, match="ram://absent/shards: no such file or folder"):
        pretrain(settings_of("remote", "x", data="ram://absent/shards"))
    with pytest.raises(FileNotFoundError, match="ram://absent/run: no run to resume"):
        settings_to_resume("ram://absent/run")


def test_a_remote_shard_that_is_damaged(places, tmp_path):
    file = next((tmp_path.parent / places["local"] / "shards").glob("train*.tfrecord"))
    storage.write_text(f"ram://{tmp_path.name}/a.tfrecord", file.read_bytes()[:40].decode("latin1"))
    with pytest.raises(ValueError, match=f"ram://{tmp_path.name}/a.tfrecord: damaged"):
        open_shards(f"ram://{tmp_path.name}")


def test_a_shard_that_is_cut_short_while_a_run_reads_it(places, settings_of, tmp_path):
    for name in storage.names(os.path.join(places["local"], "shards")):
        if name.startswith("train"):
            shutil.copy(os.path.join(places["local"], "shards", name), tmp_path)

    def hurt(event):
        if isinstance(event, PretrainStep) and event.step == 3:
            for file in tmp_path.glob("*.tfrecord"):
                file.write_bytes(file.read_bytes()[:100])

    vocab = os.path.join(places["local"], "shards", "vocab.txt")
    settings = settings_of("local", "harmed", data=tmp_path, vocab=vocab, steps=2000)
    with pytest.raises(OSError, match=r"tfrecord: record \d+ cannot be read: .*--resume") as said:
        pretrain(settings, hurt)
    assert "\n" not in str(said.value)
    assert storage.names(storage.join(settings.output, "checkpoints"))
