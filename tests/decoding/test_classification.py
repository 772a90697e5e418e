from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.decoding.classification import decode_classes, decode_scores, label_names


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.float16])
def test_classes_and_probabilities(dtype):
    logits = np.array([[0.0, 1.0, -1.0], [1000.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    decoded = decode_classes(tf.constant(logits, dtype))
    assert decoded["label_ids"].dtype == tf.int32
    assert decoded["label_ids"].numpy().tolist() == [1, 0, 0]
    assert decoded["probabilities"].dtype == tf.float32
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(decoded["probabilities"], expected, atol=1e-6)


def test_same_in_a_graph_and_on_an_empty_batch():
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def classify(logits):
        decoded = decode_classes(logits)
        return decoded | {"labels": label_names(decoded["label_ids"], ["差", "好"])}

    named = classify(tf.constant([[0.0, 1.0], [3.0, 1.0]]))["labels"].numpy()
    assert [name.decode() for name in named] == ["好", "差"]
    empty = classify(tf.zeros([0, 2]))
    assert {name: value.shape.as_list() for name, value in empty.items()} == {
        "label_ids": [0],
        "probabilities": [0, 2],
        "labels": [0],
    }


def test_scores():
    scores = decode_scores(tf.constant([[1.5], [2.5]], tf.bfloat16))
    assert scores.dtype == tf.float32
    assert scores.numpy().tolist() == [1.5, 2.5]
