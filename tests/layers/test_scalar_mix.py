"""The learned sum of layers against NumPy."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import ScalarMix
from keras_bert_impl.models import BertEncoder
from tests.checks import BATCH, CONFIG, vectors


def test_the_sum():
    layers = list(vectors(3, 2, 4, 5))
    mix = ScalarMix()
    np.testing.assert_allclose(mix(layers), np.mean(layers, axis=0), atol=1e-6)
    mix.set_weights([np.array([1.0, 2.0, -1.0]), np.array(0.5)])
    shares = np.exp([1, 2, -1]) / np.exp([1, 2, -1]).sum()
    expected = 0.5 * np.einsum("l,lbsh->bsh", shares, layers)
    np.testing.assert_allclose(mix(layers), expected, atol=1e-6)


def test_it_takes_the_states_of_an_encoder_with_their_mask():
    config: BertConfig = CONFIG
    inputs = {name: keras.Input([None], dtype="int32", name=name) for name in BATCH}
    states = BertEncoder(config)(inputs, return_hidden_states=True)["hidden_states"]
    mixed = ScalarMix()(states)
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(mixed))
    full = {name: x[1:2] for name, x in BATCH.items()}
    padded = {name: np.pad(x, [(0, 0), (0, 3)]) for name, x in full.items()}
    np.testing.assert_allclose(
        ops.convert_to_numpy(model(full)), ops.convert_to_numpy(model(padded)), atol=1e-5
    )


def test_other_inputs():
    with pytest.raises(ValueError, match="expected a list of tensors, one a layer"):
        ScalarMix()(vectors(2, 3, 4))
    with pytest.raises(ValueError, match="the layers must have one shape"):
        ScalarMix()([vectors(2, 3, 4), vectors(2, 3, 5)])
