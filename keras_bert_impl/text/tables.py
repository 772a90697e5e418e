"""The tables of one tokenizer: code points, word pieces and the patterns that choose a path.

tensorflow_text's ``FastWordpieceTokenizer`` splits a string at spaces, punctuation and Chinese
characters and cuts the words into pieces. Its classes come from the ICU it was built with, so it
is given only what every ICU since Unicode 3.2 agrees on. Any other code point that the vocabulary
holds travels under a code of its own from the private planes, in text and vocabulary alike; all
that the vocabulary lacks share one code, because an unknown character makes its word ``[UNK]``
whatever it is. Pieces that no text can yield (``[MASK]``, blank and shadowed lines) get such a
code too, which keeps them inert and lets a caller ask for them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from keras_bert_impl.text.code_points import (
    CHINESE,
    CODE_POINTS,
    DELETED,
    ORDINARY,
    PUNCTUATION,
    SPACE,
    CodePoints,
    Expansions,
    TwoLevelTable,
    load_code_points,
    ranges_of,
)
from keras_bert_impl.text.vocab import UNK, Vocab

__all__ = ["TextTables"]

WORD = 2**32  # weight of a word in sums whose lower half counts bytes
PRIVATE_PLANES = 0xF0000
CODES = CODE_POINTS + 0x20000  # raw code points, then the tokens that a caller asks to keep whole
COMMON_WORD_ENDS = tuple(ord(char) for char in " :[{\u2014\u3001\u4e00\uff0c\uff1a")
LONGEST_REPETITION = 999  # RE2 refuses more


class TextTables:
    """All that the TensorFlow code of a tokenizer needs, as NumPy arrays and strings.

    Attributes:
        table, pool: what each code point becomes, see ``Expansions``.
        sigma: ``CodePoints.sigma`` as a table.
        order: ``CodePoints.order`` as a table.
        parts, parts_pool: decomposition of the few characters that hold a combining character
            which canonical ordering may move.
        pieces: the vocabulary as the word-piece operation gets it; the index is the id.
        piece_weights: int64 [V], ``WORD`` where the piece begins a word, plus the bytes that its
            UTF-8 has more than it has characters (none for ``[UNK]``, whose text is not known).
        plain: RE2 pattern of strings that the word-piece operation treats as Google does, but
            for ASCII capitals.
        long_word: RE2 pattern of those of them that may hold a word over the limit.
        unknown: code of all characters that the vocabulary lacks.
    """

    def __init__(
        self,
        vocab: Vocab,
        *,
        lowercase: bool,
        strip_accents: bool,
        tokenize_chinese_chars: bool,
        max_chars_per_word: int,
    ) -> None:
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.max_chars_per_word = max_chars_per_word
        points = load_code_points()
        self._kind = points.kind
        if not tokenize_chinese_chars:
            self._kind = np.where(points.kind == CHINESE, ORDINARY, points.kind)
        self._unsafe = (self._kind == ORDINARY) & (~points.stable | (points.kind == CHINESE))
        self._next_code = PRIVATE_PLANES
        self._unsafe[PRIVATE_PLANES:] = True
        self.unknown = self._new_code()
        self._codes: dict[int, int] = {}
        self._special: dict[str, int] = {}
        self.pieces = self._make_pieces(vocab)
        self.unknown_piece = self.pieces[vocab.unk_id]
        self.piece_weights = np.array(
            [
                piece_weight(piece, token.startswith("##"))
                for piece, token in zip(self.pieces, vocab.tokens, strict=True)
            ],
            np.int64,
        )
        self.piece_weights[vocab.unk_id] = WORD
        changed = changed_by(lowercase, strip_accents)
        self._make_expansions(points, changed)
        self.sigma, self.order, self.parts, self.parts_pool = context_tables()
        self._make_patterns(points, changed)

    def special_code(self, token: str) -> int:
        """Code, above all code points, under which a token is kept whole.

        Raises:
            ValueError: The vocabulary lacks the token, or it is one that ordinary text yields.
        """
        if token not in self._special:
            raise ValueError(
                f"special token {token!r}: not in the vocabulary as a token of at least three "
                f"characters with punctuation in it; there are {len(self._special)} of that kind: "
                f"{', '.join(sorted(self._special, key=self._special.get)[:8])} ..."
            )
        if any(token[:length] == token[-length:] for length in range(1, len(token))):
            raise ValueError(f"special token {token!r}: begins as it ends, so it could overlap")
        return self._special[token] - PRIVATE_PLANES + CODE_POINTS

    @staticmethod
    def special_pattern(tokens: Iterable[str]) -> str:
        """RE2 pattern of strings that hold one of the tokens."""
        escaped = ("".join(rf"\x{{{ord(char):x}}}" for char in token) for token in tokens)
        return f"(?s:.*)(?:{'|'.join(escaped)})(?s:.*)"

    def _new_code(self) -> int:
        code = self._next_code
        assert code < PRIVATE_PLANES + 0x20000, "vocabulary needs more than 131,072 private codes"
        self._next_code += 1
        return code

    def _make_pieces(self, vocab: Vocab) -> list[str]:
        pieces = []
        for number, token in enumerate(vocab.tokens):
            if token and vocab.token_to_id(token) == number and self._can_occur(token):
                pieces.append(self._encode(token))
                continue
            code = self._new_code()
            pieces.append(chr(code))
            if len(token) >= 3 and vocab.token_to_id(token) == number:
                self._special[token] = code
        return pieces

    def _can_occur(self, token: str) -> bool:
        """Whether the rules can yield the piece: letters only, or one mark that stands alone."""
        if token == UNK:
            return False
        body = token[2:] if token.startswith("##") else token
        kinds = {int(self._kind[ord(char)]) for char in body}
        if len(token) == 1 and kinds <= {PUNCTUATION, CHINESE}:
            return True
        return kinds == {ORDINARY} and len(body) <= self.max_chars_per_word

    def _encode(self, token: str) -> str:
        head = "##" if token.startswith("##") and len(token) > 2 else ""
        return head + "".join(chr(self._code_of(ord(char))) for char in token[len(head) :])

    def _code_of(self, code: int) -> int:
        if not self._unsafe[code]:
            return code
        if code not in self._codes:
            self._codes[code] = self._new_code()
        return self._codes[code]

    def _make_expansions(self, points: CodePoints, changed: dict[int, tuple[int, ...]]) -> None:
        expansions = Expansions(np.isin(self._kind, (PUNCTUATION, CHINESE)), CODES)
        expansions.set(self._unsafe, (self.unknown,))
        for code, own in self._codes.items():
            expansions.set(code, (own,))
        for code, result in changed.items():
            outer = (0x20,) if self._kind[code] == CHINESE else ()
            inner = [part for one in result for part in self._as_output(one)]
            expansions.set(code, (*outer, *inner, *outer))
        expansions.set(self._kind == DELETED, ())
        expansions.set(self._kind == SPACE, (0x20,))
        if self.strip_accents:
            moving = np.isin(np.arange(CODE_POINTS), holders(points))
            moving |= (points.order > 0) & (points.order < 255)
            expansions.entries[:CODE_POINTS][moving] |= Expansions.REORDERS
        self.table, self.pool = TwoLevelTable(expansions.entries), expansions.pool

    def _as_output(self, code: int) -> tuple[int, ...]:
        if self._kind[code] == PUNCTUATION:
            return 0x20, code, 0x20
        return (self._codes.get(code, self.unknown) if self._unsafe[code] else code,)

    def _make_patterns(self, points: CodePoints, changed: dict[int, tuple[int, ...]]) -> None:
        plain = (points.stable | (points.kind == CHINESE)) & (self._kind != DELETED) & ~self._unsafe
        plain[[code for code in changed if code > 127]] = False
        if self.strip_accents:
            plain &= points.order == 0
        plain[0x10000:] = False
        self.plain_codes = plain
        self.plain = f"[{_class(ranges_of(plain))}]*"
        # In a plain string only plain letters make a word; RE2 needs this class to be simple.
        gaps = ranges_of(~(plain & (self._kind == ORDINARY)))
        gaps = [(a, b) for a, b in gaps if any(a <= mark <= b for mark in COMMON_WORD_ENDS)]
        over = min(self.max_chars_per_word, LONGEST_REPETITION) + 1
        self.long_word = f"(?s:.*)[^{_class(gaps)}]{{{over}}}(?s:.*)"


@functools.cache
def changed_by(lowercase: bool, strip_accents: bool) -> dict[int, tuple[int, ...]]:
    """Code points that lowering and accent stripping change, with their results."""
    points = load_code_points()
    codes: Iterable[int] = points.lower if lowercase else ()
    if strip_accents:
        codes = {*codes, *points.nfd, *np.flatnonzero(points.mark).tolist()}
    results = {code: points.mapped(code, lowercase, strip_accents) for code in codes}
    return {code: result for code, result in results.items() if result != (code,)}


def holders(points: CodePoints) -> list[int]:
    """Characters whose decomposition holds a combining character that is kept."""
    return [
        code
        for code, parts in points.nfd.items()
        if any(points.order[part] and not points.mark[part] for part in parts)
    ]


@functools.cache
def context_tables() -> tuple[TwoLevelTable, TwoLevelTable, TwoLevelTable, np.ndarray]:
    """``sigma``, ``order``, ``parts`` and ``parts_pool`` of ``TextTables``, the same for all."""
    points = load_code_points()
    sigma, order = (
        TwoLevelTable(np.pad(values.astype(np.int32), (0, CODES - CODE_POINTS)))
        for values in (points.sigma, points.order)
    )
    parts = Expansions(np.zeros(CODE_POINTS, bool), CODES)
    for code in holders(points):
        parts.set(code, points.nfd[code])
    return sigma, order, TwoLevelTable(parts.entries), parts.pool


def piece_weight(piece: str, continues: bool) -> int:
    """One entry of ``TextTables.piece_weights``."""
    return (0 if continues else WORD) + len(piece.encode("utf-8")) - len(piece)


def _class(ranges: list[tuple[int, int]]) -> str:
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
