"""BertMultipleChoice: messages about its inputs, and its export by Keras."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.models import BertMultipleChoice
from tests.checks import BATCH, CONFIG

CHOICES = {name: np.stack([value, value], axis=1) for name, value in BATCH.items()}  # [3, 2, S]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (BATCH, r"token_ids must have the shape \[batch, choices, sequence\], got \(3, 5\)"),
        (CHOICES | {"ids": BATCH["token_ids"]}, "expected the inputs"),
        (CHOICES | {"segment_ids": CHOICES["segment_ids"][:, :1]}, "the shape of token_ids"),
        (list(CHOICES.values()), "expected a dict with the keys"),
    ],
)
def test_bad_inputs(inputs, message):
    with pytest.raises(ValueError, match=message):
        BertMultipleChoice(CONFIG)(inputs)


def test_logits_of_a_choice_do_not_depend_on_the_others():
    model = BertMultipleChoice(CONFIG)
    together = ops.convert_to_numpy(model(CHOICES))
    alone = ops.convert_to_numpy(model({name: value[:, :1] for name, value in CHOICES.items()}))
    np.testing.assert_allclose(together[:, :1], alone, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a SavedModel of TensorFlow")
def test_export_of_keras(tmp_path):
    import tensorflow as tf

    model = BertMultipleChoice(CONFIG)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "exported")
    found = loaded.serve({name: tf.constant(value) for name, value in CHOICES.items()})
    np.testing.assert_allclose(found, model(CHOICES), atol=1e-5)
