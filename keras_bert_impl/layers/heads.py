"""What is put on top of the encoder.

Shapes: B batch, S sequence, H hidden, C classes, V vocabulary.
"""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.embeddings import truncated_normal
from keras_bert_impl.layers.normalization import LayerNorm
from keras_bert_impl.layers.transformer import activate

__all__ = ["ClassificationHead", "MaskedLMHead", "Pooler"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class Pooler(keras.layers.Layer):
    """tanh(W x[0] + b): the vector of [CLS] (`modeling.py`, pooled_output).

    Shapes: float [B, S, H] -> float [B, H].
    """

    def __init__(self, initializer_range: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.initializer_range = initializer_range

    def build(self, input_shape):
        self.dense = keras.layers.Dense(
            input_shape[-1],
            activation="tanh",
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((None, input_shape[-1]))

    def call(self, sequence_output):
        return self.dense(sequence_output[:, 0])

    def compute_output_shape(self, input_shape):
        return (input_shape[0], input_shape[-1])

    def get_config(self):
        return {**super().get_config(), "initializer_range": self.initializer_range}


@keras.saving.register_keras_serializable("keras_bert_impl")
class ClassificationHead(keras.layers.Layer):
    """W Dropout(x) + b (Devlin et al. 2019, section 4.1): float32 logits.

    Args:
        num_outputs: C.
        dropout: rate in [0, 1). BERT: 0.1.
        initializer_range: standard deviation of the truncated normal initialiser. BERT: 0.02.

    Shapes: float [B, H] -> float32 [B, C].
    """

    def __init__(
        self, num_outputs: int, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_outputs = num_outputs
        self.dropout_rate = dropout
        self.initializer_range = initializer_range

    def build(self, input_shape):
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            self.num_outputs,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype="float32",
            name="dense",
        )
        self.dense.build((None, input_shape[-1]))

    def call(self, x, training=False):
        return self.dense(self.dropout(x, training=training))

    def compute_output_spec(self, x, training=False):
        return keras.KerasTensor((*x.shape[:-1], self.num_outputs), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable("keras_bert_impl")
class MaskedLMHead(keras.layers.Layer):
    """LayerNorm(activation(W x + b)) E' + c: float32 logits over the vocabulary.

    E is the table of the token embeddings, given in the call, so that the two are one weight.

    Args:
        vocab_size: V. BERT: 30522.
        activation: as `EncoderBlock`; that of the config.
        epsilon: of the LayerNorm. BERT: 1e-12.
        initializer_range: standard deviation of the truncated normal initialiser. BERT: 0.02.

    Shapes: x float [R, H], table float [V, H] -> float32 [R, V].

    Source: google-research/bert `run_pretraining.py`, get_masked_lm_output.
    """

    def __init__(
        self,
        vocab_size: int,
        activation: str = "gelu_tanh",
        epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.activation = activation
        self.epsilon = epsilon
        self.initializer_range = initializer_range

    def build(self, input_shape):
        width = input_shape[-1]
        self.dense = keras.layers.Dense(
            width,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((None, width))
        self.norm = LayerNorm(self.epsilon, dtype=self.dtype_policy, name="norm")
        self.norm.build((None, width))
        # Added to float32 logits in mixed precision too.
        self.bias = self.add_weight(
            shape=(self.vocab_size,), initializer="zeros", autocast=False, name="bias"
        )

    def call(self, x, table, training=False):
        hidden = activate(self.dense(x), self.activation, training)
        hidden = self.norm(hidden, training=training)
        logits = ops.matmul(hidden, ops.transpose(table))
        return ops.cast(logits, "float32") + self.bias

    def compute_output_spec(self, x, table, training=False):
        return keras.KerasTensor((*x.shape[:-1], self.vocab_size), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "activation": self.activation,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
        }
