"""Training on Keras' JAX backend: Keras' own step, with losses as weighted means."""

from __future__ import annotations

import keras

from keras_bert_impl.losses import as_weighted_mean
from keras_bert_impl.trainer.outputs import OutputLosses

__all__ = ["ClipAfterReduction", "Trainer"]


class ClipAfterReduction:
    """Mix-in before a Keras optimizer; on JAX, Keras clips the gradient of the global batch."""


class Trainer(OutputLosses, keras.Model):
    """A `keras.Model` whose losses are weighted means over the global batch.

    Keras' JAX step is right as it is on many devices: gradients are dense, clipping sees the
    whole gradient, and sums run over the global batch.
    """

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        *,
        micro_batches: int = 1,
        r_drop: float = 0.0,
        adversarial: float = 0.0,
        **kwargs,
    ):
        """As `keras.Model.compile`.

        Raises:
            ValueError: `micro_batches` is not 1, or `r_drop` or `adversarial` is not 0: they are
                for the TensorFlow backend.
        """
        for name, value in (("r_drop", r_drop), ("adversarial", adversarial)):
            if value:
                raise ValueError(f"{name}={value} is for the TensorFlow backend, not for JAX")
        if micro_batches != 1:
            raise ValueError(
                f"micro_batches={micro_batches} is for the TensorFlow backend: on JAX give the "
                "optimizer gradient_accumulation_steps"
            )
        super().compile(optimizer=optimizer, loss=as_weighted_mean(loss), **kwargs)
        self._track_outputs(kwargs.get("loss_weights"))

    def get_metrics_result(self):
        results = super().get_metrics_result()
        if self._output_weights and not self.losses:
            results["loss"] = self._sum_of_outputs(results)
        return results

    def compile_from_config(self, config):
        """Compiles as the model in the file was, with an optimizer ready for its state."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def predict(self, *args, **kwargs):
        """As `keras.Model.predict`; bad inputs leave the model as it was."""
        variables = [*self.trainable_variables, *self.non_trainable_variables]
        values = [variable.value for variable in variables]
        try:
            return super().predict(*args, **kwargs)
        except (TypeError, ValueError):
            # Keras takes the values out of the model for the call, and loses them here.
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            raise
