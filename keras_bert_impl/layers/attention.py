"""Multi-head self-attention (Vaswani et al. 2017, section 3.2; `modeling.py`, attention_layer).

Shapes: B batch, S sequence, Q queries, N heads, D head size, H = N * D hidden.
"""

from __future__ import annotations

import math

import keras
from keras import ops

from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.embeddings import truncated_normal

__all__ = ["SelfAttention", "attention_bias"]

# Added to the scores of padding, as in Google's `modeling.py`: exp() of it is 0 in every float
# type, it is representable in float16, and a row that is all padding stays finite.
PADDING_BIAS = -10000.0


def attention_bias(padding_mask, dtype):
    """Additive bias of the scores: int [B, S] (1 = real token) -> float [B, 1, 1, S].

    0 at real tokens, -10000 at padding.
    """
    mask = ops.cast(ops.expand_dims(ops.expand_dims(padding_mask, 1), 1), dtype)
    return (1.0 - mask) * PADDING_BIAS


@keras.saving.register_keras_serializable("keras_bert_impl")
class SelfAttention(keras.layers.Layer):
    """softmax(Q K^T / sqrt(D) + bias) V for each head, then a projection of the N heads.

    Padding: keys where the bias is -10000 get weight 0; queries at padding give finite vectors
    that nobody reads.

    Args:
        num_heads: N; must divide the width of the input. BERT: 12.
        dropout: on the attention weights, in [0, 1). BERT: 0.1.
        initializer_range: standard deviation of the truncated normal initialiser. BERT: 0.02.

    Shapes: x float [B, S, H], bias float [B, 1, 1, S] or None -> float [B, S, H]; with
    `return_weights=True` also the weights before dropout, float [B, N, S, S]. With `queries`
    float [B, Q, H], the vectors that attend to those of x: Q stands for the S of the queries.
    """

    def __init__(
        self, num_heads: int, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.dropout_rate = dropout
        self.initializer_range = initializer_range

    def build(self, input_shape):
        width = input_shape[-1]
        self.head_size = width // self.num_heads
        for name in ("query", "key", "value", "projection"):
            dense = keras.layers.Dense(
                width,
                kernel_initializer=truncated_normal(self.initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )
            dense.build((None, None, width))
            setattr(self, name, dense)
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")

    def call(self, x, bias=None, training=False, return_weights=False, queries=None):
        queries = x if queries is None else queries
        batch, length, width = ops.shape(queries)

        def heads_of(projection, x):
            # [B * S, H]: a product of matrices takes its bias along
            rows = projection(ops.reshape(x, (-1, width)))
            heads = ops.reshape(rows, (batch, ops.shape(x)[1], self.num_heads, self.head_size))
            return ops.transpose(heads, (0, 2, 1, 3))

        query = heads_of(self.query, queries)
        key, value = heads_of(self.key, x), heads_of(self.value, x)
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, Q, S]
        scores = scores * (1.0 / math.sqrt(self.head_size))
        if bias is not None:
            scores = scores + bias
        weights = ops.softmax(scores, axis=-1)
        heads = ops.matmul(self.dropout(weights, training=training), value)  # [B, N, Q, D]
        heads = ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, width))
        output = ops.reshape(self.projection(heads), (batch, length, width))
        return (output, weights) if return_weights else output

    def compute_output_spec(self, x, bias=None, training=False, return_weights=False, queries=None):
        queries = x if queries is None else queries
        output = keras.KerasTensor(queries.shape, dtype=self.compute_dtype)
        if not return_weights:
            return output
        shape = (x.shape[0], self.num_heads, queries.shape[1], x.shape[1])
        return output, keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
        }
