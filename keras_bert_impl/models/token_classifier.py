"""Token classification: entities, parts of speech, segmentation (Devlin et al. 2019, section 5.3).

Shapes: B batch, S sequence, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.label_model import LabelModel

__all__ = ["BertTokenClassifier"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertTokenClassifier(LabelModel):
    """logits[i] = W Dropout(sequence_output[i]) + b, for each token.

    Which tokens have a label is told by the sample weights of the loss, [B, S]: 1 at the first
    piece of each word and 0 elsewhere. Padding never counts. The loss of a batch in which all
    weights are 0 is 0.

    Padding: as in `BertEncoder`; the logits of a token do not depend on it, and those of padded
    positions mean nothing.

    Args:
        config: a `BertConfig` (or the dict of one).
        num_classes: C, at least 2.
        dropout: on the sequence output, in [0, 1); default: the config's `hidden_dropout_prob`.
        labels: the C tags in the order of the logits.

    Call arguments: as `BertEncoder`: a dict of `token_ids`, `segment_ids`, `padding_mask`,
        int32 [B, S].

    Returns:
        logits, float32 [B, S, C].

    Raises:
        ValueError: `num_classes` is below 2, or `labels` does not name each class once.

    >>> import numpy as np
    >>> config = BertConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> logits = BertTokenClassifier(config, num_classes=5)({"token_ids": np.array([[2, 7, 3]])})
    >>> tuple(logits.shape)
    (1, 3, 5)
    """

    def __init__(
        self,
        config: BertConfig | dict,
        num_classes: int,
        dropout: float | None = None,
        labels: Sequence[str] | None = None,
        **kwargs,
    ):
        super().__init__(config, num_classes, dropout, labels, **kwargs)
        # No loss reaches the pooler.
        self.encoder.pooler.trainable = False
        # So that Keras hands on the mask of the encoder, which is the weight of padding: 0.
        self.head.supports_masking = True

    def compile(
        self, optimizer="rmsprop", loss="auto", metrics="auto", weighted_metrics=None, **kwargs
    ):
        """As `keras.Model.compile`, with the loss that fits logits.

        Args:
            optimizer: as in Keras.
            loss: "auto" is the cross-entropy of integer tags. A crossentropy given by name is
                taken on logits, which is what this model returns.
            metrics: "auto" is accuracy over the tokens of weight 1.
            weighted_metrics: as in Keras; metrics that leave tokens of weight 0 out.
            **kwargs: as in Keras.

        Raises:
            ValueError: a crossentropy object or function with `from_logits=False`.
        """
        if metrics == "auto":
            metrics, weighted_metrics = None, weighted_metrics or ["accuracy"]
        super().compile(
            optimizer, loss, metrics=metrics, weighted_metrics=weighted_metrics, **kwargs
        )

    def fit(self, *args, **kwargs):
        """As `keras.Model.fit`; `class_weight` is refused, which Keras takes per row only."""
        if kwargs.get("class_weight") is not None:
            raise ValueError(
                "class_weight is for one class a row, and tags are one a token: give their "
                "weights as sample_weight [batch, sequence]"
            )
        return super().fit(*args, **kwargs)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """As in Keras, of which the masks need weights [B, S]."""
        if sample_weight is not None and len(sample_weight.shape) == 1:
            ones = ops.ones_like(y, dtype=sample_weight.dtype)
            sample_weight = ops.expand_dims(sample_weight, -1) * ones
        return super().compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def call(self, inputs, training=False):
        sequence = self.encoder(inputs, training=training)["sequence_output"]
        return self.head(sequence, training=training)

    def compute_output_spec(self, inputs, training=False):
        shape = (*inputs["token_ids"].shape, self.num_classes)
        return keras.KerasTensor(shape, dtype="float32")
