"""A model as a SavedModel that TensorFlow Serving takes: text in, answers out."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.serving.kinds import signatures_of
from keras_bert_impl.serving.model_folder import (
    curl_line,
    docker_line,
    next_version,
    versions,
    write_model_folder,
)
from keras_bert_impl.serving.signatures import Samples, Signatures
from keras_bert_impl.serving.verify import EXPECTED_FILE, FORMAT_VERSION, VerifyReport
from keras_bert_impl.serving.warmup import WARMUP_FILE, Request, write_requests
from keras_bert_impl.sources import atomic_folder
from keras_bert_impl.tasks import TaskOptions

if TYPE_CHECKING:
    from keras_bert_impl.models import BertClassifier
    from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["ExportResult", "curl_line", "docker_line", "export_classifier", "export_signatures"]

# What two correct ways to compute a number may differ by.
TOLERANCE = 1e-5
HALF_TOLERANCES = {"float16": 5e-3, "bfloat16": 3e-2}


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """What was written.

    Attributes:
        path: the version folder.
        version: its number.
        model_name: the name of the folder above, by which the server knows the model.
        report: what the check in a fresh process found; None where it was not asked for.
        docker, curl: commands that serve the model and ask it.
    """

    path: Path
    version: int
    model_name: str
    report: VerifyReport | None
    docker: str
    curl: str


def export_classifier(
    model: BertClassifier,
    tokenizer: BertTokenizer,
    labels: Sequence[str],
    output: str | os.PathLike[str],
    *,
    max_length: int = 128,
    pairs: bool = False,
    version: int | None = None,
    verify: bool = True,
) -> ExportResult:
    """Write a text classifier as `output/VERSION`: see `export_signatures`.

    Args:
        model: the classifier.
        tokenizer: the tokenizer of its vocabulary.
        labels: the names of the classes in the order of the logits.
        output: the folder of the model.
        max_length: longer texts are cut.
        pairs: the signatures take pairs of texts.
        version: number of the version; default: one more than the highest.
        verify: load the export in a fresh process and compare it with the model.
    """
    signatures = signatures_of(
        "classification",
        model,
        tokenizer,
        labels=labels,
        options=TaskOptions(max_length=max_length),
        pairs=pairs,
    )
    return export_signatures(signatures, output, version=version, verify=verify)


def export_signatures(
    signatures: Signatures,
    output: str | os.PathLike[str],
    *,
    version: int | None = None,
    verify: bool = True,
) -> ExportResult:
    """Write `output/VERSION`, and beside it how to serve it.

    The version appears complete or not at all, after the check in a fresh process.

    Args:
        signatures: the model and what it is asked: see `signatures_of`.
        output: the folder of the model; its name is the model's name on the server.
        version: number of the version; default: one more than the highest.
        verify: load the export in a fresh process and compare it with the model.

    Raises:
        FileExistsError: the version exists.
        ValueError: labels, `max_length` or vocabulary do not fit the model, or the export failed
            its check.
        PermissionError, OSError: `output` cannot be written.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"SavedModels are exported on Keras' TensorFlow backend, not on "
            f"{keras.backend.backend()}: save the model and export it with KERAS_BACKEND=tensorflow"
        )
    signatures.check()
    output = _model_folder(output)
    version = next_version(output) if version is None else version
    if version < 1:
        raise ValueError(f"version must be at least 1, got {version}")
    folder = output / str(version)
    if version in versions(output):
        raise FileExistsError(f"version {version} exists and is not overwritten: {folder}")
    samples = signatures.samples()
    expectation = json.dumps(_expectation(signatures, samples), ensure_ascii=False)
    report = None
    with atomic_folder(folder) as temporary:
        _write_saved_model(signatures, temporary)
        (temporary / EXPECTED_FILE).parent.mkdir()
        (temporary / EXPECTED_FILE).write_text(expectation, "utf-8")
        write_requests(
            temporary / WARMUP_FILE, _warmup_requests(signatures, samples), model_name=output.name
        )
        if verify:
            report = dataclasses.replace(_verify_in_fresh_process(temporary), path=folder)
            if not report.ok:
                raise ValueError(f"the export failed its check, nothing was written:\n{report}")
        write_model_folder(output, signatures)
    curl = curl_line(output, signatures.instances()[:1])
    return ExportResult(folder, version, output.name, report, docker_line(output), curl)


def _model_folder(output: str | os.PathLike[str]) -> Path:
    folder = Path(os.path.abspath(output))
    if folder.name.isdecimal():
        raise ValueError(
            f"output is the folder of the model, and TensorFlow Serving would take {folder} for a "
            f"version: give {folder.parent} and version={int(folder.name)}"
        )
    return folder


def _write_saved_model(signatures: Signatures, folder: Path) -> None:
    archive = keras.export.ExportArchive()
    for name, endpoint in signatures.endpoints().items():
        # Without track(model), which would write each weight a second time.
        archive.add_endpoint(name, endpoint.function, input_signature=endpoint.specs)
    archive.write_out(folder, verbose=False)


def _expectation(signatures: Signatures, samples: Samples) -> dict[str, Any]:
    """What `verify` compares with: the samples and the answers that Python computes."""
    model = signatures.model
    weights = model.weights
    sizes = [math.prod(weight.shape) * tf.as_dtype(weight.dtype).size for weight in weights]
    expected = signatures.expected(samples)
    return {
        "format_version": FORMAT_VERSION,
        "kind": signatures.title,
        "labels": list(signatures.labels),
        "options": dataclasses.asdict(signatures.options),
        "tokenizer": {k: v for k, v in signatures.tokenizer.get_config().items() if k != "tokens"},
        "tolerance": HALF_TOLERANCES.get(model.compute_dtype, TOLERANCE),
        "decisions": list(signatures.decisions),
        "measure": signatures.measure,
        "weights": {"count": len(weights), "bytes": sum(sizes)},
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("tensorflow", "tensorflow-text", "keras")
        },
        "signatures": {
            name: {
                "inputs": inputs,
                "outputs": {key: _listed(value) for key, value in expected[name].items()},
            }
            for name, inputs in samples.items()
        },
    }


def _listed(values: np.ndarray) -> list:
    if values.dtype == object and isinstance(values.flat[0], bytes):
        values = np.array([value.decode() for value in values.flat], object).reshape(values.shape)
    return values.tolist()


def _warmup_requests(signatures: Signatures, samples: Samples) -> list[Request]:
    """For each signature a short row, the longest one, and all."""
    requests = []
    for name, endpoint in signatures.endpoints().items():
        dtypes = {spec.name: spec.dtype.as_numpy_dtype for spec in endpoint.specs}
        for rows in (slice(0, 1), slice(-1, None), slice(None)):
            inputs = {k: tf.constant(v[rows], dtypes[k]).numpy() for k, v in samples[name].items()}
            requests.append(Request(name, inputs))
    return requests


def _verify_in_fresh_process(folder: Path) -> VerifyReport:
    """`verify` without the model's code and without the GPU, which this process holds."""
    package = Path(__file__).resolve().parents[2]
    python_path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **os.environ,
        "PYTHONPATH": python_path,
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    # -P: a file of the current folder may have the name of a module.
    command = [sys.executable, "-P", "-m", "keras_bert_impl.serving.verify", str(folder), "--json"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode not in (0, 1) or not lines:
        raise ValueError(
            f"the process that checks the export ended with code {done.returncode}, nothing was "
            f"written:\n{done.stderr[-2000:]}"
        )
    return VerifyReport.from_json(lines[-1])
