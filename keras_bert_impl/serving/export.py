"""A classifier as a SavedModel that TensorFlow Serving takes: text in, labels and scores out."""

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
import tensorflow as tf

from keras_bert_impl.decoding.classification import decode_classes
from keras_bert_impl.serving.model_folder import (
    curl_line,
    docker_line,
    next_version,
    versions,
    write_model_folder,
)
from keras_bert_impl.serving.signatures import IDS, SERVING_DEFAULT, ClassifierSignatures
from keras_bert_impl.serving.verify import EXPECTED_FILE, VerifyReport
from keras_bert_impl.serving.warmup import WARMUP_FILE, Request, write_requests
from keras_bert_impl.sources import atomic_folder

if TYPE_CHECKING:
    from keras_bert_impl.models import BertClassifier
    from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["ExportResult", "curl_line", "docker_line", "export_classifier"]

FORMAT_VERSION = 1
# What two correct ways to compute a probability may differ by.
TOLERANCE = 1e-5
HALF_TOLERANCES = {"float16": 5e-3, "bfloat16": 3e-2}

_SENTENCES = (
    "A fine film, funny and sad.",
    "",
    "Ça coûte 1 000 €, n'est-ce pas?",
    "这部电影很好看。",
    "Great 👍🏽 :-)",
    "[SEP] is ordinary text",
)
_WORDS = "The plot is thin, but the actors make up for it. "


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """What was written.

    Attributes:
        path: the version folder.
        version: its number.
        model_name: the name of the folder above, by which the server knows the model.
        report: what the check in a fresh process found; None where it was not asked for.
    """

    path: Path
    version: int
    model_name: str
    report: VerifyReport | None


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
    """Write `output/VERSION`, and beside it how to serve it.

    The version appears complete or not at all, after the check in a fresh process.

    Args:
        model: the classifier.
        tokenizer: the tokenizer of its vocabulary.
        labels: the names of the classes in the order of the logits.
        output: the folder of the model; its name is the model's name on the server.
        max_length: longer texts are cut.
        pairs: the signatures take pairs of texts.
        version: number of the version; default: one more than the highest.
        verify: load the export in a fresh process and compare it with the model.

    Raises:
        FileExistsError: the version exists.
        ValueError: labels, `max_length` or vocabulary do not fit the model, or the export failed
            its check.
        PermissionError, OSError: `output` cannot be written.
    """
    _check_arguments(model, tokenizer, labels, max_length, pairs)
    output = _model_folder(output)
    version = next_version(output) if version is None else version
    if version < 1:
        raise ValueError(f"version must be at least 1, got {version}")
    folder = output / str(version)
    if version in versions(output):
        raise FileExistsError(f"version {version} exists and is not overwritten: {folder}")
    signatures = ClassifierSignatures(model, tokenizer, labels, max_length=max_length, pairs=pairs)
    samples = _samples(tokenizer, max_length, pairs)
    report = None
    with atomic_folder(folder) as temporary:
        _write_saved_model(signatures, temporary)
        (temporary / EXPECTED_FILE).parent.mkdir()
        content = json.dumps(_expectation(signatures, samples), ensure_ascii=False)
        (temporary / EXPECTED_FILE).write_text(content, "utf-8")
        write_requests(
            temporary / WARMUP_FILE, _warmup_requests(signatures, samples), model_name=output.name
        )
        if verify:
            report = dataclasses.replace(_verify_in_fresh_process(temporary), path=folder)
            if not report.ok:
                raise ValueError(f"the export failed its check, nothing was written:\n{report}")
        write_model_folder(
            output,
            vocab=tokenizer.vocab.to_bytes(),
            labels=labels,
            max_length=max_length,
            pairs=pairs,
        )
    return ExportResult(folder, version, output.name, report)


def _check_arguments(model, tokenizer, labels, max_length, pairs) -> None:
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"SavedModels are exported on Keras' TensorFlow backend, not on "
            f"{keras.backend.backend()}: save the model and export it with KERAS_BACKEND=tensorflow"
        )
    config = model.config
    if len(labels) != model.num_classes:
        raise ValueError(
            f"expected {model.num_classes} labels, one a class of the model, got {len(labels)}: "
            f"{', '.join(map(str, labels))}"
        )
    least = 3 if pairs else 2
    if not least <= max_length <= config.max_position_embeddings:
        raise ValueError(
            f"max_length must be in [{least}, {config.max_position_embeddings}] (the model's "
            f"max_position_embeddings), got {max_length}"
        )
    if len(tokenizer.vocab) > config.vocab_size:
        raise ValueError(
            f"the vocabulary has {len(tokenizer.vocab)} tokens, the model only {config.vocab_size}"
        )
    if pairs and config.type_vocab_size < 2:
        raise ValueError("pairs need a model of two segments, type_vocab_size is 1")


def _model_folder(output: str | os.PathLike[str]) -> Path:
    folder = Path(os.path.abspath(output))
    if folder.name.isdecimal():
        raise ValueError(
            f"output is the folder of the model, and TensorFlow Serving would take {folder} for a "
            f"version: give {folder.parent} and version={int(folder.name)}"
        )
    return folder


def _write_saved_model(signatures: ClassifierSignatures, folder: Path) -> None:
    archive = keras.export.ExportArchive()
    for name, (function, specs) in signatures.endpoints().items():
        # Without track(model), which would write each weight a second time.
        archive.add_endpoint(name, function, input_signature=specs)
    archive.write_out(folder, verbose=False)


def _samples(tokenizer: BertTokenizer, max_length: int, pairs: bool) -> dict[str, dict[str, list]]:
    """Inputs of each signature: short texts of several scripts and one that is cut."""
    texts = [*_SENTENCES, _WORDS * (1 + max_length // 8)]
    text_inputs = {"text": texts}
    if pairs:
        text_inputs["pair"] = texts[1:] + texts[:1]
    ids = tokenizer(texts, text_inputs.get("pair"), max_length=max_length, pad_to=max_length)
    id_inputs = {name: value.numpy().tolist() for name, value in ids.items()}
    return {SERVING_DEFAULT: text_inputs, IDS: id_inputs}


def _expectation(
    signatures: ClassifierSignatures, samples: dict[str, dict[str, list]]
) -> dict[str, Any]:
    """What `verify` compares with: the samples and the probabilities that Python computes."""
    model = signatures.model
    text = samples[SERVING_DEFAULT]
    # On the CPU, where the check runs: a GPU may multiply in TF32.
    with tf.device("CPU"):
        features = signatures.tokenizer(
            text["text"], text.get("pair"), max_length=signatures.max_length
        )
        probabilities = decode_classes(model(features, training=False))["probabilities"]
    weights = model.weights
    sizes = [math.prod(weight.shape) * tf.as_dtype(weight.dtype).size for weight in weights]
    return {
        "format_version": FORMAT_VERSION,
        "labels": list(signatures.labels),
        "max_length": signatures.max_length,
        "pairs": signatures.pairs,
        "tokenizer": {k: v for k, v in signatures.tokenizer.get_config().items() if k != "tokens"},
        "tolerance": HALF_TOLERANCES.get(model.compute_dtype, TOLERANCE),
        "weights": {"count": len(weights), "bytes": sum(sizes)},
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("tensorflow", "tensorflow-text", "keras")
        },
        "signatures": {
            name: {"inputs": inputs, "probabilities": probabilities.numpy().tolist()}
            for name, inputs in samples.items()
        },
    }


def _warmup_requests(
    signatures: ClassifierSignatures, samples: dict[str, dict[str, list]]
) -> list[Request]:
    """For each signature a short row, the longest one, and all."""
    requests = []
    for name, (_, specs) in signatures.endpoints().items():
        dtypes = {spec.name: spec.dtype.as_numpy_dtype for spec in specs}
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
