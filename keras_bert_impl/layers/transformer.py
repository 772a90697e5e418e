"""One encoder block (Devlin et al. 2019, section 3; `modeling.py`, transformer_model).

Shapes: B batch, S sequence, Q queries, H hidden, F intermediate, N heads.
"""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.layers import backend
from keras_bert_impl.layers.attention import SelfAttention
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.embeddings import truncated_normal
from keras_bert_impl.layers.normalization import LayerNorm

__all__ = ["EncoderBlock", "activate"]


def activate(x, name: str, training: bool = False):
    """The activation `hidden_act` of a config, applied to a tensor of any shape."""
    if name.startswith("gelu_"):
        return backend.gelu(x, approximate=name == "gelu_tanh", training=training)
    return keras.activations.get(name)(x)


@keras.saving.register_keras_serializable("keras_bert_impl")
class EncoderBlock(keras.layers.Layer):
    """Self-attention, then a feed-forward layer, each with a residual sum and a LayerNorm.

    post: x = LN(x + Dropout(Attention(x))); x = LN(x + Dropout(FF(x)))
    pre:  x = x + Dropout(Attention(LN(x)));  x = x + Dropout(FF(LN(x)))

    Padding: as in `SelfAttention`; everything else works on each position alone.

    Args:
        num_heads: N. BERT: 12.
        intermediate_size: F. BERT: 3072.
        activation: "gelu_tanh", "gelu_erf", "relu", "tanh" or "linear".
        dropout: on the two residual branches, in [0, 1). BERT: 0.1.
        attention_dropout: on the attention weights, in [0, 1). BERT: 0.1.
        epsilon: of the LayerNorms. BERT: 1e-12.
        initializer_range: standard deviation of the truncated normal initialiser. BERT: 0.02.
        norm_position: "post" (BERT) or "pre".

    Shapes: x float [B, S, H], bias float [B, 1, 1, S] or None -> float [B, S, H]; with
    `return_weights=True` also the attention weights, float [B, N, S, S]. With `queries` float
    [B, Q, H], the rows of x whose outputs are wanted, these alone are computed: Q stands for S.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_size: int,
        *,
        activation: str = "gelu_tanh",
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        norm_position: str = "post",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._config = {
            "num_heads": num_heads,
            "intermediate_size": intermediate_size,
            "activation": activation,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "epsilon": epsilon,
            "initializer_range": initializer_range,
            "norm_position": norm_position,
        }
        self.activation = activation
        self.norm_position = norm_position
        self.num_heads = num_heads

    def build(self, input_shape):
        config, policy, width = self._config, self.dtype_policy, input_shape[-1]
        initializer_range = config["initializer_range"]
        self.attention = SelfAttention(
            self.num_heads,
            config["attention_dropout"],
            initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention.build(input_shape)
        for name, inputs, units in (
            ("intermediate", width, config["intermediate_size"]),
            ("output_projection", config["intermediate_size"], width),
        ):
            dense = keras.layers.Dense(
                units,
                kernel_initializer=truncated_normal(initializer_range),
                dtype=policy,
                name=name,
            )
            dense.build((None, None, inputs))
            setattr(self, name, dense)
        for name in ("attention_norm", "output_norm"):
            norm = LayerNorm(config["epsilon"], dtype=policy, name=name)
            norm.build(input_shape)
            setattr(self, name, norm)
        self.attention_dropout = Dropout(config["dropout"], dtype=policy, name="attention_dropout")
        self.output_dropout = Dropout(config["dropout"], dtype=policy, name="output_dropout")

    def call(self, x, bias=None, training=False, return_weights=False, queries=None):
        pre = self.norm_position == "pre"
        rows = x if queries is None else queries
        if pre:
            x = self.attention_norm(x, training=training)
            if queries is not None:
                queries = self.attention_norm(queries, training=training)
        attended, weights = self.attention(
            x, bias, training=training, return_weights=True, queries=queries
        )
        x = rows + self.attention_dropout(attended, training=training)
        x = x if pre else self.attention_norm(x, training=training)

        hidden = self._feed_forward(
            self.output_norm(x, training=training) if pre else x, training=training
        )
        x = x + self.output_dropout(hidden, training=training)
        x = x if pre else self.output_norm(x, training=training)
        return (x, weights) if return_weights else x

    def _feed_forward(self, x, training):
        rows = ops.reshape(x, (-1, x.shape[-1]))  # [B * S, H]
        hidden = activate(self.intermediate(rows), self.activation, training)  # [B * S, F]
        return ops.reshape(self.output_projection(hidden), ops.shape(x))

    def compute_output_spec(self, x, bias=None, training=False, return_weights=False, queries=None):
        return self.attention.compute_output_spec(x, return_weights=return_weights, queries=queries)

    def get_config(self):
        return {**super().get_config(), **self._config}
