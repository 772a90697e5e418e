"""LayerNorm over the last axis."""

from __future__ import annotations

import keras

from keras_bert_impl.layers import backend

__all__ = ["LayerNorm"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class LayerNorm(keras.layers.LayerNormalization):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis (Ba et al. 2016).

    Args:
        epsilon: BERT: 1e-12.

    Shapes: float [..., H] -> as the input, in the compute dtype.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs):
        super().__init__(epsilon=epsilon, **kwargs)

    def call(self, inputs, training=False):
        x = keras.ops.cast(inputs, self.compute_dtype)
        return backend.layer_norm(x, self.gamma, self.beta, self.epsilon, training=training)
