from __future__ import annotations

import json
import logging
import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.training import AdamW, WarmupLinearDecay
from keras_bert_impl.training.checkpointing import (
    Checkpoints,
    Interrupted,
    SaveCheckpoints,
    signals_deferred,
)

STEPS, BATCH = 12, 4


def make_model(hidden_size=8):
    keras.utils.set_random_seed(3)
    config = BertConfig(
        vocab_size=20,
        hidden_size=hidden_size,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
    )
    model = BertClassifier(config, 2)
    model.compile(AdamW(WarmupLinearDecay(1e-2, STEPS)))
    return model


def batches(start=0):
    random = np.random.default_rng(0)
    ids = random.integers(0, 20, (STEPS * BATCH, 6)).astype("int32")
    labels = random.integers(0, 2, STEPS * BATCH).astype("int32")
    return tf.data.Dataset.from_tensor_slices(({"token_ids": ids}, labels)).batch(BATCH).skip(start)


def train(model, checkpoints, start=0, stop=STEPS, every=5):
    save = SaveCheckpoints(checkpoints, every, step=start)
    model.fit(batches(start), steps_per_epoch=stop - start, verbose=0, callbacks=[save])


def state_of(model):
    return [keras.ops.convert_to_numpy(v) for v in [*model.variables, *model.optimizer.variables]]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    model = make_model()
    train(model, Checkpoints(tmp_path_factory.mktemp("whole")))
    return state_of(model)


@pytest.mark.parametrize("place", ["folder", "ram://checkpoints/run"])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(place, uninterrupted, tmp_path):
    checkpoints = Checkpoints(place if "://" in place else tmp_path / place)
    train(make_model(), checkpoints, stop=7)
    assert checkpoints.steps() == [5]
    model = make_model()
    state = checkpoints.restore(model)
    assert state["step"] == 5
    train(model, checkpoints, start=5)
    assert checkpoints.steps() == [5, 10]
    for ours, theirs in zip(state_of(model), uninterrupted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_nothing_to_restore(tmp_path):
    assert Checkpoints(tmp_path / "none").restore(make_model()) is None


def test_only_the_newest_stay(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    train(make_model(), checkpoints, every=2)
    assert checkpoints.steps() == [10, 12]
    assert sorted(os.listdir(tmp_path)) == ["step-00000010", "step-00000012"]
    with pytest.raises(ValueError, match="keep must be at least 1, got 0"):
        Checkpoints(tmp_path, keep=0)


def damage_by_cutting(folder):
    file = folder / "model.weights.h5"
    file.write_bytes(file.read_bytes()[:-100])


def damage_by_a_flipped_bit(folder):
    file = folder / "seeds.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def damage_by_removing(folder):
    (folder / "state.json").unlink()


def damage_by_half_a_state(folder):
    (folder / "state.json").write_text('{"format_version": 1, "st')


DAMAGES = [
    damage_by_cutting,
    damage_by_a_flipped_bit,
    damage_by_removing,
    damage_by_half_a_state,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_checkpoint_falls_back(damage, tmp_path, caplog):
    checkpoints = Checkpoints(tmp_path)
    train(make_model(), checkpoints)
    damage(tmp_path / "step-00000010")
    with caplog.at_level(logging.WARNING):
        assert checkpoints.restore(make_model())["step"] == 5
    assert "step-00000010 is damaged" in caplog.text
    damage(tmp_path / "step-00000005")
    with pytest.raises(ValueError, match=r"every checkpoint is damaged \(steps \[5, 10\]\)"):
        checkpoints.restore(make_model())


def test_another_model_and_a_newer_format_are_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    train(make_model(), checkpoints, stop=6)
    with pytest.raises(ValueError, match="step-00000005: does not fit the model"):
        checkpoints.restore(make_model(hidden_size=16))
    file = tmp_path / "step-00000005" / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format_version": 9}))
    with pytest.raises(ValueError, match="format_version 9 is not known"):
        checkpoints.restore(make_model())


def test_a_signal_saves_and_stops(uninterrupted, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    model = make_model()
    kill = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: batch == 6 and signal.raise_signal(signal.SIGTERM)
    )
    handler = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(Interrupted, match="after step 7 by SIGTERM") as stopped,
        signals_deferred(signal.SIGTERM, signal.SIGINT) as signals,
    ):
        save = SaveCheckpoints(checkpoints, 100, signals=signals)
        model.fit(batches(), verbose=0, callbacks=[kill, save])
    assert (stopped.value.step, stopped.value.number) == (7, signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is handler
    resumed = make_model()
    assert checkpoints.restore(resumed)["step"] == 7
    train(resumed, checkpoints, start=7)
    for ours, theirs in zip(state_of(resumed), uninterrupted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def interrupts_raise():
    """As in a terminal: a process that is started in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_raise")
def test_a_second_signal_acts_as_before():
    with pytest.raises(KeyboardInterrupt), signals_deferred(signal.SIGTERM, signal.SIGINT) as noted:
        signal.raise_signal(signal.SIGTERM)
        assert noted == [signal.SIGTERM]
        signal.raise_signal(signal.SIGINT)


def test_only_the_chief_writes(tmp_path):
    save = SaveCheckpoints(Checkpoints(tmp_path), 2, is_chief=False)
    make_model().fit(batches(), verbose=0, callbacks=[save])
    assert save.step == STEPS
    assert os.listdir(tmp_path) == []
