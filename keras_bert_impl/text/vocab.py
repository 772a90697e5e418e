"""WordPiece vocabularies: one token a line, the line number is the id.

Source: ``load_vocab`` and ``convert_by_vocab`` in google-research/bert ``tokenization.py``.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Vocab"]

logger = logging.getLogger(__name__)

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
REQUIRED = (PAD, UNK, CLS, SEP)


class Vocab:
    """The tokens of a model; the place of a token in the list is its id.

    Published vocabularies hold blank lines and duplicates. Every line keeps its number; of two
    equal tokens the last one answers to the name, as in Google's ``load_vocab``; both oddities are
    logged as a warning.

    Args:
        tokens: The tokens in the order of their ids. Space around a token is dropped.
        origin: Where the tokens come from, for messages.

    Raises:
        ValueError: ``[PAD]``, ``[UNK]``, ``[CLS]`` or ``[SEP]`` is missing.

    >>> vocab = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    >>> vocab.token_to_id("a"), vocab.id_to_token(3), vocab.mask_id
    (4, '[SEP]', None)
    """

    def __init__(self, tokens: Iterable[str], *, origin: str = "vocabulary") -> None:
        self.tokens: tuple[str, ...] = tuple(token.strip() for token in tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        self._file: bytes | None = None
        missing = [token for token in REQUIRED if token not in self._ids]
        if missing:
            raise ValueError(
                f"{origin}: {', '.join(missing)} not found among {len(self.tokens)} tokens; "
                f"a BERT vocabulary must hold {', '.join(REQUIRED)}, one token a line"
            )
        self._warn_of_odd_lines(origin)
        self.pad_id: int = self._ids[PAD]
        self.unk_id: int = self._ids[UNK]
        self.cls_id: int = self._ids[CLS]
        self.sep_id: int = self._ids[SEP]
        self.mask_id: int | None = self._ids.get(MASK)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocab:
        """Read a ``vocab.txt``; CRLF line ends and a byte order mark are read right.

        Raises:
            FileNotFoundError: No such file.
            ValueError: A line is not UTF-8, or a required token is missing; names file and line.
        """
        path = Path(path)
        data = path.read_bytes()
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        tokens = []
        for number, line in enumerate(lines, start=1):
            try:
                tokens.append(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8: {line!r}") from error
        vocab = cls(tokens, origin=str(path))
        vocab._file = data
        return vocab

    def to_bytes(self) -> bytes:
        """What ``save`` writes: the bytes of the file that was loaded, else a token a line."""
        if self._file is not None:
            return self._file
        return "".join(token + "\n" for token in self.tokens).encode("utf-8")

    @property
    def sha256(self) -> str:
        """Of the bytes of the file, in hexadecimal digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``vocab.txt``; a vocabulary that was loaded from a file gives the same bytes."""
        Path(path).write_bytes(self.to_bytes())

    def token_to_id(self, token: str) -> int | None:
        """Id of a token, or None where the vocabulary lacks it."""
        return self._ids.get(token)

    def id_to_token(self, token_id: int) -> str:
        """Token of an id.

        Raises:
            ValueError: The id is negative or not smaller than the size of the vocabulary.
        """
        if not 0 <= token_id < len(self.tokens):
            raise ValueError(f"token id {token_id} is outside the vocabulary [0, {len(self)})")
        return self.tokens[token_id]

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocab) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def _warn_of_odd_lines(self, origin: str) -> None:
        blank = [number for number, token in enumerate(self.tokens) if not token]
        shadowed = [n for n, token in enumerate(self.tokens) if token and self._ids[token] != n]
        if blank:
            logger.warning(
                "%s: %d blank line(s), the first is line %d; they keep their ids and match nothing",
                origin, len(blank), blank[0] + 1,
            )  # fmt: skip
        if shadowed:
            first = shadowed[0]
            logger.warning(
                "%s: %d duplicate token(s), the first is %r on line %d; its id is %d, that of the "
                "last such line", origin, len(shadowed), self.tokens[first], first + 1,
                self._ids[self.tokens[first]],
            )  # fmt: skip
