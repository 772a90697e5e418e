"""Pre-training as a job: its folder, resuming, and what is refused before the first step."""

from __future__ import annotations

import json
import os
import shutil
import signal

import numpy as np
import pytest

from keras_bert_impl.jobs import PretrainSettings, fill_texts, pretrain, settings_to_resume
from keras_bert_impl.jobs.pretraining_progress import PretrainStep, PretrainSummary, Window
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.sources.locking import locked
from tests.jobs import pretraining_toy
from tests.jobs.toy import weights_of

STEPS = 10


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return pretraining_toy.make_shards(tmp_path_factory.mktemp("data") / "shards")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return pretraining_toy.write_config(tmp_path_factory.mktemp("config") / "bert_config.json")


@pytest.fixture(scope="module")
def settings_of(shards, config):
    def make(output, **changes):
        given = {"data": shards, "size": str(config), "steps": STEPS, "save_every": 4, **changes}
        return PretrainSettings(
            **{"batch_size": 8, "learning_rate": 5e-3, "output": output, **given}
        )

    return make


@pytest.fixture(scope="module")
def finished(settings_of, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "finished"
    events = []
    result = pretrain(settings_of(folder), events.append)
    return result, folder, events


def assert_same_weights(one, other, atol=0.0):
    ours, theirs = weights_of(one), weights_of(other)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], rtol=0, atol=atol, err_msg=name)


def stop_after(step):
    def on_event(event):
        if isinstance(event, PretrainStep) and event.step >= step:
            signal.raise_signal(signal.SIGTERM)

    return on_event


@pytest.fixture
def every_step_told(monkeypatch):
    monkeypatch.setattr("keras_bert_impl.jobs.pretraining_progress._SECONDS_BETWEEN_STEPS", 0.0)


def interrupt(settings, step):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pretrain(settings, stop_after(step))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_folder_of_a_finished_run(finished):
    result, folder, events = finished
    assert {
        "keras_bert.json",
        "model.weights.h5",
        "vocab.txt",
        "history.jsonl",
        "metrics.json",
        "pretraining.json",
        "logs",
        "checkpoints",
    } <= set(os.listdir(folder))
    names = {
        *("loss", "masked_lm_loss", "masked_lm_accuracy"),
        *("next_sentence_loss", "next_sentence_accuracy"),
    }
    assert set(result.train) == set(result.eval) == names
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [4, 8, 10]
    assert lines == result.history
    assert isinstance(events[0], PretrainSummary)
    assert [e.step for e in events if isinstance(e, Window)] == [4, 8, 10]
    assert json.loads((folder / "metrics.json").read_text())["eval"] == result.eval


def test_what_it_is_for(finished):
    _, folder, _ = finished
    filled = fill_texts(folder, "the cat sees the [MASK] .", top_k=3)
    assert [len(masks) for masks in filled.masks] == [1]
    assert len(filled.masks[0][0]) == 3
    assert BertClassifier.from_pretrained(folder, 2).config.hidden_size == 16


@pytest.mark.parametrize("step", [3, 4, 7, 10])
def test_an_interrupted_run_goes_on_bit_for_bit(
    step, settings_of, finished, tmp_path, every_step_told
):
    folder = tmp_path / "run"
    interrupt(settings_of(folder), step)
    assert not (folder / "keras_bert.json").exists()
    with pytest.raises(FileExistsError, match="holds an unfinished run: --resume goes on with it"):
        pretrain(settings_of(folder))
    result = pretrain(settings_to_resume(folder))
    assert_same_weights(folder, finished[1])
    assert result.eval == finished[0].eval
    assert [line["step"] for line in result.history] == [4, 8, 10]
    assert [line["eval"] for line in result.history] == [
        line["eval"] for line in finished[0].history
    ]
    assert result.history[-1]["train"] == pytest.approx(finished[0].history[-1]["train"])


def test_a_run_that_lost_its_newest_checkpoint(
    settings_of, finished, tmp_path, every_step_told, caplog
):
    folder = tmp_path / "run"
    interrupt(settings_of(folder), 9)
    newest = folder / "checkpoints" / "step-00000009" / "model.weights.h5"
    newest.write_bytes(newest.read_bytes()[:-50])
    pretrain(settings_to_resume(folder))
    assert "step-00000009 is damaged" in caplog.text
    assert_same_weights(folder, finished[1])


@pytest.mark.parametrize(
    "changes",
    [{"steps_per_execution": 2}, {"micro_batches": 2}, {"optimizer": "lamb"}],
    ids=lambda changes: next(iter(changes)),
)
def test_other_ways_to_run(changes, settings_of, finished, tmp_path):
    result = pretrain(settings_of(tmp_path / "run", **changes))
    assert [line["step"] for line in result.history] == [4, 8, 10]
    if "steps_per_execution" in changes:
        assert_same_weights(tmp_path / "run", finished[1], atol=1e-6)


def test_static_shards_train_too(config, tmp_path):
    data = pretraining_toy.make_shards(tmp_path / "static", form="static", dupe_factor=2)
    settings = PretrainSettings(
        data=data, size=str(config), output=tmp_path / "run", steps=2, batch_size=4
    )
    assert "next_sentence_accuracy" in pretrain(settings).eval


def test_without_next_sentence(config, tmp_path):
    data = pretraining_toy.make_shards(tmp_path / "none", sentence_task="none")
    settings = PretrainSettings(
        data=data, size=str(config), output=tmp_path / "run", steps=2, batch_size=4
    )
    assert not any(name.startswith("next") for name in pretrain(settings).train)


def test_weights_to_start_from_begin_at_step_0(settings_of, finished, tmp_path):
    folder = tmp_path / "run"
    start = settings_of(folder, size=None, init_checkpoint=finished[1], learning_rate=1e-9)
    result = pretrain(start)
    assert [line["step"] for line in result.history] == [4, 8, 10]
    assert result.eval["loss"] == pytest.approx(finished[0].eval["loss"], abs=1e-4)


def test_a_run_stopped_before_its_first_checkpoint_resumes_from_its_weights(
    settings_of, finished, tmp_path
):
    def stop(event):
        if isinstance(event, PretrainStep):
            raise KeyboardInterrupt

    start = {"size": None, "init_checkpoint": finished[1], "steps": 4, "learning_rate": 1e-9}
    with pytest.raises(KeyboardInterrupt):
        pretrain(settings_of(tmp_path / "run", **start), stop)
    assert not list((tmp_path / "run").glob("checkpoints/*"))
    result = pretrain(settings_to_resume(tmp_path / "run"))
    assert result.eval["loss"] == pytest.approx(finished[0].eval["loss"], abs=1e-4)


def test_a_run_that_could_not_begin_leaves_its_folder_free(settings_of, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("keras_bert_impl.jobs.pretraining_run.check_space", full)
        with pytest.raises(OSError, match="No space left"):
            pretrain(settings_of(tmp_path / "run"))
    pretrain(settings_of(tmp_path / "run", steps=1))


def test_what_a_killed_run_left_half_written_is_removed(settings_of, tmp_path, every_step_told):
    folder = tmp_path / "run"
    interrupt(settings_of(folder), 3)
    (folder / ".history.jsonl.0123abcd.partial").touch()
    half = folder / "checkpoints" / ".step-00000004.0123abcd.partial"
    half.mkdir()
    (half / "model.weights.h5").touch()
    pretrain(settings_to_resume(folder))
    assert not list(folder.rglob("*.partial"))


def test_a_finished_folder_is_neither_skipped_nor_overwritten(settings_of, finished):
    before = weights_of(finished[1])
    for settings in (settings_of(finished[1]), settings_to_resume(finished[1])):
        with pytest.raises(FileExistsError, match="holds a finished run: name another output"):
            pretrain(settings)
    assert before.keys() == weights_of(finished[1]).keys()


def test_nothing_to_resume_and_other_files(settings_of, tmp_path):
    with pytest.raises(FileNotFoundError, match="no run to resume"):
        settings_to_resume(tmp_path / "absent")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileExistsError, match=r"is not empty \(notes.txt\)"):
        pretrain(settings_of(tmp_path))


def test_a_run_resumed_with_other_settings(settings_of, tmp_path, every_step_told):
    folder = tmp_path / "run"
    interrupt(settings_of(folder), 3)
    changes = {"batch_size": 4, "learning_rate": 1e-3, "seed": 1}
    with pytest.raises(ValueError, match=r"settings\.batch_size: 8 in the run, 4 now") as refused:
        pretrain(settings_to_resume(folder, **changes))
    for name in ("learning_rate", "seed", "--allow-changes"):
        assert name in str(refused.value)
    pretrain(settings_to_resume(folder, **changes, allow_changes=True))


def test_a_run_resumed_with_other_data(settings_of, shards, tmp_path, every_step_told):
    data = tmp_path / "copy"
    shutil.copytree(shards, data)
    folder = tmp_path / "run"
    interrupt(settings_of(folder, data=data), 3)
    other = pretraining_toy.make_shards(tmp_path / "other", seed=9)
    with pytest.raises(ValueError, match=r"data\.files\."):
        pretrain(settings_to_resume(folder, data=other))


def test_a_run_resumed_with_another_model(settings_of, config, tmp_path, every_step_told):
    folder, file = tmp_path / "run", tmp_path / "other.json"
    interrupt(settings_of(folder), 3)
    saved = sorted((folder / "checkpoints").iterdir())
    pretraining_toy.write_config(file, hidden_dropout_prob=0.3)
    for changes, message in (
        ({"size": file}, r"model\.config\.hidden_dropout_prob: 0\.1 in the run, 0\.3 now"),
        ({"init_checkpoint": "minilm"}, r"model\.init_checkpoint: None in the run, 'minilm' now"),
    ):
        with pytest.raises(ValueError, match=message):
            settings_to_resume(folder, **changes, allow_changes=True)
    assert sorted((folder / "checkpoints").iterdir()) == saved
    # The command that began the run goes on with it, also from a copy of the same config.
    same = pretraining_toy.write_config(file)
    pretrain(settings_to_resume(folder, size=same))


def test_a_run_from_weights_resumed_with_a_size(settings_of, finished, tmp_path, every_step_told):
    start = {"size": None, "init_checkpoint": finished[1], "steps": 4}
    interrupt(settings_of(tmp_path / "run", **start), 3)
    with pytest.raises(ValueError, match=r"model\.size: None in the run, 'tiny' now"):
        settings_to_resume(tmp_path / "run", size="tiny")
    pretrain(settings_to_resume(tmp_path / "run", init_checkpoint=finished[1]))


def test_two_runs_in_one_folder(settings_of, tmp_path):
    with (
        locked(tmp_path / "run"),
        pytest.raises(FileExistsError, match=f"another process writes to it .*{os.getpid()}"),
    ):
        pretrain(settings_of(tmp_path / "run"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_seq_length": 32}, "its max_seq_length is 24, and 32 was asked for"),
        ({"max_predictions": 20}, "its max_predictions is 4, and 20 was asked for"),
        ({"strategy": "parameter_server"}, "use multi_worker"),
        ({"batch_size": 9, "micro_batches": 2}, "cannot be cut into 2 micro-batches"),
    ],
)
def test_refusals_before_the_first_step(changes, message, settings_of, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretrain(settings_of(tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("trained_on", ["nsp", "none"])
def test_shards_to_score_on_of_another_sentence_task(trained_on, shards, settings_of, tmp_path):
    none = pretraining_toy.make_shards(tmp_path / "none", sentence_task="none")
    data, other = (shards, none) if trained_on == "nsp" else (none, shards)
    which = "without" if trained_on == "nsp" else "with"
    with pytest.raises(ValueError, match=f"{other}: these shards are {which} sentence task"):
        pretrain(settings_of(tmp_path / "run", data=data, eval_data=other))
    assert not (tmp_path / "run").exists()


def test_shards_to_score_on_of_another_vocabulary(shards, settings_of, tmp_path):
    other = shutil.copytree(shards, tmp_path / "other")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["vocab_sha256"] = "0"
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=f"{other}: made with another vocabulary"):
        pretrain(settings_of(tmp_path / "run", eval_data=other))


@pytest.mark.parametrize(
    ("config_changes", "message"),
    [
        ({"vocab_size": 99}, "has 22 tokens and the model's config says vocab_size 99"),
        ({"max_position_embeddings": 16}, "max_seq_length 24 is more than .* 16"),
    ],
)
def test_a_config_that_does_not_fit(config_changes, message, settings_of, tmp_path):
    config = pretraining_toy.write_config(tmp_path / "bert_config.json", **config_changes)
    with pytest.raises(ValueError, match=message):
        pretrain(settings_of(tmp_path / "run", size=str(config)))
    assert not (tmp_path / "run").exists()


def test_shards_without_vocabulary(shards, settings_of, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for file in shards.glob("*.tfrecord"):
        shutil.copy(file, foreign)
    with pytest.raises(ValueError, match=r"come without vocabulary: give it \(--vocab\)"):
        pretrain(settings_of(tmp_path / "run", data=foreign))
    pretrain(settings_of(tmp_path / "run", data=foreign, vocab=shards, steps=1))


def test_a_loss_that_is_not_finite(settings_of, tmp_path):
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) at step"):
        pretrain(settings_of(tmp_path / "run", learning_rate=1e30, warmup_steps=0))
    assert not (tmp_path / "run" / "keras_bert.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be greater than 0"),
        ({"warmup_steps": 99}, "warmup_steps must be from 0 to steps=10, got 99"),
        ({"seed": -1}, "seed must be from 0 to 2147483647, got -1"),
        ({"seed": 2**31}, "seed must be from 0 to 2147483647, got 2147483648"),
        ({"optimizer": "sgd"}, "optimizer must be one of adamw, lamb, got 'sgd'"),
        ({"dtype": "float8"}, "dtype must be one of float32"),
        ({"steps_per_execution": 3}, "save_every=4 must be a multiple of steps_per_execution=3"),
        ({"size": None}, "give --size .* --init-checkpoint .* or --resume"),
        ({"init_checkpoint": "minilm"}, "give --size"),
    ],
)
def test_settings_out_of_range(changes, message, settings_of, tmp_path):
    with pytest.raises(ValueError, match=message):
        settings_of(tmp_path, **changes)
