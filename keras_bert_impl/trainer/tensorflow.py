"""Training on TensorFlow: right on one device and under `tf.distribute`.

Keras 3 passes un-summed embedding gradients to the optimizer, clips each replica's gradient
before the reduction, divides each replica's loss by its own weights, and cannot run several
steps per execution under a strategy. The overrides below mend each; `PRIVATE_KERAS_NAMES` lists
what they touch that Keras does not document.
"""

from __future__ import annotations

import contextlib
import logging

import keras
import tensorflow as tf

from keras_bert_impl.losses import as_weighted_mean
from keras_bert_impl.trainer import tensorflow_recipes as recipes
from keras_bert_impl.trainer.outputs import OutputLosses
from keras_bert_impl.trainer.recipes import check_recipe
from keras_bert_impl.trainer.tensorflow_errors import plain_errors
from keras_bert_impl.trainer.tensorflow_function import make_function
from keras_bert_impl.trainer.tensorflow_optimizer import (
    check_optimizer,
    dense,
    optimizer_gaps,
    sums_rows,
)
from keras_bert_impl.trainer.tensorflow_parts import add, part_of, shares_of, sum_over_replicas

__all__ = ["PRIVATE_KERAS_NAMES", "Trainer", "sum_over_replicas"]

PRIVATE_KERAS_NAMES = {
    keras.Model: (
        "_autoconvert_optionals",
        "_compile_metrics",
        "_compute_loss",
        "_distribute_strategy",
        "_flatten_layers",
        "_loss_tracker",
        "_maybe_symbolic_build",
        "_symbolic_build",
    ),
    keras.optimizers.Optimizer: (
        "_all_reduce_sum_gradients",
        "_backend_apply_gradients",
        "_clip_gradients",
        "_update_model_variables_moving_average",
    ),
}

_logger = logging.getLogger(__name__)


class Trainer(OutputLosses, keras.Model):
    """A `keras.Model` whose `fit` gives the same weights on one device and on many.

    * losses are weighted means, sum(w * loss) / sum(w), over the global batch;
    * with a dict of losses, the log holds each as `{name}_loss`, exact over the epoch;
    * gradients of embeddings are summed per token before the optimizer sees them;
    * `micro_batches` accumulates the gradient of a batch that does not fit into memory;
    * `r_drop` and `adversarial` regularise (see `tensorflow_recipes`);
    * `steps_per_execution` and several machines work.

    With `keras_bert_impl.AdamW`, clipping acts on the gradient of the global batch. A stock
    Keras optimizer works too; what it lacks is logged by `compile`.
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

        Args:
            optimizer, loss: as in Keras.
            micro_batches: parts that each replica cuts its share of a batch into, one after the
                other, for one step of the optimizer. The step is that of the whole batch, with
                the activations of one part in memory.
            r_drop: alpha of R-Drop: the loss is the mean of those of two passes with dropout,
                plus alpha (KL(p || q) + KL(q || p)) / 2 of their distributions; 0: one pass.
            adversarial: epsilon of adversarial training: the loss is the mean of that of the batch
                and that with the token embeddings of each row moved by epsilon along their
                gradient; 0: none.
            **kwargs: as in Keras.

        Raises:
            ValueError: `jit_compile=True` under a strategy with several replicas, or as
                `check_recipe` and `check_optimizer`.
        """
        check_recipe(micro_batches, r_drop, adversarial)
        if kwargs.get("jit_compile") is True and self.distribute_strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "jit_compile=True does not work under a strategy with several replicas (XLA "
                "cannot compile the sum over them): leave jit_compile at 'auto'"
            )
        loss = as_weighted_mean(loss, total=sum_over_replicas)
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        check_optimizer(self.optimizer, self.distribute_strategy)
        with self.distribute_strategy.scope():
            self._track_outputs(kwargs.get("loss_weights"))
        self.micro_batches, self.r_drop, self.adversarial = micro_batches, r_drop, adversarial
        self._divergences = recipes.divergences(loss, sum_over_replicas) if r_drop else None
        for gap in optimizer_gaps(self.optimizer, self.distribute_strategy):
            _logger.warning("%s: %s", type(self.optimizer).__name__, gap)

    def get_compile_config(self):
        config = super().get_compile_config()
        names = ("micro_batches", "r_drop", "adversarial")
        return config and {**config, **{name: getattr(self, name) for name in names}}

    def compile_from_config(self, config):
        """Compiles as the model in the file was, with an optimizer ready for its state."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def train_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        if self.micro_batches > 1:
            return self._accumulating_step(x, y, sample_weight)
        loss, y_pred, gradients = self._differentiate(x, y, sample_weight)
        if not sums_rows(self.optimizer):
            gradients = map(dense, gradients)
        self.optimizer.apply(list(gradients), self.trainable_weights)
        self._track_loss(x, loss, sample_weight)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _differentiate(self, x, y, sample_weight, parts=1):
        """Loss (what of it no output tracks), predictions of a batch, and gradients."""
        data = (x, y, sample_weight, parts)
        if not self.adversarial:
            return self._pass(*data)[:3]
        loss, y_pred, gradients, moved = self._pass(*data, watch=True)
        move = recipes.perturbation(moved, self.adversarial)
        with recipes.changed_embeddings(self, lambda tokens: tokens + move):
            other, _, others, _ = self._pass(*data)
        pairs = zip(map(dense, gradients), map(dense, others), strict=True)
        halves = [None if one is None else (one + two) / 2 for one, two in pairs]
        return (loss + other) / 2, y_pred, halves

    def _pass(self, x, y, sample_weight, parts, watch=False):
        """As `_differentiate`, of one pass; `watch` adds the gradient of the token embeddings."""
        seen = []
        with tf.GradientTape() as tape:

            def keep(tokens):
                tape.watch(tokens)
                seen.append(tokens)
                return tokens

            with recipes.changed_embeddings(self, keep) if watch else contextlib.nullcontext():
                y_pred = self(x, training=True)
            loss = self._compute_loss(x, y, y_pred, sample_weight, training=True)
            extra = tf.zeros(())
            if self.r_drop:
                other = self(x, training=True)
                loss = (loss + self._compute_loss(x, y, other, sample_weight, training=True)) / 2
                weights = dict(self._output_weights)
                extra = recipes.divergence_of(
                    self._divergences, y_pred, other, sample_weight, weights
                )
                loss += self.r_drop * extra
            if parts > 1 and self.losses:
                loss -= (1 - 1 / parts) * self._aggregate_additional_loss(tf.add_n(self.losses))
            scaled_loss = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled_loss, [*self.trainable_weights, *seen])
        loss = self._untracked(loss, parts, self.r_drop * extra)
        count = len(self.trainable_weights)
        moved = tf.convert_to_tensor(gradients[-1]) if watch else None
        return loss, y_pred, gradients[:count], moved

    def _accumulating_step(self, x, y, sample_weight):
        """As `train_step`, of the parts of the batch one after the other."""
        parts = self.micro_batches
        rows = tf.shape(keras.tree.flatten(x)[0])[0]
        shares = shares_of([self.loss, self._divergences], [sample_weight] * 2, rows, parts)
        total, sums = 0.0, []
        for part in range(parts):
            # Without the dependency all parts may be in memory at once.
            with tf.control_dependencies([g for g in sums if g is not None]):
                data = keras.tree.map_structure(
                    lambda value, part=part: part_of(value, part, parts), (x, y, sample_weight)
                )
            with contextlib.ExitStack() as stack:
                for loss, share in shares:
                    stack.enter_context(loss.scaled(share[part]))
                loss, y_pred, gradients = self._differentiate(*data, parts=parts)
            self.compute_metrics(data[0], data[1], y_pred, sample_weight=data[2])
            total += loss
            gradients = [dense(gradient) for gradient in gradients]
            sums = [add(*pair) for pair in zip(sums, gradients, strict=True)] if part else gradients
        self.optimizer.apply(sums, self.trainable_weights)
        self._track_loss(x, total, sample_weight)
        return self.get_metrics_result()

    def test_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        loss = self._compute_loss(x, y, y_pred, sample_weight, training=False)
        self._track_loss(x, self._untracked(loss), sample_weight)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _untracked(self, loss, parts=1, extra=0.0):
        """The part of a loss that the metrics of the outputs do not hold: regularisation."""
        if not self._output_weights:
            return loss
        if not self.losses:
            return tf.zeros(()) + extra
        return self._aggregate_additional_loss(tf.add_n(self.losses)) / parts + extra

    def get_metrics_result(self):
        results = super().get_metrics_result()
        if self._output_weights:
            results["loss"] += self._sum_of_outputs(results)
        return results

    def _track_loss(self, x, loss, sample_weight):
        """Counts the global mean by what it is a mean over, so that epochs are exact means.

        Each replica holds its share of the global mean.
        """
        if tf.is_tensor(sample_weight):
            count = tf.reduce_sum(tf.cast(sample_weight, "float32"))
        else:
            count = tf.shape(keras.tree.flatten(x)[0])[0]
        self._loss_tracker.update_state(sum_over_replicas(loss), sample_weight=count)

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = make_function(self, self.train_step)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = make_function(self, self.test_step)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds metrics and optimizer before the first trace, from this worker's first batch."""
        if self._distribute_strategy is None:
            if iterator is not None and self.built:
                self._build_state(iterator._distributed_dataset.element_spec)
            return
        if iterator is not None:
            strategy = self.distribute_strategy
            _, _, distributed = next(iter(iterator))
            data_batch = keras.tree.map_structure(
                lambda value: strategy.experimental_local_results(value)[0], next(distributed)
            )
        with self.distribute_strategy.scope():
            self._symbolic_build(data_batch=data_batch)

    def _build_state(self, batch_spec):
        """Creates what the first step would create, upon which it would be traced again."""
        x, y, _ = keras.utils.unpack_x_y_sample_weight(
            keras.tree.map_structure(
                lambda spec: keras.KerasTensor(spec.shape, spec.dtype.name), batch_spec
            )
        )
        metrics = self._compile_metrics
        if metrics is not None and not metrics.built and y is not None:
            try:
                outputs = self.compute_output_spec(x)
            except (KeyError, TypeError, ValueError):
                return  # The first step says what is wrong with the inputs.
            metrics.build(y, outputs)
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def fit(self, *args, **kwargs):
        """As `keras.Model.fit`; bad token ids and lengths end in a ValueError."""
        data = args[0] if args else kwargs.get("x")
        if isinstance(data, tf.data.Dataset):
            # Keras shuffles arrays only, and warns where it is left to its default.
            kwargs.setdefault("shuffle", False)
        with plain_errors():
            return super().fit(*args, **kwargs)

    def evaluate(self, *args, **kwargs):
        """As `keras.Model.evaluate`; bad token ids and lengths end in a ValueError."""
        with plain_errors():
            return super().evaluate(*args, **kwargs)

    def train_on_batch(self, *args, **kwargs):
        """As `keras.Model.train_on_batch`; bad token ids and lengths end in a ValueError."""
        with plain_errors():
            return super().train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args, **kwargs):
        """As `keras.Model.test_on_batch`; bad token ids and lengths end in a ValueError."""
        with plain_errors():
            return super().test_on_batch(*args, **kwargs)

    def predict(self, *args, **kwargs):
        """As `keras.Model.predict`; bad token ids and lengths end in a ValueError."""
        with plain_errors():
            return super().predict(*args, **kwargs)
