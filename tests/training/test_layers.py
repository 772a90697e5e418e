"""Freezing, low-rank training and learning rates by depth."""

from __future__ import annotations

import numpy as np
import pytest

from keras_bert_impl.models import BertClassifier
from keras_bert_impl.training.layers import LayerwiseAdamW, choose_trainable, layer_rates
from tests.checks import BATCH, CONFIG

LABELS = np.array([0, 1, 0], "int32")


def changed(model) -> set[str]:
    """Names of the parts that one step of training changes."""
    before = [np.array(v) for v in model.weights]
    model.train_on_batch(BATCH, LABELS)
    pairs = zip(model.weights, before, strict=True)
    return {v.path for v, old in pairs if not np.array_equal(np.array(v), old)}


def test_frozen_layers_stay():
    model = BertClassifier(CONFIG, 2)
    choose_trainable(model, freeze_layers=1)
    model.compile(LayerwiseAdamW(1e-2), jit_compile=False)
    paths = changed(model)
    frozen = {v.path for part in (model.encoder.embeddings, model.encoder.blocks[0])
              for v in part.weights}  # fmt: skip
    assert not paths & frozen
    assert paths & {v.path for v in model.encoder.blocks[1].weights}


def test_the_whole_encoder_stays_and_the_head_learns():
    model = BertClassifier(CONFIG, 2)
    choose_trainable(model, freeze_layers=-1)
    model.compile(LayerwiseAdamW(1e-2), jit_compile=False)
    assert changed(model) == {v.path for v in model.head.weights}


def test_more_layers_than_there_are():
    with pytest.raises(ValueError, match="the encoder has 2 layers, got 3"):
        choose_trainable(BertClassifier(CONFIG, 2), freeze_layers=3)


def test_low_rank_changes_are_saved_as_ordinary_weights(tmp_path):
    model = BertClassifier(CONFIG, 2)
    choose_trainable(model, lora_rank=2)
    model.compile(LayerwiseAdamW(1e-2), jit_compile=False)
    for _ in range(2):
        paths = changed(model)
    assert all("lora" in path or "bias" in path or "head" in path or "pooler" in path
               for path in paths)  # fmt: skip
    model.save_pretrained(tmp_path / "run")
    again = BertClassifier.from_pretrained(tmp_path / "run")
    np.testing.assert_allclose(again.predict(BATCH), model.predict(BATCH), atol=1e-5)


def test_rates_by_depth_scale_the_step():
    model = BertClassifier(CONFIG, 2, dropout=0.0)
    rates = layer_rates(model, 0.5)
    kernels = [block.intermediate.kernel for block in model.encoder.blocks]
    assert [rates[kernel.path] for kernel in kernels] == [0.25, 0.5]
    assert rates[model.encoder.embeddings.token.embeddings.path] == 0.125
    before = [np.array(kernel) for kernel in kernels]
    model.compile(LayerwiseAdamW(1e-3, rates, weight_decay=0.0, epsilon=1e-12), jit_compile=False)
    model.train_on_batch(BATCH, LABELS)
    steps = [np.abs(np.array(k) - old).max() for k, old in zip(kernels, before, strict=True)]
    assert steps == pytest.approx([0.25e-3, 0.5e-3], rel=0.05)
