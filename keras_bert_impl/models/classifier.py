"""Sequence classification on [CLS] (Devlin et al. 2019, section 4.1).

Shapes: B batch, S sequence, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.label_model import LabelModel

__all__ = ["BertClassifier"]

# What the logits are for -> the loss.
_PROBLEMS = {
    "classification": "sparse_categorical_crossentropy",
    "multi_label": "binary_crossentropy",
    "regression": "mean_squared_error",
}


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertClassifier(LabelModel):
    """logits = W Dropout(pooled_output) + b, for single texts and for pairs.

    Padding: as in `BertEncoder`; the logits of a row do not depend on it.

    Args:
        config: a `BertConfig` (or the dict of one).
        num_classes: C: at least 2; with `problem="regression"` 1 or more.
        dropout: on the pooled output, in [0, 1); default: the config's `hidden_dropout_prob`.
        labels: the C label names in the order of the logits.
        problem: what the logits are for: ``classification`` (one of C classes; softmax),
            ``multi_label`` (any of C labels; sigmoid) or ``regression`` (they are the scores). It
            decides what `compile` takes for loss and metrics.

    Call arguments: as `BertEncoder`: a dict of `token_ids`, `segment_ids`, `padding_mask`,
        int32 [B, S].

    Returns:
        logits, float32 [B, C].

    Raises:
        ValueError: `num_classes` is too small, `problem` is another word, or `labels` does not name
            each class once.

    >>> import numpy as np
    >>> config = BertConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> logits = BertClassifier(config, num_classes=3)({"token_ids": np.array([[2, 7, 3]])})
    >>> tuple(logits.shape)
    (1, 3)
    """

    least_classes = 1

    def __init__(
        self,
        config: BertConfig | dict,
        num_classes: int,
        dropout: float | None = None,
        labels: Sequence[str] | None = None,
        problem: str = "classification",
        **kwargs,
    ):
        if problem not in _PROBLEMS:
            raise ValueError(f"problem must be one of {', '.join(_PROBLEMS)}, got {problem!r}")
        if problem != "regression" and num_classes < 2:
            raise ValueError(f"num_classes must be at least 2, got {num_classes}")
        super().__init__(config, num_classes, dropout, labels, **kwargs)
        self.problem = problem

    def compile(self, optimizer="rmsprop", loss="auto", metrics="auto", **kwargs):
        """As `keras.Model.compile`, with the loss that fits logits.

        Args:
            optimizer: as in Keras.
            loss: "auto" is the cross-entropy of integer labels [B], the binary cross-entropy of
                0/1 labels [B, C], or the squared error of scores [B, C], as `problem` says. A
                crossentropy given by name is taken on logits, which is what this model returns.
            metrics: "auto" is accuracy, or for regression none beyond the loss.
            **kwargs: as in Keras.

        Raises:
            ValueError: a crossentropy object or function with `from_logits=False`.
        """
        if metrics == "auto" and self.problem == "multi_label":
            metrics = [keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)]
        elif metrics == "auto" and self.problem == "regression":
            metrics = []
        loss = _PROBLEMS[self.problem] if loss == "auto" else loss
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def call(self, inputs, training=False):
        encoded = self.encoder(inputs, training=training, pooled_only=True)
        return self.head(encoded["pooled_output"], training=training)

    def compute_output_spec(self, inputs, training=False):
        batch = inputs["token_ids"].shape[0]
        return keras.KerasTensor((batch, self.num_classes), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "problem": self.problem}

    @classmethod
    def _settings_of(cls, checkpoint) -> dict:
        # A Hugging Face head of one output is one for regression.
        found = "regression" if checkpoint.num_classes == 1 else "classification"
        return {"problem": getattr(checkpoint, "settings", {}).get("problem", found)}
