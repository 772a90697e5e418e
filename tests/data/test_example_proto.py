from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.example_proto import RaggedInts, encode_examples


def serialized(features: dict[str, np.ndarray]) -> bytes:
    """What the protocol buffers of TensorFlow make of one example."""
    found = {}
    for key, values in features.items():
        if values.dtype == np.float32:
            found[key] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            found[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    example = tf.train.Example(features=tf.train.Features(feature=found))
    return example.SerializeToString(deterministic=True)


@pytest.mark.parametrize("seed", range(8))
def test_bytes_are_those_of_protocol_buffers(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 40))
    lengths = rng.integers(1, 300, rows)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    most = [1, 127, 128, 16383, 16384, 2**21, 2**31 - 1][seed % 7]
    flat = rng.integers(0, most, starts[-1], endpoint=True)
    dense = rng.integers(0, most, (rows, int(rng.integers(1, 200))), endpoint=True)
    floats = rng.standard_normal((rows, 7)).astype(np.float32)
    features = {"b": RaggedInts(flat, starts), "a_key": dense, "weights": floats}
    expected = [
        serialized({"b": flat[a:b], "a_key": dense[n], "weights": floats[n]})
        for n, (a, b) in enumerate(pairwise(starts))
    ]
    assert encode_examples(features) == expected


def test_values_at_the_edges_of_varints():
    values = np.array([[0, 127, 128, 16383, 16384, 2097151, 2097152, 268435456, 2**31 - 1]])
    assert encode_examples({"x": values}) == [serialized({"x": values[0]})]
