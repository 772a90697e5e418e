"""Weights in and out of model objects; each format is one module, told apart by its files."""

from __future__ import annotations

import os
from pathlib import Path

from keras_bert_impl import sources
from keras_bert_impl.checkpoints.huggingface import HuggingFaceCheckpoint, LoadReport
from keras_bert_impl.checkpoints.store import CONFIG_FILE, RunCheckpoint, save_run

__all__ = ["HuggingFaceCheckpoint", "LoadReport", "RunCheckpoint", "open_checkpoint", "save_run"]


def open_checkpoint(source: str | os.PathLike) -> RunCheckpoint | HuggingFaceCheckpoint:
    """Opens a folder, `hf:ORG/NAME` or `minilm`.

    Returns:
        an object with `config`, `model_name` (our class whose head it holds, or None), `labels`
        and `num_classes` (of such a classifier, or None), `next_sentence` (whether such a
        pretrainer has that head) and `load_into(model)`.

    Raises:
        FileNotFoundError: there is no such folder, or it holds no weights that are known.
        ValueError: the weights are there in a form that is not read, with the way out.
    """
    folder = sources.resolve(source)
    if (folder / CONFIG_FILE).is_file():
        return RunCheckpoint(folder)
    has_safetensors = (folder / "model.safetensors").is_file()
    if has_safetensors or (folder / "model.safetensors.index.json").is_file():
        return HuggingFaceCheckpoint(folder)
    _refuse(folder)


def _refuse(folder: Path) -> None:
    found = sorted(path.name for path in folder.iterdir())
    if any(name.startswith("pytorch_model") and name.endswith(".bin") for name in found):
        raise ValueError(
            f"{folder} has only pytorch_model.bin, a pickle, which is not loaded because a pickle "
            "can run any code. Convert it once, in that folder, where PyTorch is installed: "
            'python -c "import torch, safetensors.torch as s; s.save_file({k: v.contiguous()'
            ".clone() for k, v in torch.load('pytorch_model.bin', weights_only=True).items()}, "
            "'model.safetensors')\""
        )
    raise FileNotFoundError(
        f"{folder} holds no weights that can be read: expected {CONFIG_FILE} (a run of this "
        f"package) or config.json with model.safetensors (Hugging Face); found {found}"
    )
