"""Errors of TensorFlow and of Keras, cut to what the user needs."""

from __future__ import annotations

import contextlib
import re

import tensorflow as tf

__all__ = ["plain_errors"]

# How Keras marks the message of a layer within its account of the call.
_MESSAGE_IN_KERAS = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)


@contextlib.contextmanager
def plain_errors():
    """Makes a ValueError of a failed run-time check, and cuts a layer's error to its message."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = re.search(r"keras_bert_impl: (.*?)\] \[(-?\d+)\] \[(-?\d+)\]", error.message)
        if found is None:
            raise
        message = "{}, got values from {} to {}".format(*found.groups())
    except ValueError as error:
        found = _MESSAGE_IN_KERAS.search(str(error))
        if found is None:
            raise
        raise ValueError(found[1]) from error
    else:
        return
    raise ValueError(message)
