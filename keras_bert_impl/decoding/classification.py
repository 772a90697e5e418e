"""Logits of a classifier or a regression head to class indices, probabilities, names and scores.

B batch, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

__all__ = ["decode_classes", "decode_label_sets", "decode_scores", "label_names"]


def decode_classes(logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Most likely class and probability of each class.

    Args:
        logits: [B, C], any float type; an empty batch is fine.

    Returns:
        ``label_ids`` int32 [B] (the first of equal logits) and ``probabilities`` float32 [B, C],
        the softmax, taken in float32.
    """
    logits = tf.cast(logits, tf.float32)
    return {
        "label_ids": tf.argmax(logits, axis=-1, output_type=tf.int32),
        "probabilities": tf.nn.softmax(logits, axis=-1),
    }


def label_names(label_ids: tf.Tensor, labels: Sequence[str]) -> tf.Tensor:
    """Names (string [B]) of class indices; `labels` are the C names in the order of the classes."""
    return tf.gather(tf.constant(list(labels), tf.string), label_ids)


def decode_scores(logits: tf.Tensor) -> tf.Tensor:
    """Scores (float32 [B]) of a regression head, whose logits are [B, 1]."""
    return tf.cast(tf.squeeze(logits, axis=-1), tf.float32)


def decode_label_sets(logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Probability of each label by itself, and which are at least 1/2.

    Args:
        logits: [B, C], any float type.

    Returns:
        ``chosen`` bool [B, C] and ``probabilities`` float32 [B, C], the sigmoid.
    """
    probabilities = tf.sigmoid(tf.cast(logits, tf.float32))
    return {"chosen": probabilities >= 0.5, "probabilities": probabilities}
