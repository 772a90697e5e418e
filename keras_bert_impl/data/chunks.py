"""A stream of documents in numbered chunks: the unit of work of `generation`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from keras_bert_impl.data.corpus import RawDocument

__all__ = ["Chunk", "chunk_of", "chunks_of"]

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Chunk:
    """Neighbouring documents of a corpus.

    Attributes:
        number: from 0.
        documents: in the order of the corpus.
        size: bytes of their texts in UTF-8.
        digest: hash of their texts, hexadecimal.
    """

    number: int
    documents: tuple[RawDocument, ...]
    size: int
    digest: str

    def __str__(self) -> str:
        first, last = self.documents[0].source, self.documents[-1].source
        return f"chunk {self.number} ({first} to {last})"


def chunks_of(documents: Iterable[RawDocument], chunk_bytes: int) -> Iterator[Chunk]:
    """Groups documents into chunks of at least `chunk_bytes` and at least two documents.

    What is left at the end and is less than half of that joins the chunk before. So where chunks
    begin depends on the corpus and `chunk_bytes` only, and memory holds two of them.
    """
    number = 0
    before: list[RawDocument] = []
    group: list[RawDocument] = []
    size = 0
    for document in documents:
        group.append(document)
        size += _bytes_of(document)
        if size >= chunk_bytes and len(group) > 1:
            if before:
                yield chunk_of(number, before)
                number += 1
            before, group, size = group, [], 0
    if len(group) < 2 or size < chunk_bytes / 2:
        before, group = before + group, []
    for rest in (before, group):
        if rest:
            yield chunk_of(number, rest)
            number += 1


def _bytes_of(document: RawDocument) -> int:
    text = document.text
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def chunk_of(number: int, documents: list[RawDocument]) -> Chunk:
    """A chunk of these documents."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    size = 0
    for document in documents:
        text = document.text.encode("utf-8", "surrogatepass")
        digest.update(f"{document.kind} {len(text)}\n".encode())
        digest.update(text)
        size += len(text)
    return Chunk(number, tuple(documents), size, digest.hexdigest())
