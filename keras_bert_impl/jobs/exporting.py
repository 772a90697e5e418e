"""A run as a SavedModel, and the check of one."""

from __future__ import annotations

import os
from pathlib import Path

from keras_bert_impl.jobs.runs import Run, load
from keras_bert_impl.serving.export import ExportResult, export_signatures
from keras_bert_impl.serving.kinds import signatures_of
from keras_bert_impl.serving.model_folder import versions
from keras_bert_impl.serving.verify import VerifyReport, verify

__all__ = ["export_run", "verify_export"]


def export_run(
    model: Run | str | os.PathLike,
    output: str | os.PathLike | None = None,
    *,
    version: int | None = None,
) -> ExportResult:
    """Writes the next version of a SavedModel and checks it in a fresh process.

    Args:
        model: a run, or its folder as for `load`.
        output: the folder of the versions; by default ``saved_models/`` and the run's name.
        version: number of the version; by default the next one.

    Raises:
        FileExistsError: the version is there already.
        FileNotFoundError, ValueError: as `load`; or the SavedModel does not give the answers of the
            model, and nothing is written.
        OSError: the folder cannot be written.
    """
    run = model if isinstance(model, Run) else load(model)
    output = Path("saved_models", run.folder.resolve().name) if output is None else output
    signatures = signatures_of(
        run.task.name,
        run.model,
        run.tokenizer,
        labels=run.labels,
        options=run.options,
        pairs=bool(run.pairs),
    )
    return export_signatures(signatures, output, version=version)


def verify_export(folder: str | os.PathLike) -> VerifyReport:
    """Checks a SavedModel against the answers that the model gave when it was exported.

    Args:
        folder: a version folder, or that of the versions, whose highest is taken.

    Raises:
        FileNotFoundError: there is no such folder or export.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    found = versions(folder)
    if found and not (folder / "saved_model.pb").is_file():
        folder = folder / str(found[-1])
    return verify(folder)
