"""LAMB (You et al. 2020), for large batches in pre-training."""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.trainer import ClipAfterReduction
from keras_bert_impl.training.optimizers import is_exempt

__all__ = ["Lamb"]


@keras.saving.register_keras_serializable("keras_bert_impl", name="Lamb")
class Lamb(ClipAfterReduction, keras.optimizers.Optimizer):
    """Adam whose step in each variable has a length in proportion to the variable's norm.

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
    u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + wd w
    w = w - lr (|w| / |u|) u          with the ratio 1 where |w| or |u| is 0

    LayerNorm weights and biases (every vector, and every variable that its layer calls `bias`)
    are not decayed, and their ratio is 1. The gradient is clipped by its global norm after the
    sum over replicas.

    Args:
        learning_rate: float or schedule. NVIDIA's BERT: 6e-3 for batches of 65536 at 128 tokens,
            4e-3 for 32768 at 512 tokens.
        weight_decay: BERT: 0.01.
        beta_1, beta_2: decay rates of the moments. BERT: 0.9, 0.999.
        epsilon: BERT: 1e-6.
        global_clipnorm: largest norm of the whole gradient; None: no clipping. BERT: 1.0.
        bias_correction: whether the moments are divided by 1 - b^t.
        **kwargs: as `keras.optimizers.Optimizer`.

    Source: You et al. 2020, algorithm 2 (with phi the identity); NVIDIA DeepLearningExamples
    `TensorFlow2/LanguageModeling/BERT`, LAMB.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        global_clipnorm: float | None = 1.0,
        bias_correction: bool = True,
        name: str = "lamb",
        **kwargs,
    ):
        # Keras' own decay would act outside the trust ratio.
        super().__init__(
            learning_rate, name=name, weight_decay=None, global_clipnorm=global_clipnorm, **kwargs
        )
        self.decay = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction

    def build(self, variables):
        """Creates the moments; called by Keras."""
        if self.built:
            return
        super().build(variables)
        self._adapts = [not is_exempt(v) for v in variables]
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        gradient = ops.cast(gradient, variable.dtype)
        rate = ops.cast(learning_rate, variable.dtype)
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        mean, square = ops.convert_to_tensor(m), ops.convert_to_tensor(v)
        if self.bias_correction:
            step = ops.cast(self.iterations + 1, variable.dtype)
            mean = mean / (1 - ops.power(ops.cast(self.beta_1, variable.dtype), step))
            square = square / (1 - ops.power(ops.cast(self.beta_2, variable.dtype), step))
        update = mean / (ops.sqrt(square) + self.epsilon)
        if self._adapts[index]:
            update = update + self.decay * variable
            update = update * _trust_ratio(variable, update)
        self.assign_sub(variable, rate * update)

    def get_config(self):
        return {
            **super().get_config(),
            "weight_decay": self.decay,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
        }


def _trust_ratio(variable, update):
    lengths = [ops.sqrt(ops.sum(ops.square(x))) for x in (variable, update)]
    is_positive = ops.logical_and(lengths[0] > 0, lengths[1] > 0)
    return ops.where(is_positive, ops.divide_no_nan(*lengths), 1.0)
