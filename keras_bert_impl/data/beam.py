"""Shards from a corpus that is larger than one machine, as an Apache Beam pipeline (extra `beam`).

The functions are those of `generation`. Beam keeps no order, so a document belongs to a shard by a
hash of its text, and the documents of a shard are sorted by that hash: its bytes follow from the
corpus, the settings and the number of shards, whatever the runner does. (They are other bytes than
those of `generate`, where shards are neighbouring documents.)

The runner must reach the files of the corpus and the output folder by the same paths. Memory of a
worker holds the documents of one shard: choose `shards` so that this is a few megabytes of text.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

try:
    import apache_beam as beam
except ImportError:
    raise ImportError("this needs Apache Beam: pip install 'keras-bert-impl[beam]'") from None

from keras_bert_impl.data.chunk_examples import ChunkMaker
from keras_bert_impl.data.chunks import chunk_of
from keras_bert_impl.data.corpus import CorpusReport, RawDocument, read_documents
from keras_bert_impl.data.corpus.files import find_files
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.manifest import manifest_of
from keras_bert_impl.data.masking import mask_id_of
from keras_bert_impl.data.pretraining import check_sentence_counts
from keras_bert_impl.data.progress_files import (
    finished_chunks,
    read_finished,
    remove_progress,
)
from keras_bert_impl.data.shards import MANIFEST_FILE
from keras_bert_impl.sources import atomic_write
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["generate_with_beam"]


def generate_with_beam(
    corpus: str | os.PathLike | Sequence[str | os.PathLike],
    tokenizer: BertTokenizer,
    output: str | os.PathLike,
    settings: ExampleSettings | None = None,
    *,
    shards: int,
    corpus_format: str = "auto",
    options: beam.options.pipeline_options.PipelineOptions | None = None,
) -> dict:
    """Makes shards as `generate` does, on any runner of Beam.

    Args:
        corpus, tokenizer, settings, corpus_format: as of `generate`; `chunk_bytes` has no meaning.
        output: new folder, on a file system that all workers share.
        shards: number of shards.
        options: of the pipeline, such as the runner; DirectRunner by default.

    Returns:
        The manifest.

    Raises:
        FileExistsError: `output` is not empty.
        FileNotFoundError, ValueError: as `generate`.
    """
    settings = settings or ExampleSettings()
    folder = Path(output)
    if shards < 1:
        raise ValueError(f"shards must be at least 1, got {shards}")
    mask_id_of(tokenizer.vocab)
    if folder.is_dir() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name another folder, or remove it first")
    files = find_files(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    maker = _ShardMaker(tokenizer, settings, folder)
    with beam.Pipeline(options=options) as pipeline:
        _ = (
            pipeline
            | beam.Create(files)
            | beam.Reshuffle()
            | "Documents" >> beam.FlatMap(_keyed_documents, corpus_format, shards)
            | beam.GroupByKey()
            | "Shards" >> beam.ParDo(maker)
        )
    return _finish(folder, tokenizer, settings)


def _keyed_documents(
    file: str, corpus_format: str, shards: int
) -> Iterator[tuple[int, tuple[bytes, tuple[str, str, str]]]]:
    for document in read_documents(file, format=corpus_format):
        key = hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).digest()
        yield int.from_bytes(key[:8], "little") % shards, (key, tuple(document))


class _ShardMaker(beam.DoFn):
    """Documents of one shard to its files."""

    def __init__(self, tokenizer: BertTokenizer, settings: ExampleSettings, folder: Path) -> None:
        self._config = tokenizer.get_config()
        self._settings, self._folder = settings, folder

    def setup(self) -> None:
        # TensorFlow's objects cannot travel to the workers.
        tokenizer = BertTokenizer.from_config(self._config)
        self._maker = ChunkMaker(tokenizer, self._settings, self._folder)

    def process(self, element: tuple[int, Iterable[tuple[bytes, tuple[str, str, str]]]]) -> None:
        number, documents = element
        in_order = [RawDocument(*fields) for _, fields in sorted(documents)]
        self._maker.make(chunk_of(number, in_order))


def _finish(folder: Path, tokenizer: BertTokenizer, settings: ExampleSettings) -> dict:
    report, files = CorpusReport(), []
    # A shard may have got no document.
    for number in sorted(finished_chunks(folder)):
        finished = read_finished(folder, number)
        report.merge(finished.report)
        files += finished.shards
    if not files:
        raise ValueError(f"the {report.documents} documents give no example")
    check_sentence_counts(report.documents, report.sentences, settings.sentence_task)
    manifest = manifest_of(settings, tokenizer, files, report)
    tokenizer.save_pretrained(folder)
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    atomic_write(folder / MANIFEST_FILE, text.encode("utf-8", "backslashreplace"))
    remove_progress(folder)
    return manifest
