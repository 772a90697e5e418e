from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.serving.warmup import Request, read_requests, write_requests

REQUESTS = [
    Request("serving_default", {"text": np.array([b"a", "ä\0".encode(), b"\xff"], object)}),
    Request(
        "ids",
        {
            "token_ids": np.array([[2, 7, 3], [2, 3, 0]], np.int32),
            "padding_mask": np.array([[1, 1, 1], [1, 1, 0]], np.int32),
        },
    ),
]


@pytest.fixture
def file(tmp_path):
    write_requests(tmp_path / "requests", REQUESTS, model_name="reviews")
    return tmp_path / "requests"


def assert_equal(got, expected):
    assert got.signature == expected.signature
    assert set(got.inputs) == set(expected.inputs)
    for name, value in expected.inputs.items():
        assert got.inputs[name].dtype == value.dtype
        assert got.inputs[name].tolist() == value.tolist()


def test_what_is_written_is_read(file):
    got = read_requests(file)
    assert len(got) == len(REQUESTS)
    for one, expected in zip(got, REQUESTS, strict=True):
        assert_equal(one, expected)


def test_the_server_reads_the_same(file):
    """Oracle: the messages of tensorflow-serving-api."""
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(file))]
    assert len(records) == len(REQUESTS)
    for record, expected in zip(records, REQUESTS, strict=True):
        log = apis.PredictionLog.FromString(record)
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        assert request.model_spec.name == "reviews"
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        assert_equal(Request(request.model_spec.signature_name, inputs), expected)
        log.DiscardUnknownFields()
        assert log.ByteSize() == len(record)


def test_a_damaged_file_is_an_error(file):
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(tf.errors.DataLossError):
        read_requests(file)
