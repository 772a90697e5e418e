"""The whole step of training compiles by XLA in static shapes, with nothing left to the host.

Checked on the program that XLA is given (stage ``hlo``), which is the same for every device, in
the forms that layers take on CPUs and on accelerators. What XLA's CPU back end turns it into
afterwards, products by oneDNN among them, says nothing of other devices.
"""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest

from tests.trainer.cases import CONFIG, Case, batches, make_model

if keras.backend.backend() != "tensorflow":
    pytest.skip("on JAX every step is compiled by XLA", allow_module_level=True)

import tensorflow as tf

from keras_bert_impl.layers import backend

DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
CASES = {
    "pretrainer": Case(global_clipnorm=1.0),
    "pretrainer: lamb, ema, micro-batches, bfloat16": Case(
        optimizer="lamb", global_clipnorm=1.0, ema=True, micro_batches=2, dtype="mixed_bfloat16"
    ),
    "classifier": Case("classifier", global_clipnorm=1.0),
}


def step_of(case: Case, data):
    """A compiled step of training; nothing of it is traced yet."""
    model = make_model(case)
    model._symbolic_build(data_batch=data)
    return model, tf.function(model.train_step, jit_compile=True)


@pytest.fixture(autouse=True)
def _dropout(monkeypatch):
    monkeypatch.setattr("tests.trainer.cases.CONFIG", CONFIG.replace(**DROPOUT))


@pytest.mark.parametrize("on_cpu", [True, False], ids=["CPU form", "accelerator form"])
@pytest.mark.parametrize("name", CASES)
def test_the_program_is_static_and_stays_on_the_device(name, on_cpu, monkeypatch):
    monkeypatch.setattr(backend, "_on_cpu", lambda: on_cpu)
    case = CASES[name]
    data = keras.tree.map_structure(tf.constant, next(batches(case.kind)))
    _, step = step_of(case, data)
    program = step.experimental_get_compiler_ir(data)(stage="hlo")
    assert program.count(" dot(") > 10
    assert not re.findall(r"<=\d+", program)
    for forbidden in ("custom-call", "infeed", "outfeed", "send(", "recv("):
        assert forbidden not in program
    if not on_cpu:
        # FusedBatchNorm, which no accelerator gets, sets sizes; static ones, as seen above.
        assert "set-dimension-size" not in program
    assert ("bf16[" in program) == (case.dtype == "mixed_bfloat16")

    nodes = nodes_of(step.get_concrete_function(data))
    random = {node.op for node in nodes if "Random" in node.op}
    assert random
    assert all(op.startswith("Stateless") for op in random)
    assert not {node.op for node in nodes} & {"PyFunc", "EagerPyFunc", "PrintV2", "Where", "Unique"}
    # XLA drops assertions; their messages are the only strings.
    strings = [n for n in nodes if n.attr["dtype"].type == tf.string.as_datatype_enum]
    assert {node.op for node in strings} <= {"Const"}


def nodes_of(function):
    graph = function.graph.as_graph_def()
    return [*graph.node, *(n for f in graph.library.function for n in f.node_def)]


def test_the_check_can_fail():
    @tf.function(jit_compile=True)
    def chosen(x):
        return tf.boolean_mask(x, x > 0)

    assert re.findall(r"<=\d+", chosen.experimental_get_compiler_ir(tf.range(4))(stage="hlo"))


@pytest.mark.parametrize("name", ["pretrainer", "classifier"])
def test_the_step_compiles_and_trains(name):
    case = CASES[name]
    data = keras.tree.map_structure(tf.constant, next(batches(case.kind)))
    model, step = step_of(case, data)
    losses = []
    for _ in range(20):
        model.reset_metrics()
        losses.append(float(step(data)["loss"]))
    assert np.isfinite(losses).all()
    assert np.mean(losses[-5:]) < np.mean(losses[:3])
    assert int(model.optimizer.iterations.numpy()) == 20
