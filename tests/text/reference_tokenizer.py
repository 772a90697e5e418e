"""Plain-Python port of the published rules (google-research/bert ``tokenization.py``).

The oracle of the tokenizer tests. Written for clarity, one rule a function; checked against every
golden file before it is used. ``strip_accents`` follows transformers' ``BasicTokenizer``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

CHINESE_BLOCKS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def is_space(char: str) -> bool:
    return char in " \t\n\r" or unicodedata.category(char) == "Zs"


def is_control(char: str) -> bool:
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf")


def is_punctuation(char: str) -> bool:
    code = ord(char)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(char).startswith("P")


def is_chinese(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in CHINESE_BLOCKS)


def clean(text: str) -> str:
    output = []
    for char in text:
        if char in "\0\ufffd" or is_control(char):
            continue
        output.append(" " if is_space(char) else char)
    return "".join(output)


def strip_marks(word: str) -> str:
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def split_punctuation(word: str) -> list[str]:
    return "".join(f" {char} " if is_punctuation(char) else char for char in word).split(" ")


class ReferenceTokenizer:
    def __init__(
        self,
        vocab: Mapping[str, int],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        max_chars_per_word: int = 200,
    ) -> None:
        self.vocab = vocab
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self.max_chars_per_word = max_chars_per_word

    def words(self, text: str) -> list[str]:
        text = clean(text)
        if self.tokenize_chinese_chars:
            text = "".join(f" {char} " if is_chinese(char) else char for char in text)
        words = []
        for word in text.split():
            if self.lowercase:
                word = word.lower()
            if self.strip_accents:
                word = strip_marks(word)
            words.extend(split_punctuation(word))
        return " ".join(words).split()

    def pieces(self, word: str) -> list[str]:
        if len(word) > self.max_chars_per_word:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if prefix + word[start:end] in self.vocab:
                    pieces.append(prefix + word[start:end])
                    start = end
                    break
            else:
                return ["[UNK]"]
        return pieces

    def tokens(self, text: str) -> list[str]:
        return [piece for word in self.words(text) for piece in self.pieces(word)]

    def ids(self, text: str) -> list[int]:
        return [self.vocab[token] for token in self.tokens(text)]

    def ids_and_words(self, text: str) -> tuple[list[int], list[int]]:
        """Ids, and for each piece the number of its word."""
        ids, numbers = [], []
        for number, word in enumerate(self.words(text)):
            pieces = self.pieces(word)
            ids += [self.vocab[piece] for piece in pieces]
            numbers += [number] * len(pieces)
        return ids, numbers


def load_vocab(path) -> dict[str, int]:
    """Google's load_vocab: the line number is the id, the last of two equal lines wins."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        return {line.strip(): number for number, line in enumerate(lines)}
