"""What callers pass as text -> a string tensor [N]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import tensorflow as tf

__all__ = ["Texts", "as_string_vector"]

Texts = str | Sequence[str] | tf.Tensor


def as_string_vector(texts: Texts) -> tf.Tensor:
    """Text as a string tensor [N]; a Python ``str`` is one row.

    Raises:
        ValueError: The rank is not one or an element is not text.
    """
    if isinstance(texts, str):
        texts = [texts]
    if not tf.is_tensor(texts):
        if not isinstance(texts, Iterable):
            raise ValueError(f"texts must be strings, received {type(texts).__name__}: {texts!r}")
        values = list(texts)
        for number, value in enumerate(values):
            if not isinstance(value, str | bytes):
                raise ValueError(
                    f"texts must be strings, element {number} is {type(value).__name__}: {value!r}"
                )
        texts = tf.constant([_utf8(value) for value in values], tf.string, [len(values)])
    if texts.dtype != tf.string:
        raise ValueError(f"texts must be strings, received a tensor of dtype {texts.dtype.name}")
    if texts.shape.rank is not None and texts.shape.rank != 1:
        raise ValueError(
            f"texts must be a vector of strings [N], received a tensor of rank {texts.shape.rank} "
            f"and shape {tuple(texts.shape)}"
        )
    return tf.ensure_shape(texts, [None])


def _utf8(value: str | bytes) -> bytes:
    """UTF-8; a lone surrogate, which has none, becomes another character no vocabulary holds."""
    if isinstance(value, bytes):
        return value
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\U0010ffff", value).encode("utf-8")
