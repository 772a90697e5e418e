"""What classifiers of texts and of tokens share: an encoder, one projection, the loss on logits.

Shapes: C classes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import ClassificationHead
from keras_bert_impl.losses import WeightedMean
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrained import Pretrained
from keras_bert_impl.trainer import Trainer

__all__ = ["LabelModel"]

_logger = logging.getLogger(__name__)
_SHOWN_LABELS = 10

# Function -> the class that takes it on logits.
_LOGIT_LOSSES = {
    keras.losses.binary_crossentropy: keras.losses.BinaryCrossentropy,
    keras.losses.binary_focal_crossentropy: keras.losses.BinaryFocalCrossentropy,
    keras.losses.categorical_crossentropy: keras.losses.CategoricalCrossentropy,
    keras.losses.categorical_focal_crossentropy: keras.losses.CategoricalFocalCrossentropy,
    keras.losses.sparse_categorical_crossentropy: keras.losses.SparseCategoricalCrossentropy,
}


class LabelModel(Pretrained, Trainer):
    """An encoder with W Dropout(x) + b on its outputs; subclasses say on which.

    Args:
        config: a `BertConfig` (or the dict of one).
        num_classes: C, at least 2.
        dropout: before the projection, in [0, 1); default: the config's `hidden_dropout_prob`.
        labels: the C label names in the order of the logits.

    Raises:
        ValueError: `num_classes` is below 2, or `labels` does not name each class once.
    """

    least_classes = 2

    def __init__(
        self,
        config: BertConfig | dict,
        num_classes: int,
        dropout: float | None = None,
        labels: Sequence[str] | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_classes < self.least_classes:
            raise ValueError(
                f"num_classes must be at least {self.least_classes}, got {num_classes}"
            )
        if labels is not None and not len(labels) == len(set(labels)) == num_classes:
            raise ValueError(f"expected {num_classes} different labels, got {list(labels)}")
        self.encoder = BertEncoder(config, dtype=self.dtype_policy, name="encoder")
        self.config = self.encoder.config
        self.num_classes = num_classes
        self.labels = None if labels is None else tuple(labels)
        self.dropout_rate = self.config.hidden_dropout_prob if dropout is None else dropout
        self.head = ClassificationHead(
            num_classes,
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
        """As `keras.Model.compile`, with the loss that fits logits.

        Args:
            optimizer: as in Keras.
            loss: "auto" is the cross-entropy of integer labels. A crossentropy given by name
                is taken on logits, which is what this model returns.
            metrics: "auto" is accuracy.
            **kwargs: as in Keras.

        Raises:
            ValueError: a crossentropy object or function with `from_logits=False`.
        """
        loss = "sparse_categorical_crossentropy" if loss == "auto" else loss
        loss = keras.tree.map_structure(_on_logits, loss)
        metrics = ["accuracy"] if metrics == "auto" else metrics
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "num_classes": self.num_classes,
            "dropout": self.dropout_rate,
            "labels": None if self.labels is None else list(self.labels),
        }

    @classmethod
    def from_pretrained(
        cls, source: str | os.PathLike, num_classes: int | None = None, **kwargs
    ) -> LabelModel:
        """A model with the weights of a folder, `hf:ORG/NAME` or `minilm`.

        The head is loaded where the folder has one of `num_classes` outputs, for the same labels
        where both are named (in any order), and else newly initialised, which is logged.

        Args:
            source: as `keras_bert_impl.sources.resolve`.
            num_classes: default: that of the folder's own head.
            **kwargs: `dropout`, `labels`, and what `keras.Model` takes.

        Raises:
            FileNotFoundError, ValueError: as `checkpoints.open_checkpoint` and its `load_into`.
        """
        from keras_bert_impl import checkpoints

        checkpoint = checkpoints.open_checkpoint(source)
        labels = checkpoint.labels
        if num_classes is None and checkpoint.model_name == cls.__name__:
            num_classes = checkpoint.num_classes
        if num_classes is None:
            raise ValueError(f"{source} holds no {cls.__name__}: give num_classes")
        if labels is not None and len(labels) == num_classes:
            kwargs.setdefault("labels", labels)
        if checkpoint.model_name == cls.__name__ and checkpoint.num_classes == num_classes:
            kwargs = {**cls._settings_of(checkpoint), **kwargs}
        model = cls(checkpoint.config, num_classes, **kwargs)
        fresh = model.head.get_weights()
        checkpoint.load_into(model)
        if checkpoint.model_name == cls.__name__ and labels is not None:
            model._fit_head(labels, fresh, source)
        return model

    def _fit_head(self, labels: Sequence[str], fresh: list, source) -> None:
        """Sorts a loaded head by our labels, or takes a new one where it has others."""
        if len(labels) != self.num_classes or tuple(labels) == self.labels:
            return
        if set(labels) == set(self.labels):
            order = [labels.index(label) for label in self.labels]
            self.head.set_weights([w[..., order] for w in self.head.get_weights()])
            return
        self.head.set_weights(fresh)
        _logger.warning(
            "newly initialised: the head of %s: %s has one for other labels (%s, not %s)",
            type(self).__name__,
            source,
            ", ".join(labels[:_SHOWN_LABELS]),
            ", ".join(self.labels[:_SHOWN_LABELS]),
        )

    @classmethod
    def _settings_of(cls, checkpoint) -> dict:
        """Arguments of `cls` that a checkpoint of it tells, beyond classes and labels."""
        return {}


def _on_logits(loss):
    """A crossentropy given by name as the object that takes logits; anything else as it is."""
    is_name = isinstance(loss, str)
    found = keras.losses.get(loss) if is_name else loss
    if isinstance(found, WeightedMean):
        found = found.loss
    if isinstance(found, keras.losses.Loss):
        kind, config = type(found), found.get_config()
        takes_logits = config.get("from_logits", True)
    else:
        kind, config = _LOGIT_LOSSES.get(found), {}
        takes_logits = kind is None
    if takes_logits:
        return loss
    if is_name:
        return kind.from_config({**config, "from_logits": True})
    raise ValueError(f"the model returns logits: use {kind.__name__}(from_logits=True)")
