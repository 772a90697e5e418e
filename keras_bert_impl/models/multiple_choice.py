"""Multiple choice (Devlin et al. 2019, section 4.4: SWAG).

Shapes: B batch, C choices, S sequence, H hidden.
"""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import ClassificationHead
from keras_bert_impl.models.encoder import BertEncoder, check_inputs
from keras_bert_impl.models.pretrained import Pretrained
from keras_bert_impl.trainer import Trainer

__all__ = ["BertMultipleChoice"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertMultipleChoice(Pretrained, Trainer):
    """logits[c] = w . Dropout(pooled_output of choice c) + b: which choice goes on with a text.

    Each choice is a row `[CLS] text [SEP] choice [SEP]`; the softmax is over the choices of an
    example, any number of them. Padding: as in `BertEncoder`.

    Args:
        config: a `BertConfig` (or the dict of one).
        dropout: on the pooled output, in [0, 1); default: the config's `hidden_dropout_prob`.

    Call arguments: as `BertEncoder`, with an axis more: a dict of `token_ids`, `segment_ids`,
        `padding_mask`, int32 [B, C, S].

    Returns:
        logits, float32 [B, C].

    >>> import numpy as np
    >>> config = BertConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> logits = BertMultipleChoice(config)({"token_ids": np.array([[[2, 7, 3], [2, 8, 3]]])})
    >>> tuple(logits.shape)
    (1, 2)
    """

    input_axes = ("batch", "choices", "sequence")

    def __init__(self, config: BertConfig | dict, dropout: float | None = None, **kwargs):
        super().__init__(**kwargs)
        self.encoder = BertEncoder(config, dtype=self.dtype_policy, name="encoder")
        self.config = self.encoder.config
        self.dropout_rate = self.config.hidden_dropout_prob if dropout is None else dropout
        self.head = ClassificationHead(
            1,
            self.dropout_rate,
            self.config.initializer_range,
            dtype=self.dtype_policy,
            name="head",
        )
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; the shapes follow from the config alone."""
        self.head.build((None, self.config.hidden_size))

    def compile(self, optimizer="rmsprop", loss="auto", metrics="auto", **kwargs):
        """As `keras.Model.compile`.

        Args:
            optimizer: as in Keras.
            loss: "auto" is the cross-entropy of the right choice, int32 [B].
            metrics: "auto" is accuracy.
            **kwargs: as in Keras.
        """
        if loss == "auto":
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        metrics = ["accuracy"] if metrics == "auto" else metrics
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def call(self, inputs, training=False):
        inputs = check_inputs(inputs, self.input_axes)
        batch, choices, length = ops.shape(inputs["token_ids"])
        rows = {name: ops.reshape(x, (-1, length)) for name, x in inputs.items()}
        encoded = self.encoder(rows, training=training, pooled_only=True)
        logits = self.head(encoded["pooled_output"], training=training)  # [B * C, 1]
        return ops.reshape(logits, (batch, choices))

    def compute_output_spec(self, inputs, training=False):
        inputs = check_inputs(inputs, self.input_axes)
        return keras.KerasTensor(inputs["token_ids"].shape[:2], dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "dropout": self.dropout_rate,
        }
