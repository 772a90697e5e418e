"""Everything that is read and checked before the first step of fine-tuning."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_impl import checkpoints, sources
from keras_bert_impl.config import SIZES, BertConfig
from keras_bert_impl.data.encoding import EncodedTexts
from keras_bert_impl.jobs.settings import FinetuneSettings
from keras_bert_impl.sources import storage
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.tokenizer_files import is_lowercase
from keras_bert_impl.text.vocab import Vocab

__all__ = [
    "Split",
    "TrainingFiles",
    "check_space",
    "config_of_size",
    "make_model",
    "make_tokenizer",
    "open_vocabulary",
    "read_files",
    "warn_of_unknown",
    "write_errors",
    "write_json",
]

_logger = logging.getLogger(__name__)

_MOST_UNKNOWN = 0.05


@dataclass(frozen=True)
class Split:
    """One file: its examples, and how many there are of each kind."""

    examples: Any
    counts: dict[str, int]


@dataclass(frozen=True)
class TrainingFiles:
    """The training and dev file with the labels of the former."""

    train: Split
    dev: Split
    labels: list[str] | None
    class_weights: str | dict[int, float] | None

    @property
    def pairs(self) -> bool:
        return getattr(self.train.examples, "pairs", None) is not None


def read_files(settings: FinetuneSettings) -> TrainingFiles:
    """Reads both files and checks their labels.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file cannot be read, one label only, a label in dev that train lacks, pairs
            in one of them only, or class weights of unknown labels. File and line are named.
    """
    task = settings.kind
    train = task.read(settings.train, settings.inputs)
    labels = task.labels(train, settings.inputs)
    broken = [label for label in labels or () if set(label) & set("\n\r\t")]
    if broken:
        raise ValueError(f"{train.path}: a label must hold no tab or line break, got {broken[0]!r}")
    dev = task.read(settings.dev, settings.inputs, getattr(train, "columns", None))
    if (getattr(train, "pairs", None) is None) != (getattr(dev, "pairs", None) is None):
        one, two = (train, dev) if train.pairs is None else (dev, train)
        raise ValueError(
            f"{two.path} has pairs of texts and {one.path} has single ones: give the columns "
            "(--text-column, --pair-column)"
        )
    for examples in (train, dev):
        task.check(examples, labels)
    if hasattr(train, "texts") and hasattr(dev, "texts"):
        _warn_of_shared_texts(train, dev)
    return TrainingFiles(
        train=Split(train, task.counts(train, labels)),
        dev=Split(dev, task.counts(dev, labels)),
        labels=labels,
        class_weights=_class_weights(settings, labels),
    )


def _warn_of_shared_texts(train, dev) -> None:
    shared = len(_rows_of(train) & _rows_of(dev))
    if shared:
        _logger.warning(
            "%d texts of %s are in %s too: its scores will look too good",
            shared,
            dev.path,
            train.path,
        )


def _rows_of(examples) -> set:
    return set(zip(examples.texts, getattr(examples, "pairs", None) or examples.texts, strict=True))


def _class_weights(settings: FinetuneSettings, labels: list[str]) -> str | dict[int, float] | None:
    weights = settings.class_weights
    if weights is None or isinstance(weights, str):
        return weights
    unknown = sorted(set(weights) - set(labels))
    if unknown:
        raise ValueError(f"class_weights: unknown label {unknown[0]!r}; known labels: {labels}")
    return {labels.index(label): weight for label, weight in weights.items()}


def make_tokenizer(settings: FinetuneSettings) -> BertTokenizer:
    """The tokenizer of the weights, or of the vocabulary that was given.

    Raises:
        FileNotFoundError, ValueError: there is no vocabulary, or it is damaged.
    """
    if settings.vocab is not None:
        return open_vocabulary(settings.vocab, settings.cased)
    overrides = {} if settings.cased is None else {"lowercase": not settings.cased}
    return BertTokenizer.from_pretrained(settings.weights, **overrides)


def open_vocabulary(vocab: str | os.PathLike, cased: bool | None = None) -> BertTokenizer:
    """The tokenizer of a ``vocab.txt``, or of a folder with one.

    Args:
        vocab: the file or folder.
        cased: whether case is kept; None: as the folder says, or as the tokens suggest.

    Raises:
        FileNotFoundError, ValueError: there is no vocabulary, or it is damaged.
    """
    overrides = {} if cased is None else {"lowercase": not cased}
    path = storage.fetch(vocab) if storage.is_remote(vocab) else Path(vocab).expanduser()
    if path.is_dir():
        return BertTokenizer.from_pretrained(path, **overrides)
    if not path.exists():
        raise FileNotFoundError(f"no such vocabulary: {path}")
    loaded = Vocab.load(path)
    if cased is None:
        overrides["lowercase"] = is_lowercase(loaded)
        kind = "uncased" if overrides["lowercase"] else "cased"
        _logger.warning("%s is taken for %s: --cased or --uncased says it", path, kind)
    return BertTokenizer(loaded, **overrides)


def warn_of_unknown(settings: FinetuneSettings, rows: EncodedTexts, vocab: Vocab) -> None:
    """Warns where many tokens are [UNK]: the vocabulary is not made for the texts."""
    special = (vocab.pad_id, vocab.cls_id, vocab.sep_id)
    tokens = np.count_nonzero(~np.isin(rows.token_ids, special))
    share = np.count_nonzero(rows.token_ids == vocab.unk_id) / max(tokens, 1)
    if share > _MOST_UNKNOWN:
        _logger.warning(
            "%s: %.0f %% of the tokens are [UNK] with the vocabulary of %s: the model cannot tell "
            "them apart; take weights, or a --vocab, made for these texts",
            settings.train,
            100 * share,
            settings.weights if settings.vocab is None else settings.vocab,
        )


def make_model(
    settings: FinetuneSettings, tokenizer: BertTokenizer, labels: list[str] | None, *, pairs: bool
) -> keras.Model:
    """The model, with weights loaded or random, after the config was checked.

    Raises:
        FileNotFoundError, ValueError: there are no weights, they are damaged, or the config does
            not fit the vocabulary, `max_length` or pairs.
    """
    task = settings.kind
    options = {**task.model_arguments(labels), "dtype": settings.dtype}
    if settings.from_scratch:
        config, where = config_of_size(settings.size, len(tokenizer.vocab))
        _check_config(config, where, settings, tokenizer, pairs)
        return task.model_class(config, **options)
    folder = sources.resolve(settings.weights)
    _check_config(
        checkpoints.open_checkpoint(folder).config, str(folder), settings, tokenizer, pairs
    )
    return task.model_class.from_pretrained(folder, **options)


def config_of_size(size: str, vocab_size: int) -> tuple[BertConfig, str]:
    """The config of a name in `SIZES`, with that vocabulary, or of a file; and its name.

    Raises:
        ValueError: neither a known name nor a config file.
    """
    if size in SIZES:
        return SIZES[size].replace(vocab_size=vocab_size), size
    path = storage.fetch(size) if storage.is_remote(size) else Path(size).expanduser()
    if path.suffix != ".json" and not path.is_file():
        raise ValueError(
            f"size must be a config file or one of {', '.join(sorted(SIZES))}, got {size!r}"
        )
    return BertConfig.from_file(path), str(path)


def _check_config(
    config: BertConfig,
    where: str,
    settings: FinetuneSettings,
    tokenizer: BertTokenizer,
    pairs: bool,
) -> None:
    size = len(tokenizer.vocab)
    if size != config.vocab_size:
        hint = "give the vocabulary that belongs to the weights (--vocab)"
        if size < config.vocab_size:
            hint += f", or, if it does, add {config.vocab_size - size} filler lines to its end"
        raise ValueError(
            f"{where}: the vocabulary has {size} tokens and the config says vocab_size "
            f"{config.vocab_size}: {hint}"
        )
    if settings.max_length > config.max_position_embeddings:
        raise ValueError(
            f"{where}: max_length {settings.max_length} (--max-length) is more than the model's "
            f"max_position_embeddings {config.max_position_embeddings}"
        )
    least = 5 if pairs else 3
    if settings.max_length < least:
        raise ValueError(
            f"max_length (--max-length) must be at least {least}, got {settings.max_length}"
        )
    if pairs and config.type_vocab_size < 2:
        raise ValueError(f"{where}: pairs need type_vocab_size 2, got {config.type_vocab_size}")


def check_space(folder: str | os.PathLike, parameters: int) -> None:
    """Raises OSError (ENOSPC) unless there is room for the weights, 4 bytes a parameter."""
    if shutil.disk_usage(folder).free < 4 * parameters:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)


def write_errors(file: Path, rows: list[tuple[str, ...]]) -> None:
    """Writes a TSV file; tabs and line breaks within a cell become spaces. Nothing for no rows."""
    if rows:
        lines = ("\t".join(" ".join(cell.split()) for cell in row) for row in rows)
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def write_json(file: Path, content: dict) -> None:
    """Writes a JSON file that people can read."""
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
