"""What `fit` and `evaluate` call for each batch, or for several."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf

__all__ = ["make_function"]


def make_function(model: keras.Model, step: Callable) -> Callable:
    """`steps_per_execution` steps on an iterator, in one graph without nested functions."""
    strategy = model.distribute_strategy
    step = model._autoconvert_optionals(step)
    if model.jit_compile:
        step = tf.function(step, jit_compile=True, reduce_retracing=True)

    def one_step(data):
        outputs = strategy.run(step, args=(data,))
        return keras.tree.map_structure(
            lambda value: strategy.reduce("MEAN", value, axis=None), outputs
        )

    def many_steps(iterator):
        outputs = one_step(next(iterator))
        for _ in tf.range(model.steps_per_execution - 1):
            data = iterator.get_next_as_optional()
            if data.has_value():
                outputs = one_step(data.get_value())
        return outputs

    def single_step(iterator):
        return one_step(next(iterator))

    on_data = one_step
    on_iterator = single_step if model.steps_per_execution == 1 else many_steps
    if not model.run_eagerly:
        on_data, on_iterator = (
            tf.function(function, reduce_retracing=True) for function in (on_data, on_iterator)
        )

    def function(iterator):
        if isinstance(iterator, tf.data.Iterator | tf.distribute.DistributedIterator):
            return on_iterator(iterator)
        # The one batch of `train_on_batch`, in a Python generator.
        return on_data(next(iterator))

    return function
