"""Word counts of a corpus, in parallel, for learning a vocabulary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from keras_bert_impl.data.chunks import Chunk, chunks_of
from keras_bert_impl.data.corpus import RawDocument, read_documents, sentences_of
from keras_bert_impl.data.workers import make_chunks
from keras_bert_impl.text.word_counts import count_words

__all__ = ["count_corpus_words"]

_CHUNK_BYTES = 4_000_000
_MOST_WORDS = 5_000_000


def count_corpus_words(
    corpus: str | os.PathLike | Sequence[str | os.PathLike],
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    corpus_format: str = "auto",
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> Counter[str]:
    """Counts the words of a corpus as WordPiece gets them.

    Memory is bounded: above 5 million distinct words, those that were seen once so far are
    forgotten. The counts do not depend on the number of workers.

    Args:
        corpus: files, folders and globs, see `read_documents`.
        lowercase, strip_accents: see `count_words`.
        corpus_format: of `read_documents`.
        workers: processes, see `generate`.
        on_progress: told the bytes of text counted so far.

    Raises:
        FileNotFoundError, ValueError: as `read_documents`; the corpus has no word.
    """
    sizes: dict[int, int] = {}

    def noted(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            sizes[chunk.number] = chunk.size
            yield chunk

    counts: Counter[str] = Counter()
    waiting: dict[int, Counter[str]] = {}
    done = following = 0
    chunks = noted(chunks_of(read_documents(corpus, format=corpus_format), _CHUNK_BYTES))
    for number, found in make_chunks(_WordCounter(lowercase, strip_accents), chunks, workers):
        done += sizes.pop(number)
        waiting[number] = found
        # What is forgotten must not depend on which worker is first.
        while following in waiting:
            counts.update(waiting.pop(following))
            following += 1
            if len(counts) > _MOST_WORDS:
                counts = Counter({word: count for word, count in counts.items() if count > 1})
        if on_progress is not None:
            on_progress(done)
    if not counts:
        raise ValueError(f"{corpus}: the corpus has no word")
    return counts


@dataclass(frozen=True)
class _WordCounter:
    lowercase: bool
    strip_accents: bool | None

    def make(self, chunk: Chunk) -> Counter[str]:
        texts = (text for document in chunk.documents for text in _texts(document))
        return count_words(texts, lowercase=self.lowercase, strip_accents=self.strip_accents)


def _texts(document: RawDocument) -> list[str]:
    # Sentences are of no matter here, but wikitext must become passages.
    return sentences_of(document) if document.kind == "wikitext" else [document.text]
