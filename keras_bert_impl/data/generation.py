"""A corpus to shards of pre-training examples: streaming, in parallel, and resumable.

Documents are grouped into numbered chunks, and chunk k becomes shard k (a ``train`` and, with
held-out documents, an ``eval`` file), made from the seed and the chunk alone. So the bytes of a
shard do not depend on the number of workers, memory on neither the corpus nor `dupe_factor`, and a
run that was killed goes on with the chunks that are missing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.data.chunk_examples import ChunkMaker
from keras_bert_impl.data.chunks import Chunk, chunks_of
from keras_bert_impl.data.corpus import CorpusReport, RawDocument, SkipCounter, read_documents
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.manifest import manifest_of, noted_settings
from keras_bert_impl.data.masking import mask_id_of
from keras_bert_impl.data.pretraining import check_sentence_counts
from keras_bert_impl.data.progress_files import (
    PROGRESS_FOLDER,
    finished_chunks,
    read_finished,
    read_settings,
    remove_progress,
    write_settings,
)
from keras_bert_impl.data.shards import MANIFEST_FILE
from keras_bert_impl.data.workers import make_chunks
from keras_bert_impl.sources import atomic_write
from keras_bert_impl.sources.locking import locked
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["GenerationProgress", "GenerationResult", "generate"]

_logger = logging.getLogger(__name__)

# So many documents without a second sentence are no accident of the first chunks.
_ENOUGH_DOCUMENTS = 10_000


@dataclass(frozen=True)
class GenerationProgress:
    """What is done: `chunks`, their `examples`, and `text_bytes` of the corpus."""

    chunks: int
    examples: int
    text_bytes: int


@dataclass(frozen=True)
class GenerationResult:
    """A finished folder of shards.

    Attributes:
        folder: holds the shards, `MANIFEST_FILE` and the tokenizer's files.
        manifest: what the file of that name says.
        report: of the corpus.
        examples: number of examples by split, ``train`` and ``eval``.
        made, kept: numbers of chunks made now, and found finished.
    """

    folder: Path
    manifest: dict
    report: CorpusReport
    examples: dict[str, int]
    made: int
    kept: int


def generate(
    corpus: str | os.PathLike | Sequence[str | os.PathLike],
    tokenizer: BertTokenizer,
    output: str | os.PathLike,
    settings: ExampleSettings | None = None,
    *,
    corpus_format: str = "auto",
    workers: int = 1,
    on_progress: Callable[[GenerationProgress], None] | None = None,
) -> GenerationResult:
    """Makes shards of pre-training examples.

    Called again for an unfinished folder, it makes the chunks that are missing. `open_shards` reads
    the result.

    Args:
        corpus: files, folders and globs, see `read_documents`.
        tokenizer: its vocabulary and options are written beside the shards.
        output: new folder, or one that an interrupted call with the same corpus, tokenizer and
            settings left.
        settings: how; `ExampleSettings()` by default.
        corpus_format: of `read_documents`.
        workers: processes; more than one are spawned, so a script needs
            ``if __name__ == "__main__":``.
        on_progress: told after each chunk.

    Raises:
        FileExistsError: `output` is finished already, or holds other files, or another process
            writes to it.
        FileNotFoundError: of the corpus.
        ValueError: settings or corpus are not those that `output` was begun with (all differences
            are named); the corpus has no text, or too few documents or sentences for the sentence
            task; files of the corpus are damaged; the vocabulary lacks ``[MASK]``.
        OSError: no disk space is left. ChildProcessError: a worker was killed.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    mask_id_of(tokenizer.vocab)
    run = _Run(Path(output), tokenizer, settings or ExampleSettings(), corpus_format)
    skipped = SkipCounter()
    documents = read_documents(corpus, format=corpus_format, on_skip=skipped)
    run.check_folder()
    with locked(run.folder / PROGRESS_FOLDER):
        return _generate(run, documents, skipped, workers, on_progress)


def _generate(
    run: _Run,
    documents: Iterator[RawDocument],
    skipped: SkipCounter,
    workers: int,
    on_progress: Callable[[GenerationProgress], None] | None,
) -> GenerationResult:
    run.begin()
    chunks = run.missing(chunks_of(documents, run.settings.chunk_bytes))
    maker = ChunkMaker(run.tokenizer, run.settings, run.folder)
    try:
        for number, _ in make_chunks(maker, chunks, workers):
            run.add(number)
            run.made += 1
            if on_progress is not None:
                on_progress(run.progress)
        return run.finish(skipped)
    except BaseException:
        run.leave()
        raise


class _Run:
    """What one call knows while it works."""

    def __init__(
        self,
        folder: Path,
        tokenizer: BertTokenizer,
        settings: ExampleSettings,
        corpus_format: str,
    ) -> None:
        self.folder, self.tokenizer, self.settings = folder, tokenizer, settings
        self._noted = noted_settings(settings, tokenizer, corpus_format)
        self._report = CorpusReport()
        self._shards: dict[int, list[dict]] = {}
        self.progress = GenerationProgress(0, 0, 0)
        self.made = 0
        self._finished: set[int] = set()

    def check_folder(self) -> None:
        """Raises FileExistsError where the folder holds something else than unfinished shards."""
        if (self.folder / MANIFEST_FILE).exists():
            raise FileExistsError(
                f"{self.folder} holds finished shards ({MANIFEST_FILE}): name another folder, or "
                "remove it first"
            )
        if read_settings(self.folder) is None and _holds_other_files(self.folder):
            raise FileExistsError(
                f"{self.folder} is not empty and holds no unfinished shards: name another folder, "
                "or remove it first"
            )

    def begin(self) -> None:
        """Looks at what an earlier call has left, and notes what this one is to make."""
        before = read_settings(self.folder)
        self._finished = finished_chunks(self.folder)
        if self._finished and before != self._noted:
            differences = [
                f"{name} was {before.get(name)!r} and is now {self._noted.get(name)!r}"
                for name in sorted(before.keys() | self._noted.keys())
                if before.get(name) != self._noted.get(name)
            ]
            raise ValueError(
                f"{self.folder} was begun with other settings: {'; '.join(differences)}. Go on "
                "with the same ones, name another folder, or remove it first"
            )
        if not self._finished:
            self._remove_shards()
        write_settings(self.folder, self._noted)

    def missing(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks that are not finished; the others are checked."""
        seen = 0
        for chunk in chunks:
            seen += 1
            if chunk.number not in self._finished:
                yield chunk
                continue
            if read_finished(self.folder, chunk.number).digest != chunk.digest:
                raise ValueError(
                    f"{self.folder} was begun with another corpus: {chunk} has another text. Name "
                    "another folder, or remove it first"
                )
            self.add(chunk.number)
        beyond = [number for number in self._finished if number >= seen]
        if beyond:
            raise ValueError(
                f"{self.folder} was begun with another corpus: it holds chunk {min(beyond)}, and "
                f"the corpus has {seen} chunks now. Name another folder, or remove it first"
            )

    def add(self, number: int) -> None:
        """Counts a finished chunk."""
        chunk = read_finished(self.folder, number)
        self._report.merge(chunk.report)
        self._shards[number] = chunk.shards
        self.progress = GenerationProgress(
            self.progress.chunks + 1,
            self.progress.examples + chunk.examples,
            self.progress.text_bytes + chunk.size,
        )
        if self._report.documents >= _ENOUGH_DOCUMENTS:
            self._check_sentences()

    def finish(self, skipped: SkipCounter) -> GenerationResult:
        """Writes tokenizer and manifest."""
        # The order in which workers finish must not show.
        report = CorpusReport()
        report.skipped.merge(skipped)
        for number in sorted(self._shards):
            report.merge(read_finished(self.folder, number).report)
        self._report = report
        self._check_sentences()
        shards = [shard for number in sorted(self._shards) for shard in self._shards[number]]
        manifest = manifest_of(self.settings, self.tokenizer, shards, report)
        if self.settings.hold_out and not manifest["examples"]["eval"]:
            _logger.warning(
                "hold_out=%s held out none of the %d documents",
                self.settings.hold_out,
                report.documents,
            )
        self.tokenizer.save_pretrained(self.folder)
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        atomic_write(self.folder / MANIFEST_FILE, text.encode("utf-8", "backslashreplace"))
        remove_progress(self.folder)
        examples = manifest["examples"]
        kept = len(self._shards) - self.made
        return GenerationResult(self.folder, manifest, report, examples, self.made, kept)

    def _check_sentences(self) -> None:
        report = self._report
        try:
            if not report.documents:
                told = "; ".join(
                    f"{n} x {why}, such as {report.skipped.examples[why][0]}"
                    for why, n in sorted(report.skipped.counts.items())
                )
                raise ValueError(f"the corpus has no text ({told or 'no documents'})")
            check_sentence_counts(report.documents, report.sentences, self.settings.sentence_task)
            if not any(self._shards.values()):
                raise ValueError(f"the {report.documents} documents give no example")
        except ValueError:
            # So that the folder can be used with other settings.
            self._remove_all()
            raise

    def leave(self) -> None:
        """Leaves nothing behind where no chunk is finished."""
        if not finished_chunks(self.folder) and not (self.folder / MANIFEST_FILE).exists():
            self._remove_all()
            with contextlib.suppress(OSError):
                self.folder.rmdir()

    def _remove_all(self) -> None:
        remove_progress(self.folder)
        self._remove_shards()

    def _remove_shards(self) -> None:
        for file in self.folder.glob("*-[0-9]*.tfrecord*"):
            file.unlink()


def _holds_other_files(folder: Path) -> bool:
    return folder.is_dir() and any(
        file.name != PROGRESS_FOLDER and not file.name.endswith(".partial")
        for file in folder.iterdir()
    )
