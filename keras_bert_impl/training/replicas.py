"""Prediction on the devices of a strategy."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

__all__ = ["ReplicatedPredictor"]

_TPU_WIDTH = 64


class ReplicatedPredictor:
    """`predict` and `predict_on_batch` of a model, with the rows of a batch shared by all replicas.

    Keras gives each machine another part of the rows, and a single batch whole to each replica.
    Here every machine, given the same batches, gets the outputs of all rows.

    Args:
        model: made within the scope of the strategy.
    """

    def __init__(self, model: keras.Model):
        self._model, self._strategy = model, model.distribute_strategy
        self._run = tf.function(self._outputs, reduce_retracing=True)

    def predict(self, batches: tf.data.Dataset, verbose: int = 0):
        """Outputs of all rows of a dataset of features, as `keras.Model.predict`."""
        found = [self.predict_on_batch(features) for features in batches]
        return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *found)

    def predict_on_batch(self, features: dict):
        """Outputs of a batch, NumPy arrays [B, ...]; on TPUs columns may be added."""
        features = {name: np.asarray(value) for name, value in features.items()}
        rows = len(features["token_ids"])
        replicas = self._strategy.num_replicas_in_sync
        share = -(-rows // replicas)
        chosen = np.minimum(np.arange(share * replicas), rows - 1)
        features = {name: self._widened(value[chosen]) for name, value in features.items()}

        def of_replica(context):
            first = context.replica_id_in_sync_group * share
            return {
                name: tf.constant(value[first : first + share]) for name, value in features.items()
            }

        shares = self._strategy.experimental_distribute_values_from_function(of_replica)
        outputs = self._run(shares)
        return keras.tree.map_structure(lambda value: value.numpy()[:rows], outputs)

    def _outputs(self, shares):
        outputs = self._strategy.run(lambda x: self._model(x, training=False), args=(shares,))
        return keras.tree.map_structure(lambda v: self._strategy.gather(v, axis=0), outputs)

    def _widened(self, value: np.ndarray) -> np.ndarray:
        """Padded so that a TPU compiles few shapes."""
        if not isinstance(self._strategy, tf.distribute.TPUStrategy):
            return value
        width = value.shape[-1]
        longest = self._model.config.max_position_embeddings
        room = min(width + -width % _TPU_WIDTH, longest) - width
        return np.pad(value, [(0, 0)] * (value.ndim - 1) + [(0, room)])
