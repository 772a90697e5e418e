"""Errors of TensorFlow and of Keras, cut to what the user needs."""

from __future__ import annotations

import contextlib
import re

import tensorflow as tf

__all__ = ["plain_errors"]

# Of TensorFlow's cross-entropy, on CPUs.
_BAD_TARGET = re.compile(r"label value of (-?\d+) which is outside the valid range of (\[0, \d+\))")
# How Keras marks the message of a layer within its account of the call.
_MESSAGE_IN_KERAS = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)


@contextlib.contextmanager
def plain_errors():
    """Makes a ValueError of a failed run-time check, and cuts a layer's error to its message."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        message = _message_of(error.message)
        if message is None:
            raise
    except ValueError as error:
        found = _MESSAGE_IN_KERAS.search(str(error))
        if found is None:
            raise
        raise ValueError(found[1]) from error
    else:
        return
    raise ValueError(message)


def _message_of(text: str) -> str | None:
    """What a failed check says, or None where it is none of ours."""
    if found := re.search(r"keras_bert_impl: (.*?)\] \[(-?\d+)\] \[(-?\d+)\]", text):
        return "{}, got values from {} to {}".format(*found.groups())
    if found := _BAD_TARGET.search(text):
        return (
            f"targets must be in {found[2]}, got {found[1]} (those that shall not count need the "
            "sample weight 0)"
        )
    return None
