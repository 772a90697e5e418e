"""Documents as sentences to arrays of token ids, a chunk of the corpus at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_bert_impl.text.words import continues_chinese_word

__all__ = ["TokenizedDocuments", "starts_of", "tokenize_documents"]

_SENTENCES_AT_ONCE = 4096


@dataclass(frozen=True)
class TokenizedDocuments:
    """Sentences of a chunk of the corpus, one behind the other.

    Attributes:
        token_ids: int32 [pieces].
        continues: bool [pieces], whether a piece belongs to the word of the piece before it.
        sentence_starts: int64 [sentences + 1], places in `token_ids`.
        document_starts: int64 [documents + 1], places in `sentence_starts`.
        dropped_sentences: sentences without a token, which are left out.
        dropped_documents: documents without a token.
    """

    token_ids: np.ndarray
    continues: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray
    dropped_sentences: int = 0
    dropped_documents: int = 0

    def __len__(self) -> int:
        return len(self.document_starts) - 1


def tokenize_documents(
    tokenizer, documents: Sequence[Sequence[str]], *, chinese_words: bool = False
) -> TokenizedDocuments:
    """Tokenizes documents given as lists of sentences.

    Sentences and documents without tokens (blank, control characters only) are dropped and
    counted.

    Args:
        tokenizer: a `BertTokenizer`.
        documents: sentences as str.
        chinese_words: let `continues` join Chinese characters of a word, found by jieba.

    Raises:
        ValueError: jieba is asked for and not installed.
    """
    sentences = [sentence for document in documents for sentence in document]
    counts = np.array([len(document) for document in documents], np.int64)
    continuations = np.array([token.startswith("##") for token in tokenizer.vocab.tokens])
    ids, continues, lengths = [np.zeros(0, np.int32)], [np.zeros(0, bool)], [counts[:0]]
    for start in range(0, len(sentences), _SENTENCES_AT_ONCE):
        texts = sentences[start : start + _SENTENCES_AT_ONCE]
        tokens = tokenizer.tokenize(texts)
        ids.append(tokens.ids.flat_values.numpy())
        lengths.append(tokens.ids.row_lengths().numpy())
        continues.append(continuations[ids[-1]])
        if chinese_words:
            continues[-1] |= continues_chinese_word(texts, tokens)
    every = np.concatenate(lengths)
    kept = every > 0
    document_of = np.repeat(np.arange(len(counts)), counts)
    kept_counts = np.bincount(document_of[kept], minlength=len(counts))
    kept_counts = kept_counts[kept_counts > 0]
    return TokenizedDocuments(
        np.concatenate(ids),
        np.concatenate(continues),
        starts_of(every[kept]),
        starts_of(kept_counts),
        dropped_sentences=int(len(every) - np.count_nonzero(kept)),
        dropped_documents=len(counts) - len(kept_counts),
    )


def starts_of(lengths: np.ndarray) -> np.ndarray:
    """Where items of these lengths start when they lie one behind the other, and the end."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
