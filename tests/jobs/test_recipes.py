"""Options of fine-tuning that change how is trained: regularisation, averages, several trials."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

import keras_bert_impl
from keras_bert_impl import jobs
from keras_bert_impl.cli import app
from keras_bert_impl.models import BertClassifier
from tests.jobs.toy import settings, write_weights


@pytest.mark.parametrize("recipe", [{"r_drop": 0.5, "micro_batches": 2}, {"adversarial": 0.1}])
def test_the_toy_task_is_learned(toy, tmp_path, recipe):
    # Embeddings that are long beside the perturbation.
    weights = write_weights(tmp_path / "weights", initializer_range=0.1)
    result = jobs.finetune(settings(toy, tmp_path / "run", weights=weights, **recipe))
    assert result.score >= 0.9
    kept = json.loads((tmp_path / "run" / "training.json").read_text())["settings"]
    assert recipe.items() <= kept.items()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"micro_batches": 3}, r"batch_size 8 \(--batch-size\) cannot be cut into 3 equal parts"),
        ({"micro_batches": 0}, "micro_batches must be at least 1, got 0"),
        ({"r_drop": 0.5, "task": "sts-b"}, r"r_drop \(--r-drop\) .* not for regression"),
        ({"r_drop": 0.5, "task": "multi-label"}, "not for multi-label"),
        ({"r_drop": 0.5, "adversarial": 1.0}, "expected r_drop or adversarial, got both"),
    ],
)
def test_recipes_that_cannot_be(toy, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        settings(toy, tmp_path / "run", **changes)


def test_the_kept_weights_are_the_running_average(toy, tmp_path, monkeypatch):
    steps: list[list[np.ndarray]] = []

    class Record(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            steps.append([v.numpy() for v in self.model.trainable_variables])

    fit = BertClassifier.fit
    monkeypatch.setattr(
        BertClassifier,
        "fit",
        lambda self, data, *, callbacks, **options: fit(
            self, data, callbacks=[Record(), *callbacks], **options
        ),
    )
    result = jobs.finetune(settings(toy, tmp_path / "run", ema=0.8, epochs=2))
    averages = steps[0]
    for values in steps[1 : 12 * result.best_epoch]:
        averages = [0.8 * a + 0.2 * v for a, v in zip(averages, values, strict=True)]
    model = keras_bert_impl.load(tmp_path / "run").model
    assert len(steps) == 24
    for variable, average in zip(model.trainable_variables, averages, strict=True):
        np.testing.assert_allclose(variable.numpy(), average, atol=1e-6, err_msg=variable.path)


def test_of_several_trials_the_best_is_kept(toy, tmp_path):
    options = {"num_trials": 3, "epochs": 3, "learning_rate": 2.5e-3, "seed": 5}
    result = jobs.finetune(settings(toy, tmp_path / "run", **options))
    scores = [trial.score for trial in result.trials]
    assert [trial.seed for trial in result.trials] == [5, 6, 7]
    assert len(set(scores)) > 1
    assert result.score == max(scores)
    assert result.median_score == sorted(scores)[1]
    assert jobs.evaluate(tmp_path / "run", toy.dev).report == result.dev
    kept = json.loads((tmp_path / "run" / "training.json").read_text())["trials"]
    assert [trial["score"] for trial in kept] == scores
    assert {epoch.trial for epoch in result.history} == {1 + scores.index(max(scores))}


def test_trials_that_collapse_are_reported(toy, tmp_path):
    options = {"train": toy.train, "dev": toy.dev, "weights": toy.weights, "output": tmp_path / "r",
               "epochs": 1, "max-length": 32, "num-trials": 2,
               "class-weights": '{"bad": 0}'}  # fmt: skip
    arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    done = CliRunner().invoke(app, ["finetune", *arguments])
    assert done.exit_code == 0, done.output
    assert "accuracy by seed 0: 0.5000 (collapsed), 1: 0.5000 (collapsed); median 0.5000" in (
        done.stdout
    )
    assert "seed 1: the model says the same for every example" in done.stderr
