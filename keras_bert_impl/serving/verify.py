"""Check an exported SavedModel the way TensorFlow Serving will use it.

`python -m keras_bert_impl.serving.verify saved_models/NAME/1` loads it with the loader of
TensorFlow Serving (`tf.compat.v1.saved_model.load` fails where the C++ loader fails;
`tf.saved_model.load` does not), runs every signature and compares with what Python computed when
the model was exported. Needs tensorflow and tensorflow_text only, no code of the model.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's operations

from keras_bert_impl.serving import contents
from keras_bert_impl.serving.comparison import as_array, compare, join_rows
from keras_bert_impl.serving.warmup import WARMUP_FILE, read_requests

__all__ = ["EXPECTED_FILE", "FORMAT_VERSION", "VerifyReport", "verify"]

EXPECTED_FILE = "assets.extra/expected.json"
# Of the expected answers. 2: all outputs of every signature.
FORMAT_VERSION = 2

Outputs = dict[str, np.ndarray]
Run = Callable[[str, dict[str, np.ndarray]], Outputs]


@dataclasses.dataclass(frozen=True)
class VerifyReport:
    """What `verify` found.

    Attributes:
        path: the version folder.
        signatures: name -> the names of its inputs and outputs.
        custom_ops: operations that are not TensorFlow's own.
        weights: number of weights in the checkpoint.
        weight_bytes: their size in bytes.
        max_difference: largest difference of a number from Python's, of those above 1
            as a part of them.
        warmup_requests: requests of the warm-up file that were replayed.
        problems: what is wrong, one message each; empty where all is well.
    """

    path: Path
    signatures: dict[str, list[str]]
    custom_ops: list[str]
    weights: int
    weight_bytes: int
    max_difference: float
    warmup_requests: int
    problems: list[str]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({**dataclasses.asdict(self), "path": str(self.path)})

    @classmethod
    def from_json(cls, text: str) -> VerifyReport:
        """Inverse of `to_json`."""
        content = json.loads(text)
        return cls(**{**content, "path": Path(content["path"])})

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {'verified' if self.ok else 'NOT fit to be served'}",
            f"  signatures: {', '.join(sorted(self.signatures))}",
            f"  largest difference from Python: {self.max_difference:.1e}",
            f"  weights: {self.weights}, each once ({self.weight_bytes / 1e6:.1f} MB)",
            f"  operations beside TensorFlow's own: {', '.join(self.custom_ops) or 'none'}",
            f"  warm-up requests replayed: {self.warmup_requests}",
        ]
        return "\n".join(lines + [f"  problem: {problem}" for problem in self.problems])


def verify(
    version_dir: str | os.PathLike[str], *, expected: str | os.PathLike[str] | None = None
) -> VerifyReport:
    """Load a version folder as TensorFlow Serving does and compare it with its model.

    Args:
        version_dir: the folder with `saved_model.pb`.
        expected: the JSON that the export wrote; default: the one inside the folder.

    Returns:
        The report; its `problems` say what is wrong.

    Raises:
        FileNotFoundError: the folder or the JSON does not exist.
        ValueError: the JSON or `saved_model.pb` cannot be read, or is of another format.
    """
    folder = Path(version_dir)
    model_file = folder / "saved_model.pb"
    expected_file = folder / EXPECTED_FILE if expected is None else Path(expected)
    for file in (model_file, expected_file):
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file; expected an export of this package")
    expectation = _read_json(expected_file)
    graph = contents.check_graph(model_file)
    checkpoint = contents.check_checkpoint(folder / "variables", expectation["weights"])
    runs = _Runs(folder, expectation)
    runs.check()
    return VerifyReport(
        path=folder,
        signatures=runs.signatures,
        custom_ops=graph.custom_ops,
        weights=checkpoint.weights,
        weight_bytes=checkpoint.weight_bytes,
        max_difference=runs.max_difference,
        warmup_requests=runs.warmup_requests,
        problems=[*graph.problems, *checkpoint.problems, *runs.problems],
    )


class _Runs:
    """Runs of every signature by both loaders, and what was wrong with them."""

    def __init__(self, folder: Path, expectation: dict[str, Any]) -> None:
        self.folder = folder
        self.expectation = expectation
        self.problems: list[str] = []
        self.signatures: dict[str, list[str]] = {}
        self.warmup_requests = 0
        self.max_difference = 0.0

    def check(self) -> None:
        """Both loaders run every signature; the server's one also replays the warm-up file."""
        try:
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(self.folder))
                self._signature_names(loaded.signature_def)

                def run(name: str, inputs: dict[str, np.ndarray]) -> Outputs:
                    if name not in loaded.signature_def:
                        raise ValueError("there is no such signature")
                    signature = loaded.signature_def[name]
                    if set(inputs) != set(signature.inputs):
                        raise ValueError(
                            f"it takes {', '.join(sorted(signature.inputs))}, "
                            f"got {', '.join(sorted(inputs))}"
                        )
                    fetches = {key: info.name for key, info in signature.outputs.items()}
                    feeds = {signature.inputs[key].name: value for key, value in inputs.items()}
                    return session.run(fetches, feeds)

                self._compare("the server's loader", run)
                self._warm_up(run)
        except contents.LOAD_ERRORS as error:
            self.problems.append(f"the server's loader fails: {contents.first_line(error)}")
        try:
            model = tf.saved_model.load(str(self.folder))
        except contents.LOAD_ERRORS as error:
            self.problems.append(f"tf.saved_model.load fails: {contents.first_line(error)}")
            return

        def call(name: str, inputs: dict[str, np.ndarray]) -> Outputs:
            tensors = {key: tf.constant(value) for key, value in inputs.items()}
            return {key: value.numpy() for key, value in model.signatures[name](**tensors).items()}

        self._compare("tf.saved_model.load", call)

    def _signature_names(self, signature_defs: Any) -> None:
        for name, signature in signature_defs.items():
            if name != "__saved_model_init_op":
                self.signatures[name] = [*sorted(signature.inputs), *sorted(signature.outputs)]

    def _compare(self, loader: str, run: Run) -> None:
        """The samples at once and one by one."""
        for name, case in self.expectation["signatures"].items():
            inputs = {key: as_array(value) for key, value in case["inputs"].items()}
            rows = len(next(iter(inputs.values())))
            try:
                batch = run(name, inputs)
                singles = [
                    run(name, {key: value[row : row + 1] for key, value in inputs.items()})
                    for row in range(rows)
                ]
            except contents.LOAD_ERRORS as error:
                self.problems.append(
                    f"{loader}: signature {name} fails: {contents.first_line(error)}"
                )
                continue
            expected = {key: as_array(value) for key, value in case["outputs"].items()}
            answers = {name: batch, f"{name}, one by one": join_rows(singles)}
            for where, got in answers.items():
                found = compare(self.expectation, expected, got)
                self.problems += [f"{loader}: {where}: {problem}" for problem in found.problems]
                self.max_difference = max(self.max_difference, found.difference)

    def _warm_up(self, run: Run) -> None:
        try:
            requests = read_requests(self.folder / WARMUP_FILE)
            for request in requests:
                run(request.signature, dict(request.inputs))
                self.warmup_requests += 1
        except contents.LOAD_ERRORS as error:
            self.problems.append(f"{WARMUP_FILE} does not replay: {contents.first_line(error)}")
            return
        cold = sorted(set(self.signatures) - {request.signature for request in requests})
        if cold:
            self.problems.append(f"{WARMUP_FILE} has no request for {', '.join(cold)}")


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except ValueError as error:  # bad JSON or bad UTF-8
        raise ValueError(f"{file}: not JSON: {error}") from error
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{file}: format_version {version} is not known, expected {FORMAT_VERSION}: check the "
            "export with the version of this package that wrote it, or export again"
        )
    return content


def main(arguments: list[str] | None = None) -> int:
    """`python -m keras_bert_impl.serving.verify FOLDER [--json]`: 0 well, 1 not, 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m keras_bert_impl.serving.verify")
    parser.add_argument("folder", type=Path, help="version folder, such as saved_models/NAME/1")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(arguments)
    tf.get_logger().setLevel("ERROR")
    try:
        report = verify(options.folder)
    except (FileNotFoundError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{report.to_json() if options.json else report}\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
