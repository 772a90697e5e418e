"""A chunk of documents to shards: what a worker process does, from (settings, seed, chunk) only."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert_impl.data.chunks import Chunk
from keras_bert_impl.data.corpus import CorpusReport, RawDocument, sentences_of
from keras_bert_impl.data.documents import TokenizedDocuments, starts_of, tokenize_documents
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.masking import MaskedExamples, mask_examples
from keras_bert_impl.data.pretraining import PackedExamples, pack_examples
from keras_bert_impl.data.progress_files import FinishedChunk, write_finished
from keras_bert_impl.data.records import encode_dynamic, encode_static, write_records

__all__ = ["ChunkMaker", "is_held_out"]

SPLITS = ("train", "eval")
_RECORDS = 1024
_HASHES = 1 << 64


def is_held_out(document: RawDocument, share: float) -> bool:
    """Whether a document goes to evaluation: decided by its text alone."""
    digest = hashlib.blake2b(document.text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") < share * _HASHES


@dataclass(frozen=True)
class ChunkMaker:
    """Makes the shards of one chunk.

    Attributes:
        tokenizer: a `BertTokenizer`.
        settings: how.
        folder: where the shards go.
    """

    tokenizer: object
    settings: ExampleSettings
    folder: Path

    def make(self, chunk: Chunk) -> None:
        """Writes the shards of a chunk, then the file that says that it is finished.

        Raises:
            OSError: no disk space is left; nothing is half written.
        """
        report = CorpusReport()
        documents: dict[str, list[list[str]]] = {split: [] for split in SPLITS}
        for document in chunk.documents:
            sentences = sentences_of(
                document, language=self.settings.language, on_skip=report.skipped
            )
            report.add_document(sentences)
            held_out = is_held_out(document, self.settings.hold_out)
            if sentences:
                documents[SPLITS[held_out]].append(sentences)
        shards = []
        for number, split in enumerate(SPLITS):
            if not documents[split]:
                continue
            tokenized = tokenize_documents(
                self.tokenizer, documents.pop(split), chinese_words=self.settings.chinese_words
            )
            report.tokens += len(tokenized.token_ids)
            unknown = tokenized.token_ids == self.tokenizer.vocab.unk_id
            report.unknown += int(np.count_nonzero(unknown))
            count, blocks = self._records(tokenized, chunk.number, number)
            if count:
                name = f"{split}-{chunk.number:05d}.tfrecord" + ".gz" * self.settings.gzip
                write_records(self.folder / name, blocks, gzip=self.settings.gzip)
                shards.append({"file": name, "split": split, "examples": count})
        finished = FinishedChunk(chunk.number, chunk.digest, chunk.size, shards, report)
        write_finished(self.folder, finished)

    def _records(
        self, documents: TokenizedDocuments, chunk: int, split: int
    ) -> tuple[int, Iterator[list[bytes]]]:
        """Number of examples, and their records."""
        settings, vocab = self.settings, self.tokenizer.vocab
        if settings.sentence_task == "nsp" and len(documents) == 1:
            documents = _in_halves(documents)
        if not len(documents):
            return 0, iter(())
        passes = []
        for number in range(settings.passes if split == 0 else 1):
            rng = np.random.default_rng([settings.seed, chunk, split, number])
            examples = pack_examples(
                documents,
                rng,
                cls_id=vocab.cls_id,
                sep_id=vocab.sep_id,
                max_seq_length=settings.max_seq_length,
                short_seq_prob=settings.short_seq_prob,
                sentence_task=settings.sentence_task,
            )
            if settings.form == "static":
                length = settings.max_seq_length
                examples = mask_examples(
                    examples, rng, settings.masking, vocab, max_seq_length=length
                )
            passes.append(examples)
        rows = np.arange(sum(map(len, passes)))
        if settings.form == "static":
            np.random.default_rng([settings.seed, chunk, split]).shuffle(rows)
        return len(rows), self._encoded(joined(passes), rows)

    def _encoded(
        self, examples: PackedExamples | MaskedExamples, rows: np.ndarray
    ) -> Iterator[list[bytes]]:
        for start in range(0, len(rows), _RECORDS):
            some = rows[start : start + _RECORDS]
            if isinstance(examples, MaskedExamples):
                yield encode_static(
                    examples,
                    some,
                    max_seq_length=self.settings.max_seq_length,
                    max_predictions=self.settings.max_predictions,
                    pad_id=self.tokenizer.vocab.pad_id,
                )
            else:
                yield encode_dynamic(examples, some, with_words=self.settings.chinese_words)


def joined(parts: list[PackedExamples] | list[MaskedExamples]):
    """Examples of several passes one behind the other."""
    if len(parts) == 1:
        return parts[0]
    fields = {}
    for field in dataclasses.fields(parts[0]):
        values = [getattr(part, field.name) for part in parts]
        if field.name == "starts":
            fields["starts"] = starts_of(np.concatenate([np.diff(starts) for starts in values]))
        else:
            fields[field.name] = None if values[0] is None else np.concatenate(values)
    return type(parts[0])(**fields)


def _in_halves(documents: TokenizedDocuments) -> TokenizedDocuments:
    """One document as two, so that it finds a random next sentence in its other half.

    Only in chunks and held-out parts that have one document; Google's script takes sentences of the
    same document too, where it does not hit another one. A single sentence gives no documents.
    """
    sentences = len(documents.sentence_starts) - 1
    halves = [0, sentences // 2, sentences] if sentences > 1 else [0]
    return dataclasses.replace(documents, document_starts=np.array(halves, np.int64))
