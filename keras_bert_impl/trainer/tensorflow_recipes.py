"""Recipes that need several passes over a batch: R-Drop and adversarial training.

R-Drop: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", section 2.
Adversarial training: Miyato et al. 2017, "Adversarial Training Methods for Semi-Supervised Text
Classification", section 3 (also called FGM).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import keras
import tensorflow as tf

from keras_bert_impl.losses import WeightedMean
from keras_bert_impl.trainer.tensorflow_parts import value_at

__all__ = [
    "changed_embeddings",
    "divergence_of",
    "divergences",
    "perturbation",
    "symmetric_divergence",
]


def symmetric_divergence(one, other):
    """(KL(p || q) + KL(q || p)) / 2 of the softmax of logits [..., C] each -> [...]."""
    p, q = (tf.nn.log_softmax(tf.cast(logits, tf.float32)) for logits in (one, other))
    # KL(p || q) + KL(q || p) = sum((p - q) (log p - log q)).
    return tf.reduce_sum((tf.exp(p) - tf.exp(q)) * (p - q), axis=-1) / 2


def divergences(losses, total: Callable):
    """For each loss a weighted mean, over the same rows, of how far two passes are apart."""

    def one(loss):
        if loss is None:
            return None
        return WeightedMean(symmetric_divergence, name=f"{loss.name}_divergence", total=total)

    return keras.tree.map_structure(one, losses)


def divergence_of(measures, one, other, sample_weight, loss_weights: dict[str, float]):
    """The sum over the outputs, each with the weight of its loss.

    Args:
        measures: what `divergences` returned.
        one, other: outputs of two passes.
        sample_weight: of the batch.
        loss_weights: by ``{output}_loss``; 1 where there is none.

    Raises:
        ValueError: an output has one column, so that its softmax says nothing.
    """
    total = 0.0
    for path, measure in keras.tree.flatten_with_path(measures):
        if measure is None:
            continue
        first, second = value_at(one, path), value_at(other, path)
        if first.shape[-1] == 1:
            raise ValueError("r_drop compares distributions over classes, and there is one output")
        weight = loss_weights.get(f"{path[-1]}_loss", 1.0) if path else 1.0
        total += weight * measure(first, second, value_at(sample_weight, path))
    return total


def perturbation(gradient, epsilon: float):
    """The gradient g of each row at length epsilon: epsilon g / ||g||_2, or 0 where g is 0.

    Shapes: g float [B, S, H] -> [B, S, H].
    """
    exact = tf.cast(gradient, tf.float32)
    # The largest of a row first: squares of small numbers are 0.
    largest = tf.reduce_max(tf.abs(exact), axis=(1, 2), keepdims=True)
    exact = tf.math.divide_no_nan(exact, largest)
    norm = tf.norm(exact, axis=(1, 2), keepdims=True)
    return tf.cast(epsilon * tf.math.divide_no_nan(exact, norm), gradient.dtype)


@contextlib.contextmanager
def changed_embeddings(model, change: Callable) -> Iterator[None]:
    """Within the block the embeddings of tokens pass through a function.

    Raises:
        ValueError: no layer of the model embeds tokens.
    """
    layers = [layer for layer in model._flatten_layers() if hasattr(layer, "change_tokens")]
    if not layers:
        raise ValueError(f"adversarial: {type(model).__name__} has no BertEmbeddings to perturb")
    for layer in layers:
        layer.change_tokens = change
    try:
        yield
    finally:
        for layer in layers:
            layer.change_tokens = None
