"""Fine-tuning on a toy task: what is learned, kept, written, and refused before the first step."""

from __future__ import annotations

import errno
import json
import shutil
from collections import namedtuple

import numpy as np
import pytest

from keras_bert_impl import jobs
from keras_bert_impl.jobs.progress import EpochDone, Stage, StepDone, TrainingSummary
from tests.jobs.toy import VOCAB, rows, settings, write_tsv, write_weights
from tests.sources.conftest import entries


def read_json(file):
    return json.loads(file.read_text("utf-8"))


def test_the_toy_task_is_learned(trained):
    assert trained.result.score >= 0.9
    assert trained.result.dev["accuracy"] == trained.result.score
    assert trained.result.labels == ["bad", "good"]


def test_the_run_holds_all_files(trained, toy):
    assert entries(trained.folder) == [
        *("history.json", "keras_bert.json", "labels.txt", "metrics.json", "model.weights.h5"),
        *("tokenizer_config.json", "training.json", "vocab.txt"),
    ]
    assert (trained.folder / "labels.txt").read_text() == "bad\ngood\n"
    assert (trained.folder / "vocab.txt").read_bytes() == (toy.weights / "vocab.txt").read_bytes()
    training = read_json(trained.folder / "training.json")
    assert training["max_length"] == 32
    assert training["pairs"] is False
    assert training["columns"] == {"text": "text", "pair": None, "label": "label"}
    assert training["labels"] == {"bad": 48, "good": 48}
    assert training["settings"]["learning_rate"] == 3e-3
    assert read_json(trained.folder / "metrics.json")["dev"] == trained.result.dev
    epochs = read_json(trained.folder / "history.json")["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4]
    for name in ("training.json", "metrics.json", "history.json"):
        assert read_json(trained.folder / name)["format_version"] == 1


def test_events_tell_what_happens(trained):
    kinds = [type(event) for event in trained.events]
    assert kinds.index(TrainingSummary) < kinds.index(StepDone) < kinds.index(EpochDone)
    summary = next(event for event in trained.events if isinstance(event, TrainingSummary))
    assert summary.train_labels == {"bad": 48, "good": 48}
    assert summary.dev_labels == {"bad": 12, "good": 12}
    assert (summary.epochs, summary.steps_per_epoch) == (4, 12)
    assert summary.truncated == 0
    words = sum(len(text.split()) for text, _ in rows(96, 0))
    assert summary.tokens == words + 2 * 96
    last = [event for event in trained.events if isinstance(event, StepDone)][-1]
    assert (last.epoch, last.step, last.steps) == (4, 12, 12)
    assert isinstance(trained.events[0], Stage)


def test_the_saved_weights_are_those_of_the_best_epoch(toy, trained):
    best = max(trained.result.history, key=lambda epoch: (epoch.dev_accuracy, -epoch.dev_loss))
    assert trained.result.best_epoch == best.epoch
    report = jobs.evaluate(trained.folder, toy.dev).report
    assert report == trained.result.dev


def test_the_best_epoch_is_kept_and_training_stops_when_nothing_gets_better(toy, tmp_path):
    # A rate this high spoils the model: the first epochs stay the best ones.
    result = jobs.finetune(
        settings(toy, tmp_path / "run", learning_rate=1.0, warmup=0.0, epochs=30, patience=2)
    )
    assert len(result.history) == result.best_epoch + 2 < 30
    assert [epoch.epoch for epoch in result.history if epoch.best][-1] == result.best_epoch
    assert jobs.evaluate(tmp_path / "run", toy.dev).report == result.dev


def test_the_same_seed_gives_the_same_run(toy, tmp_path):
    results = [
        jobs.finetune(settings(toy, tmp_path / str(index), epochs=1, seed=seed))
        for index, seed in enumerate((5, 5, 6))
    ]
    losses = [result.history[0].loss for result in results]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0] != pytest.approx(losses[2], rel=1e-5)


def test_class_weights_of_zero_silence_a_class(toy, tmp_path):
    weights = {"bad": 0.0, "good": 1.0}
    result = jobs.finetune(settings(toy, tmp_path / "run", class_weights=weights))
    assert result.dev["confusion_matrix"] == [[0, 12], [0, 12]]


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_low_precision_trains_and_loads_as_float32(toy, tmp_path, dtype):
    result = jobs.finetune(settings(toy, tmp_path / "run", dtype=dtype))
    assert result.score >= 0.8
    assert jobs.load(tmp_path / "run").model.compute_dtype == "float32"


def test_pairs_are_trained_and_remembered(toy, tmp_path):
    table = [(f"{a}", f"{b}", "same" if x == y else "other")
             for (a, x), (b, y) in zip(rows(64, 5), rows(96, 6)[1:65], strict=True)]  # fmt: skip
    table += [(b, a, label) for a, b, label in table[:10]]
    file = write_tsv(tmp_path / "pairs.tsv", table, "sentence1\tsentence2\tlabel")
    with pytest.raises(ValueError, match="all 74 examples have the label"):
        jobs.finetune(settings(toy, tmp_path / "run", train=file, dev=file))
    table[0] = (*table[0][:2], "same")
    write_tsv(file, table, "sentence1\tsentence2\tlabel")
    jobs.finetune(settings(toy, tmp_path / "run", train=file, dev=file, epochs=1))
    run = jobs.load(tmp_path / "run")
    assert run.pairs is True
    with pytest.raises(ValueError, match="classifies pairs of texts: give pairs"):
        run.predict(["fine"])
    assert len(run.predict(["fine"], ["dull"])) == 1


def test_random_weights_of_a_size(toy, tmp_path):
    config = tmp_path / "bert_config.json"
    from tests.jobs.toy import CONFIG

    config.write_text(json.dumps(CONFIG))
    options = {"weights": "none", "size": str(config), "vocab": toy.weights / "vocab.txt"}
    jobs.finetune(settings(toy, tmp_path / "run", epochs=1, **options))
    run = jobs.load(tmp_path / "run")
    assert run.model.config.hidden_size == 32
    assert run.tokenizer.lowercase is True
    options["size"] = "huge"
    with pytest.raises(ValueError, match=r"size must be a config file or one of .*base.*'huge'"):
        jobs.finetune(settings(toy, tmp_path / "other", **options))


def test_a_run_is_a_source_of_weights(toy, trained, tmp_path):
    again = jobs.finetune(settings(toy, tmp_path / "run", weights=trained.folder, epochs=1))
    assert again.score >= trained.result.score - 0.1


REFUSED = {
    "epochs": (0, "epochs must be at least 1, got 0"),
    "batch_size": (0, "batch_size must be at least 1, got 0"),
    "patience": (0, "patience must be at least 1, got 0"),
    "learning_rate": (float("nan"), "learning_rate must be greater than 0, got nan"),
    "warmup": (1.5, r"warmup must be a share from 0 to 1, got 1.5"),
    "metric": ("bleu", "metric must be one of accuracy, f1, mcc, got 'bleu'"),
    "dtype": ("int4", "dtype must be one of float32, .* got 'int4'"),
    "weights": ("none", "needs --size and --vocab"),
    "size": ("tiny", "--size goes with --weights none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_out_of_range_are_refused(toy, tmp_path, name):
    value, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        settings(toy, tmp_path / "run", **{name: value})


def test_an_interruption_leaves_nothing(toy, tmp_path):
    def interrupt(event):
        if isinstance(event, EpochDone):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.finetune(settings(toy, tmp_path / "run"), interrupt)
    assert entries(tmp_path) == []


def test_a_loss_that_is_not_finite_is_an_error(toy, tmp_path):
    weights = tmp_path / "weights"
    shutil.copytree(toy.weights, weights)
    with pytest.raises(ValueError, match="the loss of epoch 1 is .*lower learning rate"):
        jobs.finetune(settings(toy, tmp_path / "run", learning_rate=1e30))
    assert entries(tmp_path) == ["weights"]


def test_a_full_disk_is_said_before_training(toy, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100, 90, 10))
    events = []
    with pytest.raises(OSError, match=r"no disk space left .*/run: the model needs") as caught:
        jobs.finetune(settings(toy, tmp_path / "run"), events.append)
    assert caught.value.errno == errno.ENOSPC
    assert not any(isinstance(event, TrainingSummary) for event in events)
    assert entries(tmp_path) == []


def test_texts_in_both_files_are_named(toy, tmp_path, caplog):
    jobs.finetune(settings(toy, tmp_path / "run", dev=toy.train, epochs=1))
    assert "texts of" in caplog.text
    assert "its scores will look too good" in caplog.text


def test_a_shorter_vocabulary_than_the_config(toy, tmp_path):
    weights = write_weights(tmp_path / "weights", vocab_size=len(VOCAB) + 8)
    with pytest.raises(ValueError, match=f"has {len(VOCAB)} tokens .* add 8 filler lines"):
        jobs.finetune(settings(toy, tmp_path / "run", weights=weights))


def test_probabilities_of_a_trained_run_are_sure(trained):
    run = jobs.load(trained.folder)
    table = rows(20, 2)
    predictions = run.predict([text for text, _ in table])
    right = [p.label == label for p, (_, label) in zip(predictions, table, strict=True)]
    assert np.mean(right) >= 0.8
