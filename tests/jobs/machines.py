"""Runs on several machines, which are processes that meet over loopback."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.conftest import REPO

SECONDS = 600


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    said: str


def free_ports(count: int) -> list[int]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


def run_machines(
    arguments: list[list[str]], *, signals: dict[int, tuple[int, int]] | None = None
) -> list[Ended]:
    """Starts a machine for each list of arguments of `pretrain`, and waits for all.

    Args:
        arguments: for each machine; the first is the chief.
        signals: {machine: (signal, step after which it comes)}.

    Raises:
        TimeoutError: one has not ended after ten minutes; all are killed.
    """
    several = len(arguments) > 1
    workers = [f"127.0.0.1:{port}" for port in free_ports(len(arguments))]
    processes = []
    for index, given in enumerate(arguments):
        task = {"type": "worker", "index": index}
        environment = {**os.environ, "PYTHONPATH": str(REPO), "TF_NUM_INTRAOP_THREADS": "1"}
        environment["CUDA_VISIBLE_DEVICES"] = ""
        if several:
            environment["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
        hurt = [str(number) for number in (signals or {}).get(index, (0, 0))]
        strategy = ["--strategy", "multi_worker" if several else "none"]
        processes.append(
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.jobs.pretraining_worker"),
                    *(*hurt, *given, *strategy),
                ],
                cwd=REPO,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return [_end(process, processes) for process in processes]


def _end(process: subprocess.Popen, all_of_them: list[subprocess.Popen]) -> Ended:
    with contextlib.ExitStack() as stack:
        for each in all_of_them:
            stack.callback(each.kill)
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"a machine still runs; it said {error.stdout}") from None
        stack.pop_all()
    return Ended(process.returncode, said)


def arguments_of(data: Path, config: Path, output: Path, **options) -> list[str]:
    """Of a run of ten steps, as a command."""
    given = {"data": data, "size": config, "output": output}
    given |= {"steps": 10, "save_every": 4, "batch_size": 8, "learning_rate": 5e-3, **options}
    words = []
    for name, value in given.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words
