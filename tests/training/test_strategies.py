from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from keras_bert_impl.training.strategies import (
    check_batch_size,
    describe,
    distribute,
    is_chief,
    make_strategy,
    precision_for,
)
from tests.conftest import REPO


def free_ports(count):
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


def tf_config(ports, index):
    workers = [f"127.0.0.1:{port}" for port in ports]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})


def test_one_device():
    strategy = make_strategy()
    assert strategy.num_replicas_in_sync == 1
    assert is_chief(strategy)
    line = describe(strategy, precision_for(strategy), 32)
    assert line == "one device: 1 CPU device, float32, no XLA, 32 rows a step, 32 a replica"
    batches = tf.data.Dataset.range(3)
    assert distribute(strategy, lambda rank, world: batches) is batches


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("parameter_server", "Keras 3 has no training with parameter servers: use multi_worker"),
        ("central_storage", "use mirrored"),
        ("gpu", "strategy must be one of none, mirrored, multi_worker, tpu, got 'gpu'"),
        ("tpu", "strategy tpu: no TPU found"),
    ],
)
def test_refusals(name, message):
    with pytest.raises(ValueError, match=message):
        make_strategy(name)


TWO = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "needs the environment variable TF_CONFIG"),
        ("{not json", "TF_CONFIG: expected .*host1:port"),
        ("[1]", "TF_CONFIG: expected"),
        ('{"cluster": {}}', "KeyError.*task"),
        (TWO.replace('"index": 0', '"index": 2'), "worker has 2 addresses, but index is 2"),
        (TWO.replace('"type": "worker"', '"type": "chief"'), "KeyError.*chief"),
        (TWO.replace('"a:1"', '"a"'), "expected host:port, got 'a'"),
        (TWO.replace('{"worker"', '{"ps": ["c:3"], "worker"'), "chief or worker, got 'ps'"),
    ],
)
def test_a_malformed_tf_config(text, message, monkeypatch):
    if text is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=message):
        make_strategy("multi_worker")


def test_a_machine_that_does_not_come_ends_in_a_message(monkeypatch):
    ports = free_ports(2)
    monkeypatch.setenv("TF_CONFIG", tf_config(ports, 0))
    began = time.monotonic()
    with pytest.raises(
        TimeoutError, match=f"1 of the 2 machines .* within 1 s: 127.0.0.1:{ports[1]}"
    ):
        make_strategy("multi_worker", timeout=1)
    assert time.monotonic() - began < 30


def test_a_port_in_use_is_named(monkeypatch):
    with socket.create_server(("", 0)) as door:
        monkeypatch.setenv("TF_CONFIG", tf_config([door.getsockname()[1], 1], 0))
        with pytest.raises(ValueError, match="cannot listen at"):
            make_strategy("multi_worker", timeout=1)


def test_machines_that_start_at_different_times_meet():
    code = (
        "from keras_bert_impl.training.strategies import is_chief, make_strategy\n"
        "strategy = make_strategy('multi_worker', timeout=60)\n"
        "print(strategy.num_replicas_in_sync, is_chief(strategy))\n"
    )
    ports = free_ports(2)
    workers = []
    for index in range(2):
        environment = {**os.environ, "TF_CONFIG": tf_config(ports, index), "PYTHONPATH": str(REPO)}
        workers.append(
            subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        time.sleep(1)
    said = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert said == [["2", "True"], ["2", "False"]]


def test_batch_sizes():
    class Eight:
        num_replicas_in_sync = 8

    check_batch_size(Eight, 64, micro_batches=4)
    with pytest.raises(ValueError, match="batch_size 20 does not divide among 8 replicas: use 16 "):
        check_batch_size(Eight, 20)
    with pytest.raises(ValueError, match=r"8 rows a replica .* cannot be cut into 3 micro-batches"):
        check_batch_size(Eight, 64, micro_batches=3)
