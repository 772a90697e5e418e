"""AdamW and the learning-rate schedule of google-research/bert `optimization.py`."""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.trainer import ClipAfterReduction

__all__ = ["AdamW", "WarmupLinearDecay", "is_exempt"]

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
if ON_TENSORFLOW:
    import tensorflow as tf


@keras.saving.register_keras_serializable("keras_bert_impl")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear from 0 to the peak in the warm-up, then on the line from the peak to 0.

    lr(step) = peak * step / warmup_steps           for step < warmup_steps
               peak * (1 - step / total_steps)      from then on, 0 after total_steps

    Args:
        learning_rate: the peak. BERT: 1e-4 in pre-training, 2e-5 to 5e-5 in fine-tuning.
        total_steps: optimizer steps of the whole run.
        warmup_steps: optimizer steps of the warm-up; None: a tenth of `total_steps`.

    Raises:
        ValueError: steps that are negative, or a warm-up longer than the run.

    Source: google-research/bert `optimization.py`, create_optimizer.

    >>> schedule = WarmupLinearDecay(1e-4, total_steps=100, warmup_steps=10)
    >>> [round(float(schedule(step)) * 1e4, 3) for step in (0, 5, 10, 50, 100)]
    [0.0, 0.5, 0.9, 0.5, 0.0]
    """

    def __init__(self, learning_rate: float, total_steps: int, warmup_steps: int | None = None):
        super().__init__()
        warmup_steps = total_steps // 10 if warmup_steps is None else warmup_steps
        if total_steps < 1 or not 0 <= warmup_steps <= total_steps:
            raise ValueError(
                f"expected total_steps >= 1 and 0 <= warmup_steps <= total_steps, got "
                f"total_steps={total_steps}, warmup_steps={warmup_steps}"
            )
        self.learning_rate = learning_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        left = ops.maximum(1.0 - step / self.total_steps, 0.0)
        if self.warmup_steps == 0:
            return self.learning_rate * left
        fraction = ops.where(step < self.warmup_steps, step / self.warmup_steps, left)
        return self.learning_rate * fraction

    def get_config(self):
        return {
            "learning_rate": self.learning_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable("keras_bert_impl", name="AdamW")
class AdamW(ClipAfterReduction, keras.optimizers.AdamW):
    """Adam with decoupled weight decay, as BERT was trained.

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w = w - lr (m / (sqrt(v) + eps) + wd w)

    with `bias_correction`, m / (1 - b1^t) and v / (1 - b2^t) stand for m and v in the last one, as
    in PyTorch. (Keras' own Adam leaves eps uncorrected, which is up to 32 eps in the first steps.)
    LayerNorm weights and biases are not decayed: every vector, and every variable that its
    layer calls `bias`. The gradient is clipped by its global norm after the sum over replicas.

    Args:
        learning_rate: float or schedule. BERT: 1e-4 in pre-training, 2e-5 to 5e-5 after.
        weight_decay: BERT: 0.01.
        beta_1, beta_2: decay rates of the moments. BERT: 0.9, 0.999.
        epsilon: BERT: 1e-6.
        global_clipnorm: largest norm of the whole gradient; None: no clipping. BERT: 1.0.
        bias_correction: False is BERT's own form (its `AdamWeightDecayOptimizer`).
        **kwargs: as `keras.optimizers.AdamW`, without `amsgrad`.

    Source: Devlin et al. 2019, appendix A.2; google-research/bert `optimization.py`; Loshchilov &
    Hutter 2019, algorithm 2.
    """

    def __init__(
        self,
        learning_rate=5e-5,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        global_clipnorm: float | None = 1.0,
        bias_correction: bool = True,
        **kwargs,
    ):
        super().__init__(
            learning_rate,
            weight_decay=weight_decay,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            global_clipnorm=global_clipnorm,
            amsgrad=False,
            **kwargs,
        )
        self.bias_correction = bias_correction

    def build(self, variables):
        """Creates the moments; called by Keras."""
        if not self.built:
            exempt = [v for v in variables if is_exempt(v)]
            self.exclude_from_weight_decay(var_list=exempt)
        super().build(variables)

    def _apply_weight_decay(self, variables):
        """Left to `update_step`: by then nothing reads the old values, which need no copy."""

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        """As Keras', where the rate stands with all else that the variables share."""
        shared = self._shared_scalars(learning_rate)
        super()._backend_update_step(grads, trainable_variables, shared)

    def _shared_scalars(self, learning_rate) -> dict:
        rate, zero = ops.cast(learning_rate, "float32"), ops.zeros((), "float32")
        scalars = {"rate": rate, "power_1": zero, "power_2": zero}
        if self.bias_correction:
            step = ops.cast(self.iterations + 1, "float32")
            scalars["power_1"] = ops.power(ops.cast(self.beta_1, "float32"), step)
            scalars["power_2"] = ops.power(ops.cast(self.beta_2, "float32"), step)
        return scalars | {"scale": ops.sqrt(1 - scalars["power_2"])}

    def update_step(self, gradient, variable, learning_rate):
        """`learning_rate` is a dict of `_shared_scalars`."""
        index = self._get_variable_index(variable)
        scalars = {name: ops.cast(x, variable.dtype) for name, x in learning_rate.items()}
        if self.weight_decay and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * (scalars["rate"] * self.weight_decay))
        update = self._fused_update if ON_TENSORFLOW else self._generic_update
        moments = self._momentums[index], self._velocities[index]
        update(ops.cast(gradient, variable.dtype), variable, scalars, *moments)

    def _generic_update(self, gradient, variable, scalars, m, v):
        scale = scalars["scale"]
        rate = scalars["rate"] * scale / (1 - scalars["power_1"])
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        self.assign_sub(variable, rate * m / (ops.sqrt(v) + self.epsilon * scale))

    def _fused_update(self, gradient, variable, scalars, m, v):
        """The same in one pass over the four arrays."""
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.value.handle,
            v=v.value.handle,
            beta1_power=scalars["power_1"],
            beta2_power=scalars["power_2"],
            lr=scalars["rate"],
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            # The operation corrects v outside the root, and so leaves epsilon to grow with it.
            epsilon=scalars["scale"] * self.epsilon,
            grad=gradient,
        )

    def get_config(self):
        config = {**super().get_config(), "bias_correction": self.bias_correction}
        del config["amsgrad"]
        return config


def is_exempt(variable) -> bool:
    """Whether BERT's recipe leaves a variable undecayed: LayerNorm weights and biases."""
    return len(variable.shape) <= 1 or variable.name == "bias"
