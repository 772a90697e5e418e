"""Write ``code_points.npz``, the Unicode 14.0 properties that BERT's rules ask for.

Run ``python -m keras_bert_impl.text.code_points_build`` on Python 3.11, whose ``unicodedata`` is
Unicode 14.0. The file is stored so that ids do not change with the Python that runs the package.
"""

from __future__ import annotations

import unicodedata

import numpy as np

from keras_bert_impl.text.code_points import (
    CASED,
    CODE_POINTS,
    DATA_FILE,
    DELETED,
    IGNORABLE,
    PUNCTUATION,
    SPACE,
    TRANSPARENT,
    UNICODE_VERSION,
)

__all__ = ["compute", "main"]


def _kind(char: str, category: str) -> int:
    """Class of a character in ``_clean_text`` and ``_is_punctuation`` of ``tokenization.py``."""
    if char in " \t\n\r" or category in ("Zs", "Zl", "Zp"):
        return SPACE  # Zl and Zp: only str.split() takes them for space, which is enough
    if char in "\0\ufffd" or category in ("Cc", "Cf"):
        return DELETED
    ascii_symbol = 33 <= ord(char) <= 126 and not char.isalnum()
    return PUNCTUATION if ascii_symbol or category[0] == "P" else 0


def _sigma_context(char: str) -> int:
    """What the character is to the final-sigma rule, asked of ``str.lower`` itself."""
    if (char + "\u03a3").lower()[-1] == "\u03c2":
        return CASED
    return IGNORABLE if ("A" + char + "\u03a3").lower()[-1] == "\u03c2" else 0


def _order(char: str) -> int:
    """Combining class where it can move a character that is kept, see ``CodePoints.order``."""
    decomposed = unicodedata.normalize("NFD", char)
    classes = [unicodedata.combining(part) for part in decomposed]
    if 0 in classes:
        return 0
    if all(unicodedata.category(part) == "Mn" for part in decomposed):
        return TRANSPARENT
    assert len(decomposed) == 1
    return classes[0]


def _flatten(mapping: dict[int, str], name: str) -> dict[str, np.ndarray]:
    return {
        f"{name}_keys": np.array(list(mapping), np.int32),
        f"{name}_lengths": np.array([len(value) for value in mapping.values()], np.uint8),
        f"{name}_values": np.array([ord(c) for v in mapping.values() for c in v], np.int32),
    }


def compute() -> dict[str, np.ndarray]:
    """All arrays from the ``unicodedata`` of this Python, whatever its version."""
    kind, sigma, order = (np.zeros(CODE_POINTS, np.uint8) for _ in range(3))
    mark, stable = (np.zeros(CODE_POINTS, bool) for _ in range(2))
    lower: dict[int, str] = {}
    decomposed: dict[int, str] = {}
    for code in range(CODE_POINTS):
        char = chr(code)
        category = unicodedata.category(char)
        kind[code] = _kind(char, category)
        sigma[code] = _sigma_context(char)
        mark[code] = category == "Mn"
        stable[code] = category not in ("Cn", "Cs") and (
            unicodedata.ucd_3_2_0.category(char) == category
        )
        if 0xD800 <= code < 0xE000:
            continue
        order[code] = _order(char)
        if char.lower() != char:
            lower[code] = char.lower()
        if unicodedata.normalize("NFD", char) != char:
            decomposed[code] = unicodedata.normalize("NFD", char)
    order[kind == DELETED] = TRANSPARENT
    sigma[kind == DELETED] = IGNORABLE
    flags = {"kind": kind, "sigma": sigma, "order": order, "mark": mark, "stable": stable}
    return {**flags, **_flatten(lower, "lower"), **_flatten(decomposed, "nfd")}


def main() -> None:
    """Write the file next to this module.

    Raises:
        RuntimeError: ``unicodedata`` is of another Unicode version than the stored file.
    """
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise RuntimeError(
            f"needs unicodedata of Unicode {UNICODE_VERSION}, this Python has "
            f"{unicodedata.unidata_version}"
        )
    np.savez_compressed(DATA_FILE, **compute())


if __name__ == "__main__":
    main()
