"""Pre-training: masked language model and next sentence (Devlin et al. 2019, section 3.1).

Shapes: B batch, S sequence, P predictions, H hidden, V vocabulary.
"""

from __future__ import annotations

import os

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import ClassificationHead, MaskedLMHead
from keras_bert_impl.layers.backend import rows_at
from keras_bert_impl.losses import SparseAccuracy, SparseCrossentropy
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrained import INPUTS, Pretrained
from keras_bert_impl.trainer import Trainer

__all__ = ["BertPretrainer"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertPretrainer(Pretrained, Trainer):
    """The encoder with its two pre-training heads; the decoder is the token embeddings.

    Padding: as in `BertEncoder`. Slots of `masked_positions` beyond the masks of a row may hold
    any position: give them the weight 0.

    Args:
        config: a `BertConfig` (or the dict of one).
        next_sentence: whether there is a head that tells a random next segment (label 1) from
            the actual one (label 0).

    Call arguments: a dict as `BertEncoder` takes, and in it optionally `masked_positions`,
        int32 [B, P], the positions to predict. Without it every position is predicted.

    Returns:
        dict: `masked_lm` logits, float32 [B, P, V] (or [B, S, V]), and `next_sentence` logits,
        float32 [B, 2].

    Raises:
        ValueError: the inputs are none of `BertEncoder`, or a position is outside [0, S).

    >>> import numpy as np
    >>> config = BertConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> batch = {"token_ids": np.array([[2, 4, 9, 3]]), "masked_positions": np.array([[1, 0]])}
    >>> output = BertPretrainer(config)(batch)
    >>> tuple(output["masked_lm"].shape), tuple(output["next_sentence"].shape)
    ((1, 2, 30), (1, 2))
    """

    input_names = (*INPUTS, "masked_positions")

    def __init__(self, config: BertConfig | dict, next_sentence: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.encoder = BertEncoder(config, dtype=self.dtype_policy, name="encoder")
        self.config = config = self.encoder.config
        self.next_sentence = next_sentence
        self.masked_lm_head = MaskedLMHead(
            config.vocab_size,
            config.hidden_act,
            config.layer_norm_eps,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="masked_lm_head",
        )
        self.next_sentence_head = None
        # Without the next sentence, no loss reaches the pooler.
        self.encoder.pooler.trainable = next_sentence
        if next_sentence:
            self.next_sentence_head = ClassificationHead(
                2,
                0.0,
                config.initializer_range,
                dtype=self.dtype_policy,
                name="next_sentence_head",
            )
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; the shapes follow from the config alone."""
        self.masked_lm_head.build((None, self.config.hidden_size))
        if self.next_sentence_head is not None:
            self.next_sentence_head.build((None, self.config.hidden_size))

    def compile(
        self, optimizer="rmsprop", loss="auto", metrics=None, weighted_metrics="auto", **kwargs
    ):
        """As `keras.Model.compile`; fit with targets and sample weights of the outputs' names.

        The targets are `masked_lm` int32 [B, P] and `next_sentence` int32 [B]; the sample
        weights `masked_lm` [B, P], 0 in slots without a mask.

        Args:
            optimizer, metrics: as in Keras.
            loss: "auto" is sum(w * ce) / sum(w) of the masks plus the mean cross-entropy of the
                next sentence.
            weighted_metrics: "auto" is `masked_lm_accuracy` and `next_sentence_accuracy`.
            **kwargs: as in Keras.
        """
        outputs = ["masked_lm"] + ["next_sentence"] * self.next_sentence
        if loss == "auto":
            loss = {output: SparseCrossentropy() for output in outputs}
        if weighted_metrics == "auto":
            # Keras puts the name of the output before it where there are several.
            name = "accuracy" if self.next_sentence else "masked_lm_accuracy"
            weighted_metrics = {output: [SparseAccuracy(name)] for output in outputs}
        super().compile(
            optimizer=optimizer,
            loss=loss,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            **kwargs,
        )

    def call(self, inputs, training=False):
        inputs, positions = _split(inputs)
        encoded = self.encoder(inputs, training=training)
        x = encoded["sequence_output"]
        if positions is None:
            rows, shape = ops.reshape(x, (-1, x.shape[-1])), ops.shape(x)[:2]  # [B * S, H]
        else:
            rows, shape = rows_at(x, positions), ops.shape(positions)  # [B * P, H]
        table = ops.convert_to_tensor(self.encoder.embeddings.token.embeddings)
        logits = self.masked_lm_head(rows, table, training=training)
        outputs = {"masked_lm": ops.reshape(logits, (*shape, self.config.vocab_size))}
        if self.next_sentence_head is not None:
            outputs["next_sentence"] = self.next_sentence_head(encoded["pooled_output"])
        return outputs

    def compute_output_spec(self, inputs, training=False):
        inputs, positions = _split(inputs)
        shape = inputs["token_ids"].shape if positions is None else positions.shape
        outputs = {"masked_lm": keras.KerasTensor((*shape, self.config.vocab_size), "float32")}
        if self.next_sentence:
            outputs["next_sentence"] = keras.KerasTensor((shape[0], 2), "float32")
        return outputs

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "next_sentence": self.next_sentence,
        }

    @classmethod
    def from_pretrained(
        cls, source: str | os.PathLike, next_sentence: bool | None = None, **kwargs
    ) -> BertPretrainer:
        """A pretrainer with the weights of a folder, `hf:ORG/NAME` or `minilm`.

        Heads that the folder lacks are newly initialised, which is logged.

        Args:
            source: as `keras_bert_impl.sources.resolve`.
            next_sentence: default: whether the folder's pretrainer has that head; True for
                another kind of model.
            **kwargs: as `keras.Model`.

        Raises:
            FileNotFoundError, ValueError: as `checkpoints.open_checkpoint` and its `load_into`.
        """
        from keras_bert_impl import checkpoints

        checkpoint = checkpoints.open_checkpoint(source)
        if next_sentence is None:
            next_sentence = checkpoint.next_sentence
        model = cls(checkpoint.config, next_sentence=next_sentence, **kwargs)
        checkpoint.load_into(model)
        return model


def _split(inputs):
    """The inputs of the encoder, and `masked_positions` or None."""
    if not isinstance(inputs, dict) or "masked_positions" not in inputs:
        return inputs, None
    encoder_inputs = {name: x for name, x in inputs.items() if name != "masked_positions"}
    return encoder_inputs, inputs["masked_positions"]
