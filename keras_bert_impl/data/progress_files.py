"""Files in an unfinished folder of shards that say which chunks are done, and with what settings.

They lie in ``.progress`` and leave it when the manifest is written.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert_impl.data.corpus import CorpusReport
from keras_bert_impl.sources import atomic_file, atomic_write

__all__ = [
    "PROGRESS_FOLDER",
    "FinishedChunk",
    "finished_chunks",
    "read_finished",
    "read_settings",
    "remove_progress",
    "write_finished",
    "write_settings",
]

PROGRESS_FOLDER = ".progress"
_SETTINGS = "settings.json"


@dataclass(frozen=True)
class FinishedChunk:
    """What is known of a chunk whose shards are written.

    Attributes:
        number, digest, size: of `Chunk`.
        shards: rows of the manifest: file, split, number of examples.
        report: of its documents.
    """

    number: int
    digest: str
    size: int
    shards: list[dict]
    report: CorpusReport

    @property
    def examples(self) -> int:
        return sum(shard["examples"] for shard in self.shards)


def write_settings(folder: Path, settings: dict) -> None:
    """Notes the settings of a run at its start."""
    atomic_write(folder / PROGRESS_FOLDER / _SETTINGS, json.dumps(settings, indent=1) + "\n")


def read_settings(folder: Path) -> dict | None:
    """The settings of the run that began here, or None."""
    file = folder / PROGRESS_FOLDER / _SETTINGS
    return json.loads(file.read_text("utf-8")) if file.is_file() else None


def finished_chunks(folder: Path) -> set[int]:
    """Numbers of the chunks whose shards are complete."""
    return {int(file.stem) for file in (folder / PROGRESS_FOLDER).glob("[0-9]*.npz")}


def write_finished(folder: Path, chunk: FinishedChunk) -> None:
    """Says that a chunk is done; the last step of making it."""
    state = chunk.report.to_state()
    hashes = state.pop("hashes")
    told = {"digest": chunk.digest, "size": chunk.size, "shards": chunk.shards, **state}
    with atomic_file(_file(folder, chunk.number)) as stream:
        np.savez(
            stream,
            told=np.frombuffer(json.dumps(told).encode(), np.uint8),
            hashes=np.fromiter(hashes.keys(), np.uint64, len(hashes)),
            hash_counts=np.fromiter(hashes.values(), np.int64, len(hashes)),
        )


def read_finished(folder: Path, number: int) -> FinishedChunk:
    """What `write_finished` wrote."""
    with np.load(_file(folder, number)) as content:
        told = json.loads(content["told"].tobytes())
        hashes, hash_counts = content["hashes"].tolist(), content["hash_counts"].tolist()
    hashes = dict(zip(hashes, hash_counts, strict=True))
    report = CorpusReport.from_state({**told, "hashes": hashes})
    return FinishedChunk(number, told["digest"], told["size"], told["shards"], report)


def remove_progress(folder: Path) -> None:
    """Removes these files, and what killed processes left half written."""
    shutil.rmtree(folder / PROGRESS_FOLDER, ignore_errors=True)
    for file in folder.glob(".*.partial"):
        file.unlink(missing_ok=True)


def _file(folder: Path, number: int) -> Path:
    return folder / PROGRESS_FOLDER / f"{number:05d}.npz"
