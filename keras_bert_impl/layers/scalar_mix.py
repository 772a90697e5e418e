"""A learned sum of the layers of an encoder.

Shapes: L layers, the rest as the inputs.
"""

from __future__ import annotations

import keras
from keras import ops

__all__ = ["ScalarMix"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class ScalarMix(keras.layers.Layer):
    """gamma * sum_l softmax(s)_l x_l, with gamma and s learned.

    At first it is the mean of the layers. The sum is taken in float32, the weights are float32.
    A Keras mask of the inputs is passed on.

    Shapes: a list of L float tensors of one shape, e.g. `hidden_states` -> that shape.

    Raises:
        ValueError: the input is not a list of tensors of one shape, or of another number of them
            than in the first call.

    >>> import numpy as np
    >>> mixed = ScalarMix()([np.zeros([1, 2, 3]), np.full([1, 2, 3], 4.0)])
    >>> float(mixed[0, 0, 0])
    2.0

    Source: Peters et al. 2018 (ELMo), equation 1.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        shapes = _shapes(input_shape)
        self.scalars = self.add_weight(
            shape=(len(shapes),), initializer="zeros", autocast=False, name="scalars"
        )
        self.gamma = self.add_weight(shape=(), initializer="ones", autocast=False, name="gamma")

    def call(self, layers):
        expected = self.scalars.shape[0]
        if not isinstance(layers, list | tuple) or len(layers) != expected:
            got = len(layers) if isinstance(layers, list | tuple) else type(layers).__name__
            raise ValueError(f"{self.name}: expected a list of {expected} layers, got {got}")
        shares = ops.softmax(self.scalars)
        total = sum(shares[i] * ops.cast(x, "float32") for i, x in enumerate(layers))
        return ops.cast(self.gamma * total, self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        if isinstance(previous_mask, list | tuple):
            return previous_mask[0] if previous_mask else None
        return previous_mask

    def compute_output_shape(self, input_shape):
        return _shapes(input_shape)[0]


def _shapes(input_shape) -> list[tuple]:
    """The shape of each input; all must agree."""
    is_list = isinstance(input_shape, list | tuple) and len(input_shape) > 0
    if not is_list or not all(isinstance(shape, list | tuple) for shape in input_shape):
        raise ValueError(f"expected a list of tensors, one a layer; got the shape {input_shape}")
    shapes = [tuple(shape) for shape in input_shape]
    if len(set(shapes)) > 1:
        raise ValueError(f"the layers must have one shape, got {shapes}")
    return shapes
