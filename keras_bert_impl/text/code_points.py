"""What BERT's rules do to each code point, as NumPy tables (Unicode 14.0).

Source: google-research/bert ``tokenization.py``, ``BasicTokenizer``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["CodePoints", "Expansions", "TwoLevelTable", "load_code_points", "ranges_of"]

UNICODE_VERSION = "14.0.0"
DATA_FILE = Path(__file__).with_name("code_points.npz")
CODE_POINTS = 0x110000
ORDINARY, DELETED, SPACE, PUNCTUATION, CHINESE = range(5)
CASED, IGNORABLE = 1, 2
TRANSPARENT = 255  # in `order`: dropped, and does not end a run of combining characters
CHINESE_BLOCKS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


@dataclass(frozen=True)
class CodePoints:
    """Properties of all 1,114,112 code points.

    Attributes:
        kind: ORDINARY, DELETED, SPACE, PUNCTUATION or CHINESE (a block that Google puts spaces
            around), uint8.
        sigma: what the code point is to the final-sigma rule: CASED, IGNORABLE or 0, uint8.
        order: canonical combining class of a combining character that is not of category Mn;
            TRANSPARENT for what is dropped and not a starter; 0 for all that ends a run, uint8.
        mark: category Mn, bool.
        stable: the category has not changed since Unicode 3.2, so every ICU agrees on it, bool.
        lower: ``str.lower`` where it changes the character.
        nfd: canonical decomposition where there is one.
    """

    kind: np.ndarray
    sigma: np.ndarray
    order: np.ndarray
    mark: np.ndarray
    stable: np.ndarray
    lower: dict[int, tuple[int, ...]]
    nfd: dict[int, tuple[int, ...]]

    def mapped(self, code: int, lowercase: bool, strip_accents: bool) -> tuple[int, ...]:
        """``lower()``, then NFD without Mn, of one code point."""
        codes = self.lower.get(code, (code,)) if lowercase else (code,)
        if not strip_accents:
            return codes
        decomposed = (part for one in codes for part in self.nfd.get(one, (one,)))
        return tuple(part for part in decomposed if not self.mark[part])


def _sequences(data: np.lib.npyio.NpzFile, name: str) -> dict[int, tuple[int, ...]]:
    values = data[f"{name}_values"].tolist()
    ends = np.cumsum(data[f"{name}_lengths"], dtype=np.int64).tolist()
    starts = [0, *ends[:-1]]
    keys = data[f"{name}_keys"].tolist()
    return {key: tuple(values[a:b]) for key, a, b in zip(keys, starts, ends, strict=True)}


@functools.cache
def load_code_points() -> CodePoints:
    """Read the stored properties; Google's Chinese blocks are entered into ``kind``."""
    with np.load(DATA_FILE) as data:
        flags = {name: data[name] for name in ("kind", "sigma", "order", "mark", "stable")}
        for first, last in CHINESE_BLOCKS:
            flags["kind"][first : last + 1] = CHINESE
        return CodePoints(**flags, lower=_sequences(data, "lower"), nfd=_sequences(data, "nfd"))


def ranges_of(members: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each run of True: bool [n] -> pairs, both ends included."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], members, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


class TwoLevelTable:
    """An int32 table over code points in blocks of 256, equal blocks stored once.

    Attributes:
        index: first level, block number of ``code >> 8``, int32.
        blocks: second level, flat, int32.
    """

    def __init__(self, values: np.ndarray) -> None:
        numbers: dict[bytes, int] = {}
        rows = values.astype(np.int32).reshape(-1, 256)
        self.index = np.array(
            [numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], np.int32
        )
        self.blocks = np.frombuffer(b"".join(numbers), np.int32)


class Expansions:
    """What each code point becomes, as one int32 entry a code point and a pool of code points.

    An entry holds the length of the result in its lowest five bits. With ``POOLED`` the result
    lies in ``pool`` from ``entry >> 8`` on; without it the result is the code point itself, with
    a space on both sides where the length is three. ``REORDERS`` marks combining characters that
    canonical ordering may move.

    Args:
        changed: result of each code point that does not stay as it is.
        spaced: bool over all code points: stays as it is, between two spaces.
        size: number of codes the table answers for.
    """

    LENGTH, POOLED, REORDERS, SHIFT = 31, 32, 64, 8

    def __init__(self, spaced: np.ndarray, size: int) -> None:
        self.entries = np.ones(size, np.int32)
        self.entries[: spaced.size][spaced] = 3
        self._pool: list[int] = []
        self._offsets: dict[tuple[int, ...], int] = {}

    def set(self, codes: int | np.ndarray, result: tuple[int, ...]) -> None:
        """Let one code point, or all members of a bool array, become ``result``."""
        assert len(result) <= self.LENGTH
        if result not in self._offsets:
            self._offsets[result] = len(self._pool)
            self._pool.extend(result)
        entry = len(result) | self.POOLED | self._offsets[result] << self.SHIFT
        self.entries[:CODE_POINTS][codes] = entry

    @property
    def pool(self) -> np.ndarray:
        """All stored results one after the other, int32, with room to read past the end."""
        return np.array([*self._pool, *[0] * (self.LENGTH + 1)], np.int32)
