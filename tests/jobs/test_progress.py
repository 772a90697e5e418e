"""The callback that scores, keeps the best and stops, on a model that only counts."""

from __future__ import annotations

import numpy as np
import pytest

from keras_bert_impl.data.readers import LabelledExamples
from keras_bert_impl.jobs.progress import DevSet, EpochDone, KeepBest, StepDone
from keras_bert_impl.tasks import TASKS, TaskOptions

DEV = LabelledExamples(["a"] * 4, None, ["no", "yes"] * 2, [1, 2, 3, 4], "dev.tsv")


class CountingModel:
    """Its only weight is the number of its epoch."""

    weight = 0
    stop_training = False

    def get_weights(self):
        return [self.weight]

    def set_weights(self, weights):
        (self.weight,) = weights


def callback_after(monkeypatch, answers: list[list[float]], *, metric="accuracy", patience=None):
    """Runs epochs that give these probabilities of class 1."""
    model, events = CountingModel(), []
    task = TASKS["classification"]
    monkeypatch.setattr(task, "outputs", lambda model, *_: table(model.weight))

    def table(epoch):
        ones = np.array(answers[epoch - 1], np.float32)
        return np.log(np.stack([1 - ones, ones], axis=1))

    options = {"metric": metric, "patience": patience, "batch_size": 2, "on_event": events.append}
    callback = KeepBest(DevSet(task, DEV, None, ["no", "yes"], TaskOptions()), **options)
    callback.set_model(model)
    callback.set_params({"epochs": len(answers), "steps": 2})
    for epoch in range(len(answers)):
        model.weight = epoch + 1
        callback.on_epoch_begin(epoch)
        callback.on_train_batch_end(1, {"loss": 0.5})
        callback.on_epoch_end(epoch, {"loss": 0.5, "accuracy": 0.75})
        if model.stop_training:
            break
    return callback, events


HALF, THREE = [0.6, 0.6, 0.6, 0.6], [0.4, 0.6, 0.4, 0.4]
SURE = [0.1, 0.9, 0.1, 0.4]


def test_the_best_epoch_is_kept(monkeypatch):
    callback, events = callback_after(monkeypatch, [HALF, THREE, HALF])
    assert (callback.best_epoch, callback.best_score) == (2, 0.75)
    assert callback.best_report["confusion_matrix"] == [[2, 0], [1, 1]]
    assert callback.model.weight == 3
    callback.restore()
    assert callback.model.weight == 2
    epochs = [event for event in events if isinstance(event, EpochDone)]
    assert [epoch.best for epoch in epochs] == [True, True, False]
    assert epochs[1].dev_loss == pytest.approx(-np.log([0.6, 0.6, 0.6, 0.4]).mean(), rel=1e-5)
    assert [(e.epoch, e.step) for e in events if isinstance(e, StepDone)] == [
        (1, 2),
        (2, 2),
        (3, 2),
    ]


def test_of_equal_scores_the_lower_loss_is_better(monkeypatch):
    assert callback_after(monkeypatch, [THREE, SURE, THREE])[0].best_epoch == 2


@pytest.mark.parametrize(("patience", "epochs"), [(1, 2), (2, 3), (None, 5)])
def test_training_stops_after_epochs_without_a_better_score(monkeypatch, patience, epochs):
    callback, _ = callback_after(monkeypatch, [THREE, *[HALF] * 4], patience=patience)
    assert len(callback.history) == epochs
    assert callback.best_epoch == 1


def test_the_metric_decides(monkeypatch):
    answers = {"f1": "macro_f1", "mcc": "matthews_correlation"}
    for metric, name in answers.items():
        callback, _ = callback_after(monkeypatch, [HALF, THREE], metric=metric)
        assert callback.best_score == callback.best_report[name] != 0.75


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_an_error(monkeypatch, loss):
    callback, _ = callback_after(monkeypatch, [THREE])
    with pytest.raises(ValueError, match=rf"the loss of epoch 2 is {loss}: train with a lower"):
        callback.on_epoch_end(1, {"loss": loss, "accuracy": 0.5})
