"""Extractive question answering (Devlin et al. 2019, sections 4.2 and 4.3).

Shapes: B batch, S sequence, H hidden.
"""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import ClassificationHead
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrained import Pretrained
from keras_bert_impl.trainer import Trainer

__all__ = ["BertSpanPredictor"]

# Of a position that is padding: exp() of it is 0, and sums of two are still finite.
PADDING_LOGIT = -1e9


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertSpanPredictor(Pretrained, Trainer):
    """Where in the second segment the answer to the first starts and ends.

    start[i] = s . sequence_output[i] + b and end[i] = e . sequence_output[i] + c, with learned
    vectors s and e: the two outputs of one projection, `head.dense`. Position 0, [CLS], stands
    for "no answer" in SQuAD 2.0.

    Padding: the logits of a padded position are -1e9, so no position gets probability from it and
    the loss does not depend on how far a row is padded. Positions of the question are not masked,
    as in Google's `run_squad.py`.

    Args:
        config: a `BertConfig` (or the dict of one).

    Call arguments: as `BertEncoder`: a dict of `token_ids`, `segment_ids`, `padding_mask`,
        int32 [B, S].

    Returns:
        dict: `start` and `end` logits, float32 [B, S] each.

    >>> import numpy as np
    >>> config = BertConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> outputs = BertSpanPredictor(config)({"token_ids": np.array([[2, 7, 3, 9, 3]])})
    >>> tuple(outputs["start"].shape), tuple(outputs["end"].shape)
    ((1, 5), (1, 5))

    Source: google-research/bert `run_squad.py`, create_model.
    """

    def __init__(self, config: BertConfig | dict, **kwargs):
        super().__init__(**kwargs)
        self.encoder = BertEncoder(config, dtype=self.dtype_policy, name="encoder")
        self.config = self.encoder.config
        # No loss reaches the pooler.
        self.encoder.pooler.trainable = False
        self.head = ClassificationHead(
            2, 0.0, self.config.initializer_range, dtype=self.dtype_policy, name="head"
        )
        # It may take a sequence with a mask, which is applied to its logits here.
        self.head.supports_masking = True
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; the shapes follow from the config alone."""
        self.head.build((None, self.config.hidden_size))

    def compile(
        self, optimizer="rmsprop", loss="auto", metrics="auto", loss_weights="auto", **kwargs
    ):
        """As `keras.Model.compile`; fit with targets `start` and `end`, int32 [B].

        Args:
            optimizer: as in Keras.
            loss: "auto" is the cross-entropy of both positions.
            metrics: "auto" is `start_accuracy` and `end_accuracy`.
            loss_weights: "auto" is 1/2 each with the loss "auto": the mean of the two.
            **kwargs: as in Keras.
        """
        if loss_weights == "auto":
            loss_weights = {"start": 0.5, "end": 0.5} if loss == "auto" else None
        if loss == "auto":
            crossentropy = keras.losses.SparseCategoricalCrossentropy
            loss = {name: crossentropy(from_logits=True) for name in ("start", "end")}
        if metrics == "auto":
            accuracy = keras.metrics.SparseCategoricalAccuracy
            metrics = {name: [accuracy("accuracy")] for name in ("start", "end")}
        super().compile(
            optimizer=optimizer, loss=loss, metrics=metrics, loss_weights=loss_weights, **kwargs
        )

    def call(self, inputs, training=False):
        x = self.encoder(inputs, training=training)["sequence_output"]
        logits = self.head(x, training=training)  # [B, S, 2]
        start, end = logits[..., 0], logits[..., 1]
        mask = inputs.get("padding_mask")
        if mask is not None:
            real = ops.cast(mask, "bool")
            start, end = (ops.where(real, x, PADDING_LOGIT) for x in (start, end))
        return {"start": start, "end": end}

    def compute_output_spec(self, inputs, training=False):
        shape = inputs["token_ids"].shape
        return {name: keras.KerasTensor(shape, dtype="float32") for name in ("start", "end")}

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
