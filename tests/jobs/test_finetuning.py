"""Fine-tuning on a toy task: what is learned, kept, written, and refused before the first step."""

from __future__ import annotations

import errno
import io
import itertools
import json
import shutil
from collections import namedtuple

import pytest

from keras_bert_impl import jobs
from keras_bert_impl.data.encoding import encode_texts
from keras_bert_impl.jobs.preparation import make_tokenizer, read_files, warn_of_unknown
from keras_bert_impl.jobs.progress import EpochDone, Stage, StepDone, TrainingSummary
from tests.jobs.toy import CONFIG, VOCAB, rows, settings, write_tsv, write_weights
from tests.sources.conftest import entries


def read_json(file):
    return json.loads(file.read_text("utf-8"))


def test_the_toy_task_is_learned(trained):
    assert trained.result.score >= 0.9
    assert trained.result.dev["accuracy"] == trained.result.score
    assert trained.result.labels == ["bad", "good"]


def test_the_run_holds_all_files(trained, toy):
    assert entries(trained.folder) == [
        *("curves.png", "dev_predictions.jsonl", "errors.tsv", "history.json", "keras_bert.json"),
        *("labels.txt", "logs", "metrics.json", "model.weights.h5", "report.html"),
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
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4, 5, 6]
    for name in ("training.json", "metrics.json", "history.json"):
        assert read_json(trained.folder / name)["format_version"] == 1


def test_events_tell_what_happens(trained):
    kinds = [type(event) for event in trained.events]
    assert kinds.index(TrainingSummary) < kinds.index(StepDone) < kinds.index(EpochDone)
    summary = next(event for event in trained.events if isinstance(event, TrainingSummary))
    assert (summary.train_examples, summary.dev_examples, summary.rows) == (96, 24, 96)
    assert summary.train_labels == {"bad": 48, "good": 48}
    assert summary.dev_labels == {"bad": 12, "good": 12}
    assert (summary.epochs, summary.steps_per_epoch) == (6, 12)
    assert summary.truncated == 0
    words = sum(len(text.split()) for text, _ in rows(96, 0))
    assert summary.tokens == words + 2 * 96
    last = [event for event in trained.events if isinstance(event, StepDone)][-1]
    assert (last.epoch, last.step, last.steps) == (6, 12, 12)
    assert isinstance(trained.events[0], Stage)


def test_the_saved_weights_are_those_of_the_best_epoch(toy, trained):
    best = max(trained.result.history, key=lambda epoch: (epoch.dev["accuracy"], -epoch.dev_loss))
    assert trained.result.best_epoch == best.epoch
    report = jobs.evaluate(trained.folder, toy.dev).report
    assert report == trained.result.dev


def test_the_same_seed_gives_the_same_run(toy, trained, tmp_path):
    again = jobs.finetune(settings(toy, tmp_path / "run"))
    for ours, theirs in zip(again.history, trained.result.history, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)
        assert ours.dev_loss == pytest.approx(theirs.dev_loss, rel=1e-4)


def test_low_precision_trains_and_loads_as_float32(toy, tmp_path):
    result = jobs.finetune(settings(toy, tmp_path / "run", dtype="mixed_float16"))
    assert result.score >= 0.8
    run = jobs.load(tmp_path / "run")
    assert run.model.compute_dtype == "float32"
    assert jobs.evaluate(run, toy.dev).report["accuracy"] == pytest.approx(result.score, abs=0.05)


def test_pairs_are_trained_and_remembered(toy, tmp_path):
    table = [
        (first, second, "same" if one == other else "other")
        for index in range(0, 32, 2)
        for (first, one), (second, other) in itertools.product(rows(2, index), rows(2, index + 1))
    ]
    file = write_tsv(tmp_path / "pairs.tsv", table, "sentence1\tsentence2\tlabel")
    options = {"train": file, "dev": file, "class_weights": "balanced"}
    jobs.finetune(settings(toy, tmp_path / "run", epochs=1, **options))
    run = jobs.load(tmp_path / "run")
    assert run.pairs is True
    with pytest.raises(ValueError, match="classifies pairs of texts: give pairs"):
        run.predict(["fine"])
    assert len(run.predict(["fine"], ["dull"])) == 1
    with pytest.raises(ValueError, match="classifies pairs of texts, the file has single ones"):
        jobs.evaluate(run, write_tsv(tmp_path / "single.tsv", [("a b", "same"), ("b", "other")]))
    source = io.BytesIO(b"the film\tthe play\nfine\tdull\n")
    output = io.BytesIO()
    assert jobs.predict_rows(run, source, output) == 2
    wanted = run.predict(["the film", "fine"], ["the play", "dull"])
    assert output.getvalue().decode() == "".join(
        f"{p.label}\t{p.probability:.6f}\n" for p in wanted
    )


def test_random_weights_of_a_size_and_a_class_of_no_weight(toy, tmp_path):
    config = tmp_path / "bert_config.json"
    config.write_text(json.dumps(CONFIG))
    options = {"weights": "none", "size": str(config), "vocab": toy.weights / "vocab.txt"}
    result = jobs.finetune(
        settings(toy, tmp_path / "run", class_weights={"bad": 0.0}, epochs=2, **options)
    )
    assert result.dev["confusion_matrix"] == [[0, 12], [0, 12]]
    run = jobs.load(tmp_path / "run")
    assert run.model.config.hidden_size == 32
    assert run.tokenizer.lowercase is True


def test_an_unknown_size_is_refused_with_the_known_ones(toy, tmp_path):
    options = {"weights": "none", "size": "huge", "vocab": toy.weights}
    with pytest.raises(ValueError, match=r"size must be a config file or one of .*base.*'huge'"):
        jobs.finetune(settings(toy, tmp_path / "run", **options))


REFUSED = {
    "epochs": (0, "epochs must be at least 1, got 0"),
    "batch_size": (0, "batch_size must be at least 1, got 0"),
    "patience": (0, "patience must be at least 1, got 0"),
    "learning_rate": (float("nan"), "learning_rate must be greater than 0, got nan"),
    "warmup": (1.5, r"warmup must be a share from 0 to 1, got 1.5"),
    "metric": ("bleu", "metric must be one of accuracy, f1, mcc, f1-binary, got 'bleu'"),
    "dtype": ("int4", "dtype must be one of float32, .* got 'int4'"),
    "seed": (-1, r"seed must be from 0 to 2\*\*32 - 1, got -1"),
    "weights": ("none", "needs --size and --vocab"),
    "size": ("tiny", r"--size goes with --weights none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_out_of_range_are_refused(toy, tmp_path, name):
    value, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        settings(toy, tmp_path / "run", **{name: value})


def test_an_interruption_leaves_nothing(toy, tmp_path):
    def interrupt(event):
        if isinstance(event, TrainingSummary):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.finetune(settings(toy, tmp_path / "run"), interrupt)
    assert entries(tmp_path) == []


def test_a_full_disk_is_said_before_training(toy, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100, 90, 10))
    events = []
    with pytest.raises(OSError, match=r"no disk space left to write .*/run") as caught:
        jobs.finetune(settings(toy, tmp_path / "run"), events.append)
    assert caught.value.errno == errno.ENOSPC
    assert not any(isinstance(event, TrainingSummary) for event in events)
    assert entries(tmp_path) == []


def test_texts_in_both_files_are_named(toy, tmp_path, caplog):
    read_files(settings(toy, tmp_path / "run", dev=toy.train))
    assert f"96 texts of {toy.train} are in {toy.train} too" in caplog.text
    assert "its scores will look too good" in caplog.text


def test_a_shorter_vocabulary_than_the_config(toy, tmp_path):
    weights = write_weights(tmp_path / "weights", vocab_size=len(VOCAB) + 8)
    with pytest.raises(ValueError, match=f"has {len(VOCAB)} tokens .* add 8 filler lines"):
        jobs.finetune(settings(toy, tmp_path / "run", weights=weights))


@pytest.mark.parametrize(("text", "warned"), [("fine 北 京 film", True), ("fine film", False)])
def test_a_vocabulary_for_another_language_is_named(toy, tmp_path, caplog, text, warned):
    options = settings(toy, tmp_path / "run")
    tokenizer = make_tokenizer(options)
    warn_of_unknown(options, encode_texts(tokenizer, [text], None), tokenizer.vocab)
    message = f"50 % of the tokens are [UNK] with the vocabulary of {toy.weights}"
    assert (message in caplog.text) == warned


def test_lora_in_a_frozen_encoder_is_refused(toy, tmp_path):
    with pytest.raises(ValueError, match=r"leave out one of them"):
        settings(toy, tmp_path / "run", lora_rank=2, freeze_layers=-1)
