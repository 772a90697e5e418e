"""Corpora of any size as documents of sentences: text, JSON lines, WikiExtractor, MediaWiki."""

from __future__ import annotations

from keras_bert_impl.data.corpus.documents import RawDocument, SkipCounter
from keras_bert_impl.data.corpus.formats import FORMATS
from keras_bert_impl.data.corpus.reading import read_documents, sentences_of
from keras_bert_impl.data.corpus.report import CorpusReport

__all__ = [
    "FORMATS",
    "CorpusReport",
    "RawDocument",
    "SkipCounter",
    "read_documents",
    "sentences_of",
]
