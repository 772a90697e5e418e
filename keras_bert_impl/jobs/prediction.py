"""Labels for the texts of a file or stream, in the order of its rows."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from keras_bert_impl.data.glue import columns_of_set
from keras_bert_impl.data.rows import NoRowsError, csv_line
from keras_bert_impl.jobs.runs import Run, load
from keras_bert_impl.sources import atomic_file, refuse_existing
from keras_bert_impl.tasks.inputs import FOUND_OUT, InputOptions

__all__ = ["OUTPUT_FORMATS", "predict_rows"]

OUTPUT_FORMATS = ("tsv", "csv", "jsonl", "json")
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
    """Writes one line for each row of the input, in its order; none for a header without rows.

    For classes, TSV and CSV have the label and its probability, without a header, and JSON lines
    have `label`, `probability` and `probabilities` by label; for other tasks see their `cells`,
    `tsv_lines` and `json_lines`. JSON is one value for all, e.g. SQuAD's answer by id. The input
    is read and predicted in chunks; an output file appears when it is complete.

    Args:
        model: a run, or its folder as for `load`.
        source: a file, or a binary stream. A file of one column is one text a line, blank lines
            included.
        output: a file, or a binary stream.
        inputs: columns and format of the input.
        output_format: one of `OUTPUT_FORMATS`; by default from the extension of the
            output, else TSV.
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
    form = _output_format(output, output_format)
    with _open_output(output, overwrite) as stream:
        run = model if isinstance(model, Run) else load(model)
        if (
            run.layout is not None
            and inputs.layout is None
            and _is_of_set(source, run.layout, inputs.format)
        ):
            inputs = dataclasses.replace(inputs, layout=run.layout)
        done = 0
        # One JSON value holds all rows.
        size = sys.maxsize if form == "json" else _CHUNK
        with contextlib.suppress(NoRowsError):
            for chunk in run.task.read_inputs(source, inputs, run, size):
                for line in _lines(run, chunk, form):
                    stream.write(f"{line}\n".encode())
                stream.flush()
                done += len(chunk)
                on_rows(done)
        if form == "json" and not done:
            stream.write(json.dumps(run.task.document((), [])).encode() + b"\n")
    return done


def _is_of_set(source: str | os.PathLike | BinaryIO, layout: str, form: str | None) -> bool:
    """Whether a file is laid out as those of the set that the run was trained on."""
    if hasattr(source, "read"):
        return False
    try:
        columns_of_set(source, layout, form)
    except ValueError:
        return False
    return True


def _output_format(output, output_format: str | None) -> str:
    if output_format is None:
        known = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
        is_path = isinstance(output, str | os.PathLike)
        return known.get(Path(output).suffix, "tsv") if is_path else "tsv"
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
    refuse_existing(path, overwrite)
    with atomic_file(path) as stream:
        yield stream


def _lines(run: Run, examples, form: str) -> Iterator[str]:
    predictions = run.predictions_of(examples)
    if form == "tsv":
        return run.task.tsv_lines(examples, predictions)
    if form == "csv":
        return map(csv_line, run.task.cells(examples, predictions))
    if form == "json":
        return iter([json.dumps(run.task.document(examples, predictions), ensure_ascii=False)])
    found = run.task.json_lines(examples, predictions)
    return (json.dumps(content, ensure_ascii=False) for content in found)
