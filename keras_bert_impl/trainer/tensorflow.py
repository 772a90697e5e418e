"""Training on TensorFlow: right on one device and under `tf.distribute`.

Keras 3 passes un-summed embedding gradients to the optimizer, clips each replica's gradient
before the reduction, divides each replica's loss by its own weights, and cannot run several
steps per execution under a strategy. The overrides below mend each; `PRIVATE_KERAS_NAMES` lists
what they touch that Keras does not document.
"""

from __future__ import annotations

import contextlib
import logging
import re

import keras
import tensorflow as tf

from keras_bert_impl.losses import WeightedMean, as_weighted_mean
from keras_bert_impl.trainer.outputs import OutputLosses
from keras_bert_impl.trainer.tensorflow_optimizer import dense, optimizer_gaps

__all__ = ["PRIVATE_KERAS_NAMES", "Trainer", "sum_over_replicas"]

PRIVATE_KERAS_NAMES = {
    keras.Model: (
        "_autoconvert_optionals",
        "_compile_metrics",
        "_compute_loss",
        "_distribute_strategy",
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

# How Keras marks the message of a layer within its account of the call.
_MESSAGE_IN_KERAS = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)

_logger = logging.getLogger(__name__)


def sum_over_replicas(value):
    """The sum of a tensor over all replicas; the tensor itself on one device."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)


def _add(one, other):
    return other if one is None else one if other is None else one + other


def _part(value, part: int, parts: int):
    """Rows of one of the parts of a batch; of equal size where the batch size is static."""
    if value is None:
        return None
    rows = value.shape[0]
    if rows is not None and rows % parts:
        raise ValueError(f"{rows} rows a replica cannot be cut into micro_batches={parts}")
    rows = tf.shape(value)[0] if rows is None else rows
    return tf.identity(value[rows * part // parts : rows * (part + 1) // parts])


def _shares(losses, sample_weight, rows, parts: int) -> list[tuple]:
    """For each loss the share, float32 [parts], of the global weight that each part has here."""
    shares = []
    for path, loss in keras.tree.flatten_with_path(losses):
        if not isinstance(loss, WeightedMean):
            continue
        weight = sample_weight
        for key in path if keras.tree.is_nested(sample_weight) else ():
            weight = weight[key]
        weight = tf.ones(rows) if weight is None else tf.cast(weight, "float32")
        here = tf.stack([tf.reduce_sum(_part(weight, part, parts)) for part in range(parts)])
        shares.append((loss, tf.math.divide_no_nan(here, sum_over_replicas(tf.reduce_sum(here)))))
    return shares


class Trainer(OutputLosses, keras.Model):
    """A `keras.Model` whose `fit` gives the same weights on one device and on many.

    * losses are weighted means, sum(w * loss) / sum(w), over the global batch;
    * with a dict of losses, the log holds each as `{name}_loss`, exact over the epoch;
    * gradients of embeddings are summed per token before the optimizer sees them;
    * `micro_batches` accumulates the gradient of a batch that does not fit into memory;
    * `steps_per_execution` and several machines work.

    With `keras_bert_impl.AdamW`, clipping acts on the gradient of the global batch. A stock
    Keras optimizer works too; what it lacks is logged by `compile`.
    """

    def compile(self, optimizer="rmsprop", loss=None, *, micro_batches: int = 1, **kwargs):
        """As `keras.Model.compile`.

        Args:
            optimizer, loss: as in Keras.
            micro_batches: parts that each replica cuts its share of a batch into, one after the
                other, for one step of the optimizer. The step is that of the whole batch, with
                the activations of one part in memory.
            **kwargs: as in Keras.

        Raises:
            ValueError: `jit_compile=True` under a strategy with several replicas, or
                `micro_batches` less than 1.
        """
        if micro_batches < 1:
            raise ValueError(f"micro_batches must be at least 1, got {micro_batches}")
        if kwargs.get("jit_compile") is True and self.distribute_strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "jit_compile=True does not work under a strategy with several replicas (XLA "
                "cannot compile the sum over them): leave jit_compile at 'auto'"
            )
        loss = as_weighted_mean(loss, total=sum_over_replicas)
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        with self.distribute_strategy.scope():
            self._track_outputs(kwargs.get("loss_weights"))
        self.micro_batches = micro_batches
        for gap in optimizer_gaps(self.optimizer, self.distribute_strategy):
            _logger.warning("%s: %s", type(self.optimizer).__name__, gap)

    def get_compile_config(self):
        config = super().get_compile_config()
        return config and {**config, "micro_batches": self.micro_batches}

    def compile_from_config(self, config):
        """Compiles as the model in the file was, with an optimizer ready for its state."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def train_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        if self.micro_batches > 1:
            return self._accumulating_step(x, y, sample_weight)
        loss, y_pred, gradients = self._differentiate(x, y, sample_weight)
        self.optimizer.apply(gradients, self.trainable_weights)
        self._track_loss(x, loss, sample_weight)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _differentiate(self, x, y, sample_weight, parts=1):
        """Loss (what of it no output tracks), predictions of a batch, and dense gradients."""
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self._compute_loss(x, y, y_pred, sample_weight, training=True)
            if parts > 1 and self.losses:
                loss -= (1 - 1 / parts) * self._aggregate_additional_loss(tf.add_n(self.losses))
            scaled_loss = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled_loss, self.trainable_weights)
        return self._untracked(loss, parts), y_pred, [dense(gradient) for gradient in gradients]

    def _accumulating_step(self, x, y, sample_weight):
        """As `train_step`, of the parts of the batch one after the other."""
        parts = self.micro_batches
        rows = tf.shape(keras.tree.flatten(x)[0])[0]
        shares = _shares(self.loss, sample_weight, rows, parts)
        total, sums = 0.0, []
        for part in range(parts):
            # Without the dependency all parts may be in memory at once.
            with tf.control_dependencies([g for g in sums if g is not None]):
                data = keras.tree.map_structure(
                    lambda value, part=part: _part(value, part, parts), (x, y, sample_weight)
                )
            with contextlib.ExitStack() as stack:
                for loss, share in shares:
                    stack.enter_context(loss.scaled(share[part]))
                loss, y_pred, gradients = self._differentiate(*data, parts=parts)
            self.compute_metrics(data[0], data[1], y_pred, sample_weight=data[2])
            total += loss
            sums = (
                [_add(*pair) for pair in zip(sums, gradients, strict=True)] if part else gradients
            )
        self.optimizer.apply(sums, self.trainable_weights)
        self._track_loss(x, total, sample_weight)
        return self.get_metrics_result()

    def test_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        loss = self._compute_loss(x, y, y_pred, sample_weight, training=False)
        self._track_loss(x, self._untracked(loss), sample_weight)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _untracked(self, loss, parts=1):
        """The part of a loss that the metrics of the outputs do not hold: regularisation."""
        if not self._output_weights:
            return loss
        if not self.losses:
            return tf.zeros(())
        return self._aggregate_additional_loss(tf.add_n(self.losses)) / parts

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
            self.train_function = self._make_function(self.train_step)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._make_function(self.test_step)

    def _make_function(self, step):
        """`steps_per_execution` steps on an iterator, in one graph without nested functions."""
        strategy = self.distribute_strategy
        step = self._autoconvert_optionals(step)
        if self.jit_compile:
            step = tf.function(step, jit_compile=True, reduce_retracing=True)

        def one_step(data):
            outputs = strategy.run(step, args=(data,))
            return keras.tree.map_structure(
                lambda value: strategy.reduce("MEAN", value, axis=None), outputs
            )

        def many_steps(iterator):
            outputs = one_step(next(iterator))
            for _ in tf.range(self.steps_per_execution - 1):
                data = iterator.get_next_as_optional()
                if data.has_value():
                    outputs = one_step(data.get_value())
            return outputs

        def single_step(iterator):
            return one_step(next(iterator))

        on_data = one_step
        on_iterator = single_step if self.steps_per_execution == 1 else many_steps
        if not self.run_eagerly:
            on_data, on_iterator = (
                tf.function(function, reduce_retracing=True) for function in (on_data, on_iterator)
            )

        def function(iterator):
            if isinstance(iterator, tf.data.Iterator | tf.distribute.DistributedIterator):
                return on_iterator(iterator)
            # The one batch of `train_on_batch`, in a Python generator.
            return on_data(next(iterator))

        return function

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
            metrics.build(y, self.compute_output_spec(x))
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def fit(self, *args, **kwargs):
        """As `keras.Model.fit`; bad token ids and lengths end in a ValueError."""
        data = args[0] if args else kwargs.get("x")
        if isinstance(data, tf.data.Dataset):
            # Keras shuffles arrays only, and warns where it is left to its default.
            kwargs.setdefault("shuffle", False)
        with _plain_errors():
            return super().fit(*args, **kwargs)

    def evaluate(self, *args, **kwargs):
        """As `keras.Model.evaluate`; bad token ids and lengths end in a ValueError."""
        with _plain_errors():
            return super().evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
        """As `keras.Model.predict`; bad token ids and lengths end in a ValueError."""
        with _plain_errors():
            return super().predict(*args, **kwargs)


@contextlib.contextmanager
def _plain_errors():
    """Makes a ValueError of a failed run-time check, and cuts a layer's error to its message."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = re.search(r"keras_bert_impl: (.*?)\] \[(-?\d+)\] \[(-?\d+)\]", error.message)
        if found is None:
            raise
        message = "{}, got values from {} to {}".format(*found.groups())
    except ValueError as error:
        found = _MESSAGE_IN_KERAS.search(str(error))
        if found is None:
            raise
        raise ValueError(found[1]) from error
    else:
        return
    raise ValueError(message)
