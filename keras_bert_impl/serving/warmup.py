"""The warm-up file of TensorFlow Serving: a TFRecord of `PredictionLog` messages.

The server replays it before a version takes requests, so a version that lacks an operation or a
weight is never served. The three messages are declared here, with the field numbers of
`tensorflow_serving/apis/{prediction_log,predict,model}.proto`, so that the file can be written
where tensorflow-serving-api is not installed; the bytes are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["WARMUP_FILE", "Request", "read_requests", "write_requests"]

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"

_PACKAGE = "keras_bert_impl.serving"
_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
# Message -> its fields: name, number, type, repeated. A map is a repeated key-value message.
_MESSAGES = {
    "ModelSpec": [("name", 1, _STRING, False), ("signature_name", 3, _STRING, False)],
    "Input": [("key", 1, _STRING, False), ("value", 2, "tensorflow.TensorProto", False)],
    "PredictRequest": [
        ("model_spec", 1, f"{_PACKAGE}.ModelSpec", False),
        ("inputs", 2, f"{_PACKAGE}.Input", True),
    ],
    "PredictLog": [("request", 1, f"{_PACKAGE}.PredictRequest", False)],
    "PredictionLog": [("predict_log", 6, f"{_PACKAGE}.PredictLog", False)],
}


class Request(NamedTuple):
    """Inputs for one signature: arrays or lists of strings by name."""

    signature: str
    inputs: Mapping[str, np.ndarray]


def write_requests(
    path: str | os.PathLike[str], requests: Iterable[Request], *, model_name: str
) -> None:
    """Write the file; inputs are int32 or string arrays with the batch dimension first."""
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for request in requests:
            log = _prediction_log()()
            message = log.predict_log.request
            message.model_spec.name = model_name
            message.model_spec.signature_name = request.signature
            for name, value in request.inputs.items():
                tensor = tf.make_tensor_proto(value)
                message.inputs.add(key=name, value=tensor)
            writer.write(log.SerializeToString())


def read_requests(path: str | os.PathLike[str]) -> list[Request]:
    """Read the file back.

    Raises:
        tf.errors.OpError: no such file, or it is damaged.
    """
    requests = []
    for record in tf.compat.v1.io.tf_record_iterator(os.fspath(path)):
        message = _prediction_log().FromString(record).predict_log.request
        inputs = {entry.key: tf.make_ndarray(entry.value) for entry in message.inputs}
        requests.append(Request(message.model_spec.signature_name, inputs))
    return requests


def _prediction_log() -> type:
    """Class of the message, declared in protobuf's default pool, where `TensorProto` is."""
    pool = descriptor_pool.Default()
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_bert_impl/serving/warmup.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=["tensorflow/core/framework/tensor.proto"],
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind, repeated in fields:
            field = message.field.add(name=name, number=number)
            field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if kind == _STRING:
                field.type = kind
            else:
                field.type, field.type_name = field.TYPE_MESSAGE, f".{kind}"
    pool.AddSerializedFile(file.SerializeToString())
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.PredictionLog")
    return message_factory.GetMessageClass(descriptor)
