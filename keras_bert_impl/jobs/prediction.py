"""Labels for the texts of a file or stream, in the order of its rows."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from keras_bert_impl.jobs.inputs import FOUND_OUT, InputOptions, iterate_inputs
from keras_bert_impl.jobs.runs import Run, load
from keras_bert_impl.sources import atomic_file

__all__ = ["OUTPUT_FORMATS", "predict_rows"]

OUTPUT_FORMATS = ("tsv", "jsonl")
_CHUNK = 4096


def predict_rows(
    model: Run | str | os.PathLike,
    source: str | os.PathLike | BinaryIO,
    output: str | os.PathLike | BinaryIO,
    inputs: InputOptions = FOUND_OUT,
    *,
    output_format: str | None = None,
    overwrite: bool = False,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> int:
    """Writes one line for each row of the input, in its order.

    TSV has the label and its probability, without a header; JSON lines have `label`,
    `probability` and `probabilities` by label. The input is read and predicted in chunks; an
    output file appears when it is complete.

    Args:
        model: a run, or its folder as for `load`.
        source: a file, or a binary stream. A file of one column is one text a line, blank lines
            included.
        output: a file, or a binary stream.
        inputs: columns and format of the input.
        output_format: ``tsv`` or ``jsonl``; by default from the extension of the output, else TSV.
        overwrite: whether an output file that exists may be replaced.
        on_rows: told how many rows are done after each chunk.

    Returns:
        The number of rows.

    Raises:
        FileExistsError: the output file exists.
        FileNotFoundError: there is no such run or input.
        OSError: the output file cannot be written, or the disk is full.
        ValueError: the input cannot be read (file and line are named).
    """
    line = _LINES[_output_format(output, output_format)]
    with _open_output(output, overwrite) as stream:
        run = model if isinstance(model, Run) else load(model)
        done = 0
        rows = iterate_inputs(source, inputs, run.columns, run.pairs)
        for chunk in _chunks(rows):
            pairs = [row.pair for row in chunk] if chunk[0].pair is not None else None
            for row in run.probabilities([row.text for row in chunk], pairs):
                stream.write(line(run.labels, row).encode())
            stream.flush()
            done += len(chunk)
            on_rows(done)
    return done


def _output_format(output, output_format: str | None) -> str:
    if output_format is None:
        is_jsonl = isinstance(output, str | os.PathLike) and Path(output).suffix in (
            ".jsonl",
            ".ndjson",
        )
        return "jsonl" if is_jsonl else "tsv"
    if output_format not in OUTPUT_FORMATS:
        raise ValueError(
            f"output_format must be one of {', '.join(OUTPUT_FORMATS)}, got {output_format!r}"
        )
    return output_format


@contextlib.contextmanager
def _open_output(output: str | os.PathLike | BinaryIO, overwrite: bool) -> Iterator[BinaryIO]:
    if hasattr(output, "write"):
        yield output
        return
    path = Path(output)
    if path.exists() and not path.is_file() and not path.is_dir():
        # A device or a pipe cannot be renamed over.
        with path.open("wb") as stream:
            yield stream
        return
    if path.is_file() and not overwrite:
        raise FileExistsError(f"{path} exists: name another file, or replace it with --force")
    with atomic_file(path) as stream:
        yield stream


def _chunks(rows: Iterator) -> Iterator[list]:
    while chunk := list(itertools.islice(rows, _CHUNK)):
        yield chunk


def _tsv_line(labels: tuple[str, ...], row: np.ndarray) -> str:
    best = int(row.argmax())
    return f"{labels[best]}\t{row[best]:.6f}\n"


def _json_line(labels: tuple[str, ...], row: np.ndarray) -> str:
    best = int(row.argmax())
    numbers = [round(float(value), 6) for value in row]
    content = {
        "label": labels[best],
        "probability": numbers[best],
        "probabilities": dict(zip(labels, numbers, strict=True)),
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


_LINES = {"tsv": _tsv_line, "jsonl": _json_line}
