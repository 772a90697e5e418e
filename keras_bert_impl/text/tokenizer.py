"""BertTokenizer: Google's ``FullTokenizer`` as TensorFlow operations, with offsets."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from keras_bert_impl.sources import resolve
from keras_bert_impl.text import packing
from keras_bert_impl.text.inputs import Texts, as_string_vector
from keras_bert_impl.text.normalizer import Normalized, Normalizer
from keras_bert_impl.text.offsets import pieces_of, to_characters
from keras_bert_impl.text.tables import TextTables
from keras_bert_impl.text.tokenizer_files import read_tokenizer, write_tokenizer
from keras_bert_impl.text.vocab import Vocab

__all__ = ["BertTokenizer", "Tokens"]


class Tokens(NamedTuple):
    """Pieces of N strings, each field a ``tf.RaggedTensor`` int32 [N, (pieces)].

    Attributes:
        ids: line numbers in the vocabulary.
        starts: first character of the piece in the raw text, an index into the Python ``str``.
        ends: character after the last one of the piece.
        word_ids: number of the word (punctuation marks count as words) within the string.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    word_ids: tf.RaggedTensor


class _Flat(NamedTuple):
    """``Tokens`` before they become ragged: int32 [pieces] each, int64 [N + 1]."""

    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    word_ids: tf.Tensor
    row_splits: tf.Tensor


class BertTokenizer:
    """Token for token Google's ``FullTokenizer``, in eager Python, ``tf.data`` and SavedModels.

    Cleans the text, puts spaces around Chinese characters, lowers and strips accents where asked,
    splits at punctuation and cuts words into the longest pieces of the vocabulary. Characters
    that Google deletes belong to no piece. Special tokens in the text are ordinary text unless a
    caller asks for them. Broken UTF-8 counts as U+FFFD, which is deleted.

    Args:
        vocab: the vocabulary.
        lowercase: lower the text (BERT's uncased and Chinese models).
        strip_accents: drop accents; None means as ``lowercase``, as Google does.
        tokenize_chinese_chars: make each Chinese character a word.
        max_chars_per_word: longer words become ``[UNK]``; Google's value is 200.

    Raises:
        ValueError: ``max_chars_per_word`` is below 1.

    >>> vocab = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "##ness", "!"])
    >>> BertTokenizer(vocab).tokens("Goodness!")
    ['good', '##ness', '!']

    Source: google-research/bert ``tokenization.py``.
    """

    def __init__(
        self,
        vocab: Vocab,
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        max_chars_per_word: int = 200,
    ) -> None:
        if max_chars_per_word < 1:
            raise ValueError(f"max_chars_per_word must be at least 1, got {max_chars_per_word}")
        self.vocab = vocab
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self.max_chars_per_word = max_chars_per_word
        self._tables = TextTables(
            vocab,
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else strip_accents,
            tokenize_chinese_chars=tokenize_chinese_chars,
            max_chars_per_word=max_chars_per_word,
        )
        self._normalize = Normalizer(self._tables)
        with tf.init_scope():
            self._wordpiece = tf_text.FastWordpieceTokenizer(
                self._tables.pieces,
                unknown_token=self._tables.unknown_piece,
                max_bytes_per_word=4 * max_chars_per_word,
                token_out_type=tf.int32,
            )
        self._functions: dict[tuple[str, ...], Any] = {}

    def tokenize(self, texts: Texts, *, special_tokens: Iterable[str] = ()) -> Tokens:
        """Cut strings into pieces.

        Args:
            texts: a string, a list of strings or a string tensor [N].
            special_tokens: tokens such as ``"[MASK]"`` that are recognised in the text.

        Returns:
            Ids, character offsets into the raw text and word numbers, ragged int32 [N, (pieces)].

        Raises:
            ValueError: ``texts`` is not of rank one or not text; a special token is unknown.
        """
        tensor = as_string_vector(texts)
        *fields, row_splits = self._function(tuple(special_tokens))(tensor)
        partition = tf.RaggedTensor.from_row_splits(fields[0], row_splits, validate=False)
        return Tokens(partition, *(partition.with_flat_values(field) for field in fields[1:]))

    def __call__(
        self,
        texts: Texts,
        pairs: Texts | None = None,
        *,
        max_length: int = 512,
        truncation: str = "longest_first",
        pad_to: int | None = None,
        special_tokens: Iterable[str] = (),
    ) -> dict[str, tf.Tensor]:
        """Strings -> the input dict of the models: ``[CLS] text [SEP]`` or with a pair after it.

        Args:
            texts, pairs: a string, a list of strings or a string tensor [N] each.
            max_length: longest row, special tokens counted.
            truncation: ``longest_first`` (Google), ``only_first`` or ``only_second``.
            pad_to: width of the result, also a limit of the length; None pads to the longest row.
            special_tokens: tokens such as ``"[MASK]"`` that are recognised in the text.

        Returns:
            ``token_ids``, ``segment_ids`` and ``padding_mask`` (1 = real), int32 [N, S].

        Raises:
            ValueError: bad rank, type or length; unequal numbers of texts and pairs.
        """
        special_tokens = tuple(special_tokens)
        first = self.tokenize(texts, special_tokens=special_tokens).ids
        second = None
        if pairs is not None:
            second = self.tokenize(pairs, special_tokens=special_tokens).ids
            if tf.executing_eagerly() and first.nrows() != second.nrows():
                raise ValueError(f"{first.nrows()} texts but {second.nrows()} pairs")
        token_ids, segment_ids = packing.pack(
            first,
            second,
            max_length=max_length if pad_to is None else min(max_length, pad_to),
            truncation=truncation,
            cls_id=self.vocab.cls_id,
            sep_id=self.vocab.sep_id,
        )
        return packing.to_dense(token_ids, segment_ids, pad_id=self.vocab.pad_id, pad_to=pad_to)

    def tokens(self, text: str, *, special_tokens: Iterable[str] = ()) -> list[str]:
        """Pieces of one string as text, continuations with ``##`` in front."""
        ids = self.tokenize(text, special_tokens=special_tokens).ids
        return [self.vocab.id_to_token(number) for number in ids.flat_values.numpy().tolist()]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Words of one row of ids with a space between them, ``##`` pieces joined to theirs.

        Args:
            ids: ids of one row: list, array or tensor.
            skip_special_tokens: leave out ``[PAD]``, ``[CLS]`` and ``[SEP]``.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        skipped = {self.vocab.pad_id, self.vocab.cls_id, self.vocab.sep_id}
        words: list[str] = []
        for number in ids:
            if skip_special_tokens and int(number) in skipped:
                continue
            token = self.vocab.id_to_token(int(number))
            if token.startswith("##") and words:
                words[-1] += token[2:]
            else:
                words.append(token)
        return " ".join(words)

    @classmethod
    def from_pretrained(cls, source: str | os.PathLike[str], **overrides: Any) -> BertTokenizer:
        """Tokenizer of a model folder, see ``tokenizer_files.read_tokenizer`` for what is read.

        Args:
            source: a folder, ``hf:ORG/NAME`` or ``minilm``.
            **overrides: constructor arguments that win over the folder's.
        """
        vocab, options = read_tokenizer(resolve(source))
        return cls(vocab, **{**options, **overrides})

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``vocab.txt`` and ``tokenizer_config.json`` (Hugging Face's key names)."""
        options = self.get_config()
        del options["tokens"]
        write_tokenizer(Path(folder), self.vocab, options)

    def get_config(self) -> dict[str, Any]:
        """Everything that makes the tokenizer, JSON-serialisable."""
        return {
            "tokens": list(self.vocab.tokens),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
            "max_chars_per_word": self.max_chars_per_word,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> BertTokenizer:
        """Inverse of ``get_config``."""
        options = dict(config)
        return cls(Vocab(options.pop("tokens")), **options)

    def __reduce__(self):
        options = self.get_config()
        del options["tokens"]
        return functools.partial(type(self), **options), (self.vocab,)

    def _function(self, special_tokens: tuple[str, ...]):
        if special_tokens not in self._functions:
            for token in special_tokens:
                self._tables.special_code(token)
            with tf.init_scope():
                self._functions[special_tokens] = tf.function(
                    lambda texts: self._tokenize(texts, special_tokens),
                    input_signature=[tf.TensorSpec([None], tf.string)],
                    autograph=False,
                )
        return self._functions[special_tokens]

    def _tokenize(self, texts: tf.Tensor, special_tokens: tuple[str, ...]) -> _Flat:
        rows, strings, normalized = self._prepare(texts, special_tokens)
        pieces, starts, ends = self._wordpiece.tokenize_with_offsets(strings)
        starts, ends, word_ids = to_characters(
            strings,
            pieces,
            tf.cast(starts.flat_values, tf.int32),
            tf.cast(ends.flat_values, tf.int32),
            tf.constant(self._tables.piece_weights),
            self.vocab.unk_id,
        )

        def to_raw_text():
            index, row = pieces_of(rows, pieces.row_splits)
            base = tf.cast(tf.gather(normalized.row_starts, row), tf.int32)
            raw_base = tf.cast(tf.gather(normalized.raw_starts, row), tf.int32)
            first = tf.gather(normalized.first, base + tf.gather(starts, index))
            last = tf.gather(normalized.last, base + tf.gather(ends, index) - 1)
            where = index[:, None]
            return (
                tf.tensor_scatter_nd_update(starts, where, first - raw_base),
                tf.tensor_scatter_nd_update(ends, where, last - raw_base + 1),
            )

        starts, ends = tf.cond(tf.size(rows) > 0, to_raw_text, lambda: (starts, ends))
        return _Flat(pieces.flat_values, starts, ends, word_ids, pieces.row_splits)

    def _prepare(
        self, texts: tf.Tensor, special_tokens: tuple[str, ...]
    ) -> tuple[tf.Tensor, tf.Tensor, Normalized]:
        """Find the rows that the word-piece operation would get wrong and rewrite them.

        Returns:
            Their numbers, int64 [R]; the strings for the operation [N]; the rewritten rows.
        """
        tables = self._tables
        plain = tf.strings.regex_full_match(texts, tables.plain)
        rewrite = ~plain | tf.strings.regex_full_match(texts, tables.long_word)
        if special_tokens:
            pattern = tables.special_pattern(special_tokens)
            rewrite |= tf.strings.regex_full_match(texts, pattern)
        rows = tf.where(rewrite)
        strings = tf.strings.lower(texts) if tables.lowercase else texts

        def rewritten():
            normalized = self._normalize(tf.gather_nd(texts, rows), special_tokens)
            return tf.tensor_scatter_nd_update(strings, rows, normalized.strings), normalized

        def unchanged():
            nothing = tf.zeros([0], tf.int32)
            no_starts = tf.zeros([0], tf.int64)
            return strings, Normalized(texts[:0], nothing, nothing, no_starts, no_starts)

        strings, normalized = tf.cond(tf.size(rows) > 0, rewritten, unchanged)
        return rows[:, 0], strings, normalized
