"""Metrics of models with a dict of losses."""

from __future__ import annotations

import keras

from keras_bert_impl.losses import WeightedMean, track_outputs

__all__ = ["OutputLosses"]


class OutputLosses:
    """Mix-in before `keras.Model`: logs the losses of a dict as exact means over the epoch.

    Keras logs `{name}_loss` as a mean of the batches' means, whatever weight each batch has.
    Here each is sum(w * loss) / sum(w) over all batches, as if the epoch were one batch.
    """

    _output_weights = ()

    def _track_outputs(self, weights) -> None:
        """Called at the end of `compile` with its `loss_weights`."""
        track_outputs(self.loss)
        names = [loss.tracker.name for loss in self._tracked_losses()]
        if not isinstance(weights, dict):
            values = [1.0] * len(names) if weights is None else keras.tree.flatten(weights)
            weights = dict(zip((name.removesuffix("_loss") for name in names), values, strict=True))
        self._output_weights = tuple((n, weights[n.removesuffix("_loss")]) for n in names)

    def _tracked_losses(self) -> list[WeightedMean]:
        losses = keras.tree.flatten(self.loss) if self.compiled else []
        return [loss for loss in losses if getattr(loss, "tracker", None) is not None]

    @property
    def metrics(self):
        """As `keras.Model.metrics`, with our metrics in place of Keras' of the same names."""
        ours = [loss.tracker for loss in self._tracked_losses()]
        names = {metric.name for metric in ours}
        return [*(m for m in super().metrics if m.name not in names), *ours]

    def _sum_of_outputs(self, results):
        return sum(weight * results[name] for name, weight in self._output_weights)
