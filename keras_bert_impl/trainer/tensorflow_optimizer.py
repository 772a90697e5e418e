"""What optimizers do on TensorFlow beside their update: sum gradients, clip, average weights."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["ClipAfterReduction", "check_optimizer", "dense", "optimizer_gaps", "sums_rows"]


def dense(gradient):
    """A gradient as a tensor: those of embeddings summed per row; None stays None."""
    return None if gradient is None else tf.convert_to_tensor(gradient)


def sums_rows(optimizer) -> bool:
    """Whether an optimizer takes the gradients of embeddings as TensorFlow gives them: by rows."""
    return isinstance(optimizer, ClipAfterReduction) and not (
        optimizer.gradient_accumulation_steps or optimizer.loss_scale_factor
    )


def clip_by_global_norm(gradients, limit: float) -> list:
    """Dense gradients, scaled to a global norm of at most `limit` (Pascanu et al. 2013).

    Of an embedding's table, only the rows in the batch are read and scaled: others are 0.
    """
    tables = [dense(gradient) for gradient in gradients]
    parts, squares = [], []
    for gradient, table in zip(gradients, tables, strict=True):
        if isinstance(gradient, tf.IndexedSlices):
            # The row of a token that occurs n times is here n times, each a part of its square.
            parts.append(tf.gather(table, gradient.indices))
            squares.append(tf.reduce_sum(parts[-1] * gradient.values))
        else:
            parts.append(table)
            squares.append(2 * tf.nn.l2_loss(table))
    parts, _ = tf.clip_by_global_norm(parts, limit, use_norm=tf.sqrt(tf.add_n(squares)))
    return [
        tf.tensor_scatter_nd_update(table, gradient.indices[:, tf.newaxis], part)
        if isinstance(gradient, tf.IndexedSlices)
        else part
        for gradient, table, part in zip(gradients, tables, parts, strict=True)
    ]


class ClipAfterReduction:
    """Mix-in before a Keras optimizer: clips the gradient summed over all replicas.

    Keras clips each replica's gradient before the sum, so that with R replicas the threshold is
    up to R times looser. Gradients of embeddings are summed per token first, also where a model
    that is no `Trainer` has not done so.

    Moving averages of the weights (`use_ema`) work under a strategy, where Keras' own fail.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Keras overwrites the weights within a `cond`, in which replicas cannot meet.
        self._overwrites_every = self.ema_overwrite_frequency
        self.ema_overwrite_frequency = None

    def get_config(self):
        return {**super().get_config(), "ema_overwrite_frequency": self._overwrites_every}

    def _clip_gradients(self, gradients):
        return gradients

    def _all_reduce_sum_gradients(self, pairs):
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            pairs = super()._all_reduce_sum_gradients([(dense(g), v) for g, v in pairs])
        gradients, variables = zip(*pairs, strict=True)
        if self.global_clipnorm:
            gradients = clip_by_global_norm(gradients, self.global_clipnorm)
        else:
            gradients = [dense(g) for g in gradients]
        if self.clipnorm:
            gradients = [tf.clip_by_norm(g, self.clipnorm) for g in gradients]
        elif self.clipvalue:
            gradients = [tf.clip_by_value(g, -self.clipvalue, self.clipvalue) for g in gradients]
        return list(zip(gradients, variables, strict=True))

    def _backend_apply_gradients(self, grads, trainable_variables):
        super()._backend_apply_gradients(grads, trainable_variables)
        if self.use_ema and self._overwrites_every:
            self._in_all_replicas(self._overwrite_where_due)

    def _update_model_variables_moving_average(self, trainable_variables):
        self._in_all_replicas(self._update_averages)

    def finalize_variable_values(self, var_list):
        """Overwrites the weights by their averages; called by Keras at the end of `fit`."""
        with self._distribution_strategy.scope():
            super().finalize_variable_values(var_list)

    def _in_all_replicas(self, update) -> None:
        """Calls update(strategy, averages, variables) once for all replicas."""
        pairs = zip(self._model_variables_moving_average, self._trainable_variables, strict=True)
        pairs = [(average.value, v.value) for average, v in pairs if average is not None]
        averages, variables = (list(values) for values in zip(*pairs, strict=True))
        tf.__internal__.distribute.interim.maybe_merge_call(
            update, self._distribution_strategy, averages, variables
        )

    def _steps_done(self):
        # With `gradient_accumulation_steps` a tensor, and else a Keras variable.
        return getattr(self.iterations, "value", self.iterations)

    def _update_averages(self, strategy, averages, variables) -> None:
        """Sets a to m a + (1 - m) v; in the first step to v."""

        def update(average, variable):
            momentum = tf.cast(self._steps_done() != 0, average.dtype) * self.ema_momentum
            average.assign(momentum * average + (1 - momentum) * variable)

        for average, variable in zip(averages, variables, strict=True):
            strategy.extended.update(average, update, args=(variable,), group=False)

    def _overwrite_where_due(self, strategy, averages, variables) -> None:
        def update(variable, average):
            is_due = (self._steps_done() + 1) % self._overwrites_every == 0
            variable.assign(tf.where(is_due, average, variable))

        for average, variable in zip(averages, variables, strict=True):
            strategy.extended.update(variable, update, args=(average,), group=False)


def check_optimizer(optimizer, strategy) -> None:
    """Raises ValueError for what Keras' optimizers cannot do with several replicas."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    several = strategy.num_replicas_in_sync > 1
    if several and inner is not None and inner.gradient_accumulation_steps:
        raise ValueError(
            "gradient_accumulation_steps does not work under a strategy with several replicas: "
            f"give compile(..., micro_batches={inner.gradient_accumulation_steps}) and batches as "
            "many times as large"
        )


def optimizer_gaps(optimizer, strategy) -> list[str]:
    """What an optimizer does otherwise than BERT's recipe or cannot do, one sentence each."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if inner is None:
        return []
    gaps = []
    is_stock = not isinstance(inner, ClipAfterReduction)
    several = strategy.num_replicas_in_sync > 1
    if is_stock and several and any((inner.clipnorm, inner.global_clipnorm, inner.clipvalue)):
        gaps.append("clips each replica's gradient before the reduction, not the global gradient")
    if is_stock and inner.weight_decay:
        gaps.append("decays LayerNorm weights and biases too, which BERT's recipe leaves out")
    if is_stock and several and inner.use_ema and inner.ema_overwrite_frequency:
        gaps.append("Keras' ema_overwrite_frequency fails under a strategy")
    return gaps
