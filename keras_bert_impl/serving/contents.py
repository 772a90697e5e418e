"""What lies in the files of a SavedModel: operations, paths, weights; nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

__all__ = ["CUSTOM_OPS", "LOAD_ERRORS", "check_checkpoint", "check_graph", "first_line"]

# In every TensorFlow Serving from 2.12 on; other operations of tensorflow_text are not.
CUSTOM_OPS = frozenset({"FastBertNormalize", "FastWordpieceTokenizeWithOffsets"})
# What TensorFlow raises for a SavedModel that is damaged or of another making.
LOAD_ERRORS = (tf.errors.OpError, OSError, ValueError, KeyError, TypeError)

# What a checkpoint may hold beside the weights: the object graph and TensorFlow's bookkeeping.
_SLACK = 65536
_LEADING = ("Graph execution error", "Detected at node", "Node:", "<stack traces", " ")


class Graph(NamedTuple):
    """Operations that are not TensorFlow's own, and what is wrong with the graph."""

    custom_ops: list[str]
    problems: list[str]


class Checkpoint(NamedTuple):
    """Number and bytes of the weights, and what is wrong with them."""

    weights: int
    weight_bytes: int
    problems: list[str]


def check_graph(model_file: Path) -> Graph:
    """Operations, XLA marks and paths in `saved_model.pb`.

    Raises:
        ValueError: the file is not a SavedModel.
    """
    content = model_file.read_bytes()
    try:
        saved_model = saved_model_pb2.SavedModel.FromString(content)
    except DecodeError as error:
        raise ValueError(f"{model_file}: not a SavedModel: {error}") from error
    nodes = list(_nodes(saved_model))
    # tf.raw_ops has TensorFlow's own only, whatever other libraries are loaded.
    custom_ops = sorted({node.op for node in nodes if not hasattr(tf.raw_ops, node.op)})
    problems = []
    unknown = [name for name in custom_ops if name not in CUSTOM_OPS]
    if unknown:
        problems.append(
            f"operations that TensorFlow Serving may lack: {', '.join(unknown)} "
            f"(allowed: {', '.join(sorted(CUSTOM_OPS))})"
        )
    if any(node.attr["_XlaMustCompile"].b for node in nodes if "_XlaMustCompile" in node.attr):
        problems.append("functions with jit_compile=True, which the server refuses to run")
    paths = {text for node in nodes for text in _strings(node) if _is_local_path(text)}
    if paths:
        listed = ", ".join(sorted(os.fsdecode(path) for path in paths))
        problems.append(f"absolute paths inside saved_model.pb: {listed}")
    return Graph(custom_ops, problems)


def check_checkpoint(variables: Path, expected: dict[str, int]) -> Checkpoint:
    """Each weight is there once: `expected` has the `count` of them and their `bytes`."""
    try:
        reader = tf.train.load_checkpoint(str(variables / "variables"))
    except LOAD_ERRORS as error:
        return Checkpoint(0, 0, [f"the weights cannot be read: {first_line(error)}"])
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    names = [name for name in shapes if dtypes[name] != tf.string]
    count = len(names)
    size = sum(int(np.prod(shapes[name], dtype=np.int64)) * dtypes[name].size for name in names)
    problems = []
    if (count, size) != (expected["count"], expected["bytes"]):
        problems.append(
            f"expected the {expected['count']} weights of the model once "
            f"({expected['bytes']} bytes), found {count} ({size} bytes)"
        )
    on_disk = sum(file.stat().st_size for file in variables.glob("variables.data-*"))
    if on_disk > expected["bytes"] + _SLACK:
        problems.append(
            f"the files of the weights have {on_disk} bytes, the weights {expected['bytes']}"
        )
    return Checkpoint(count, size, problems)


def first_line(error: BaseException) -> str:
    """Kind and cause of an error; TensorFlow's messages lead up to it and go on for pages."""
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_LEADING)]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _nodes(saved_model: Any) -> Iterator[Any]:
    for meta_graph in saved_model.meta_graphs:
        yield from meta_graph.graph_def.node
        for function in meta_graph.graph_def.library.function:
            yield from function.node_def


def _strings(node: Any) -> Iterator[bytes]:
    for value in node.attr.values():
        yield value.s
        yield from value.list.s
        yield from value.tensor.string_val


def _is_local_path(text: bytes) -> bool:
    is_path = text.startswith(b"/") and text.count(b"/") > 1 and b"\0" not in text
    return is_path and os.path.exists(text)
