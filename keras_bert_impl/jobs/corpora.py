"""From a corpus to a vocabulary, and to shards."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.data.corpus_words import count_corpus_words
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.generation import GenerationProgress, generate
from keras_bert_impl.data.shards import MANIFEST_FILE
from keras_bert_impl.jobs.preparation import open_vocabulary
from keras_bert_impl.sources import atomic_write, cache_dir, refuse_existing, storage
from keras_bert_impl.text.vocab_learning import learn_vocab

__all__ = ["LearnedVocabulary", "MadeShards", "make_shards", "make_vocabulary"]

Paths = str | os.PathLike | Sequence[str | os.PathLike]


@dataclass(frozen=True)
class LearnedVocabulary:
    """A vocabulary file; `words` are the distinct words of the corpus."""

    file: str
    tokens: int
    words: int
    seconds: float


@dataclass(frozen=True)
class MadeShards:
    """A folder of shards; `report` describes the corpus, line by line."""

    folder: str
    examples: dict[str, int]
    chunks: int
    report: list[str]
    seconds: float


def make_vocabulary(
    corpus: Paths,
    output: str | os.PathLike,
    *,
    size: int = 30522,
    cased: bool = False,
    unused: int = 95,
    min_frequency: int = 2,
    corpus_format: str = "auto",
    workers: int = 1,
    overwrite: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> LearnedVocabulary:
    """Learns a WordPiece vocabulary and writes ``vocab.txt``.

    Args:
        corpus: files, folders and globs.
        output: the file to write.
        size: number of tokens, reserved ones included.
        cased: whether case and accents are kept.
        unused: ``[unusedN]`` tokens.
        min_frequency: least count of a character or piece.
        corpus_format: as `keras_bert_impl.data.corpus.read_documents`.
        workers: processes that count.
        overwrite: whether an output file that exists may be replaced.
        on_progress: told the bytes of text counted so far.

    Raises:
        FileExistsError: the output file exists.
        FileNotFoundError, ValueError: the corpus cannot be read, or is too small for the size.
    """
    began = time.monotonic()
    path = Path(output)
    if path.is_dir():
        path /= "vocab.txt"
    refuse_existing(path, overwrite)
    counts = count_corpus_words(
        corpus,
        lowercase=not cased,
        corpus_format=corpus_format,
        workers=workers,
        on_progress=on_progress,
    )
    vocab = learn_vocab(
        counts, size, lowercase=not cased, unused=unused, min_frequency=min_frequency
    )
    atomic_write(path, vocab.to_bytes())
    seconds = round(time.monotonic() - began, 2)
    return LearnedVocabulary(os.fspath(path), len(vocab), len(counts), seconds)


def make_shards(
    corpus: Paths,
    vocab: str | os.PathLike,
    output: str | os.PathLike,
    settings: ExampleSettings | None = None,
    *,
    cased: bool | None = None,
    corpus_format: str = "auto",
    workers: int = 1,
    on_progress: Callable[[GenerationProgress], None] | None = None,
) -> MadeShards:
    """Makes a folder of shards for `pretrain`; called again, it makes what is missing.

    Args:
        corpus: files, folders and globs.
        vocab: ``vocab.txt``, or a folder with one.
        output: folder to write; one of ``gs://`` and alike gets its files, which are made in the
            cache, at the end.
        settings: how; BERT's by default.
        cased: whether case is kept; None: as the folder says, or as the tokens suggest.
        corpus_format, workers, on_progress: as `keras_bert_impl.data.generation.generate`.

    Raises:
        FileExistsError, FileNotFoundError, ValueError, OSError: as `generate` and
            `open_vocabulary`.
    """
    began = time.monotonic()
    folder, output = _place_of(os.fspath(output)), os.fspath(output)
    result = generate(
        corpus,
        open_vocabulary(vocab, cased),
        folder,
        settings,
        corpus_format=corpus_format,
        workers=workers,
        on_progress=on_progress,
    )
    if storage.is_remote(output):
        storage.upload(folder, output, last=MANIFEST_FILE)
        shutil.rmtree(folder)
    return MadeShards(
        folder=output,
        examples=result.examples,
        chunks=result.made + result.kept,
        report=result.report.lines(),
        seconds=round(time.monotonic() - began, 2),
    )


def _place_of(output: str) -> Path:
    """Where the shards are made: the folder itself, or for a remote one its place in the cache."""
    if not storage.is_remote(output):
        return Path(output)
    if storage.exists(storage.join(output, MANIFEST_FILE)):
        raise FileExistsError(
            f"{output} holds finished shards ({MANIFEST_FILE}): name another folder"
        )
    return cache_dir() / "generated" / hashlib.sha256(output.encode()).hexdigest()[:24]
