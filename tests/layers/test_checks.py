"""Every public layer: configs, files, precision, gradients."""

from __future__ import annotations

import keras
import pytest

from keras_bert_impl import layers
from tests import checks


def test_the_table_holds_every_public_layer():
    public = {
        name
        for name in layers.__all__
        if isinstance(getattr(layers, name), type)
        and issubclass(getattr(layers, name), keras.layers.Layer)
    }
    assert public == set(checks.LAYERS)


@pytest.mark.parametrize("name", checks.LAYERS)
def test_config_round_trip(name):
    checks.check_config_round_trip(checks.LAYERS[name])


@pytest.mark.parametrize("name", checks.LAYERS)
def test_keras_file(name, tmp_path):
    checks.check_keras_file(checks.LAYERS[name], tmp_path / "layer.keras")


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", checks.LAYERS)
def test_mixed_precision(name, policy):
    checks.check_mixed_precision(checks.LAYERS[name], policy)


@pytest.mark.parametrize("name", sorted(set(checks.LAYERS) - {"Dropout"}))
def test_a_gradient_reaches_each_weight(name):
    checks.check_gradients(checks.LAYERS[name])
