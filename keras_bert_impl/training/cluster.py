"""The machines of a run: TF_CONFIG, and waiting for the others."""

from __future__ import annotations

import json
import os
import socket
import time

__all__ = ["meet_machines"]


def meet_machines(timeout: float) -> None:
    """Returns when every other machine of TF_CONFIG answers: TensorFlow would wait without end.

    Raises:
        ValueError: TF_CONFIG cannot be used.
        TimeoutError: not every machine came within `timeout` seconds.
    """
    content = _read_tf_config()
    cluster, task = content["cluster"], content["task"]
    own = cluster[task["type"]][int(task["index"])]
    _meet(own, [a for job in cluster.values() for a in job if a != own], timeout)


def _read_tf_config() -> dict:
    """TF_CONFIG, checked."""
    form = (
        '{"cluster": {"worker": ["host1:port", "host2:port"]}, '
        '"task": {"type": "worker", "index": 0}}'
    )
    text = os.environ.get("TF_CONFIG")
    if not text:
        raise ValueError(f"strategy multi_worker needs the environment variable TF_CONFIG: {form}")
    try:
        content = json.loads(text)
        cluster, task = content["cluster"], content["task"]
        kind, index = task["type"], int(task["index"])
        addresses = cluster[kind]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"TF_CONFIG: expected {form}, got {text}: {error!r}") from None
    unknown = sorted(set(cluster) - {"chief", "worker"})
    if unknown:
        raise ValueError(f"TF_CONFIG: jobs must be chief or worker, got {unknown[0]!r}")
    if not 0 <= index < len(addresses):
        raise ValueError(f"TF_CONFIG: {kind} has {len(addresses)} addresses, but index is {index}")
    for address in (a for job in cluster.values() for a in job):
        host, _, port = str(address).rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"TF_CONFIG: expected host:port, got {address!r}")
    return content


def _meet(own: str, others: list[str], timeout: float) -> None:
    """A machine that has met the others answers at the same port through TensorFlow."""
    deadline = time.monotonic() + timeout
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("", int(own.rpartition(":")[2])))
        except OSError as error:
            raise ValueError(f"TF_CONFIG: cannot listen at {own}: {error.strerror}") from None
        door.listen(128)
        missing = list(others)
        while missing:
            missing = [address for address in missing if not _answers(address)]
            if missing and time.monotonic() > deadline:
                raise TimeoutError(
                    f"{len(missing)} of the {len(others) + 1} machines of TF_CONFIG did not answer "
                    f"within {timeout:g} s: {', '.join(missing)}"
                )
            time.sleep(0.2 if missing else 0.0)


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
    except OSError:
        return False
    return True
