"""Token + segment + position embeddings (Devlin et al. 2019, section 3, figure 2).

Shapes: B batch, S sequence, H hidden, V vocabulary, T segments, M longest sequence.
"""

from __future__ import annotations

import keras
import numpy as np
from keras import ops

from keras_bert_impl.layers import backend
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.normalization import LayerNorm

__all__ = ["BertEmbeddings", "PositionEmbedding", "SegmentEmbedding", "sinusoidal_table"]


def truncated_normal(stddev: float):
    return keras.initializers.TruncatedNormal(stddev=stddev)


def sinusoidal_table(length: int, width: int) -> np.ndarray:
    """PE[p, 2i] = sin(p / 10000^(2i/H)), PE[p, 2i+1] = cos(same): float32 [length, width].

    Source: Vaswani et al. 2017, section 3.5.
    """
    positions = np.arange(length)[:, None]
    even = np.arange(0, width, 2)[None, :]
    angles = positions / np.power(10000.0, even / width)
    table = np.zeros((length, width), "float32")
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : width // 2]
    return table


@keras.saving.register_keras_serializable("keras_bert_impl")
class SegmentEmbedding(keras.layers.Layer):
    """One vector a segment, looked up by a product with one-hot rows.

    Args:
        num_segments: T. BERT: 2.
        width: H.
        initializer_range: standard deviation of the truncated normal initialiser.

    Shapes: segment_ids int32 [B, S] -> float [B, S, H].
    """

    def __init__(self, num_segments: int, width: int, initializer_range: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_segments = num_segments
        self.width = width
        self.initializer_range = initializer_range

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            shape=(self.num_segments, self.width),
            initializer=truncated_normal(self.initializer_range),
            name="embeddings",
        )

    def call(self, segment_ids):
        table = ops.convert_to_tensor(self.embeddings)
        segment_ids = backend.check_below(segment_ids, self.num_segments, "segment_ids")
        return ops.matmul(ops.one_hot(segment_ids, self.num_segments, dtype=table.dtype), table)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "num_segments": self.num_segments,
            "width": self.width,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable("keras_bert_impl")
class PositionEmbedding(keras.layers.Layer):
    """Learned or sinusoidal vectors for the positions 0 .. S-1.

    Args:
        max_length: M, rows of the table. BERT: 512.
        width: H.
        kind: "learned" (BERT) or "sinusoidal" (Vaswani et al. 2017, not trained).
        initializer_range: standard deviation of the truncated normal initialiser.

    Shapes: any tensor [B, S, ...] -> float [S, H].
    Raises: ValueError where S is known and longer than M; otherwise the step fails.
    """

    def __init__(self, max_length, width, kind="learned", initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.max_length = max_length
        self.width = width
        self.kind = kind
        self.initializer_range = initializer_range

    def build(self, input_shape=None):
        if self.kind == "learned":
            self.embeddings = self.add_weight(
                shape=(self.max_length, self.width),
                initializer=truncated_normal(self.initializer_range),
                name="embeddings",
            )

    def call(self, inputs):
        if inputs.shape[1] is not None and inputs.shape[1] > self.max_length:
            raise ValueError(
                f"a sequence of {inputs.shape[1]} tokens is longer than "
                f"max_position_embeddings ({self.max_length}); truncate it"
            )
        if self.kind == "learned":
            table = ops.convert_to_tensor(self.embeddings)
        else:
            table = ops.convert_to_tensor(
                sinusoidal_table(self.max_length, self.width), dtype=self.compute_dtype
            )
        length = ops.shape(inputs)[1]
        if inputs.shape[1] is None:
            length = backend.check_length(length, self.max_length)
        return table[:length]

    def compute_output_shape(self, input_shape):
        return (input_shape[1], self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "width": self.width,
            "kind": self.kind,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertEmbeddings(keras.layers.Layer):
    """Dropout(LayerNorm(token + segment + position)).

    Padding: embedded like any token; masks are the business of attention.

    Args:
        vocab_size: V. BERT: 30522.
        width: H. BERT: 768.
        max_length: M. BERT: 512.
        num_segments: T. BERT: 2.
        position_kind: "learned" or "sinusoidal".
        dropout: rate in [0, 1). BERT: 0.1.
        epsilon: of the LayerNorm. BERT: 1e-12.
        initializer_range: standard deviation of the truncated normal initialiser. BERT: 0.02.

    Shapes: token_ids, segment_ids int32 [B, S] -> float [B, S, H].

    Source: google-research/bert `modeling.py`, `embedding_lookup`, `embedding_postprocessor`.
    """

    def __init__(
        self,
        vocab_size: int,
        width: int,
        *,
        max_length: int = 512,
        num_segments: int = 2,
        position_kind: str = "learned",
        dropout: float = 0.1,
        epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._config = {
            "vocab_size": vocab_size,
            "width": width,
            "max_length": max_length,
            "num_segments": num_segments,
            "position_kind": position_kind,
            "dropout": dropout,
            "epsilon": epsilon,
            "initializer_range": initializer_range,
        }
        self.vocab_size = vocab_size
        self.width = width
        policy = self.dtype_policy
        self.token = keras.layers.Embedding(
            vocab_size,
            width,
            embeddings_initializer=truncated_normal(initializer_range),
            dtype=policy,
            name="token",
        )
        self.segment = SegmentEmbedding(
            num_segments, width, initializer_range, dtype=policy, name="segment"
        )
        self.position = PositionEmbedding(
            max_length, width, position_kind, initializer_range, dtype=policy, name="position"
        )
        self.norm = LayerNorm(epsilon, dtype=policy, name="norm")
        self.dropout = Dropout(dropout, dtype=policy, name="dropout")
        # A function of the embeddings of tokens [B, S, H] that adversarial training sets.
        self.change_tokens = None

    def build(self, input_shape=None):
        self.token.build((None, None))
        self.segment.build((None, None))
        self.position.build((None, None))
        self.norm.build((None, None, self.width))

    def call(self, token_ids, segment_ids=None, training=False):
        token_ids = backend.check_below(token_ids, self.vocab_size, "token_ids (see vocab_size)")
        if segment_ids is None:
            segment_ids = ops.zeros_like(token_ids)
        x = self.token(token_ids)  # [B, S, H]
        if self.change_tokens is not None:
            x = self.change_tokens(x)
        x = x + self.segment(segment_ids)
        x = x + self.position(token_ids)
        return self.dropout(self.norm(x, training=training), training=training)

    def compute_output_shape(self, input_shape, *args):
        return (*input_shape, self.width)

    def get_config(self):
        return {**super().get_config(), **self._config}
