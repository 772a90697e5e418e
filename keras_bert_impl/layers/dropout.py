"""Dropout whose masks differ between replicas."""

from __future__ import annotations

import keras

from keras_bert_impl.layers import backend

__all__ = ["Dropout"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class Dropout(keras.layers.Dropout):
    """Inverted dropout: zero with probability `rate`, else x / (1 - rate); identity in inference.

    Under `tf.distribute`, where Keras mirrors the seed state, each replica draws its own mask.
    """

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        return backend.dropout(inputs, self.rate, self.seed_generator)
