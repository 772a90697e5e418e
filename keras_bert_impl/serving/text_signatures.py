"""Texts or pairs of texts: classes, scores and sets of labels.

N rows, L the width of the `ids` signature, C classes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.decoding.classification import (
    decode_classes,
    decode_label_sets,
    decode_scores,
    label_names,
)
from keras_bert_impl.layers.backend import check_below
from keras_bert_impl.serving.signatures import (
    SERVING_DEFAULT,
    Endpoint,
    OnCpu,
    Samples,
    Signatures,
    dense,
    same_rows,
    texts_of,
)
from keras_bert_impl.tasks import TaskOptions
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = [
    "IDS",
    "ClassifierSignatures",
    "MultiLabelSignatures",
    "RegressionSignatures",
    "TextSignatures",
]

IDS = "ids"
_EXAMPLES = ("A fine film, funny and sad.", "What a waste of an evening.")
_EXAMPLE_PAIRS = ("I laughed and cried.", "I would see it again.")


class TextSignatures(Signatures):
    """Text or ids -> what `decode` makes of the logits [N, C].

    Rows are padded to the longest of the request.

    Args:
        pairs: take pairs of texts.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: BertTokenizer,
        *,
        labels: Sequence[str] = (),
        options: TaskOptions,
        pairs: bool = False,
    ) -> None:
        super().__init__(model, tokenizer, labels=labels, options=options)
        self.pairs = pairs
        self.segments = 2 if pairs else 1
        self.least_length = 3 if pairs else 2

    @abstractmethod
    def decode(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """Logits [N, C] -> outputs."""

    @abstractmethod
    def outputs(self) -> str:
        """The outputs in words."""

    def endpoints(self) -> dict[str, Endpoint]:
        names = ("text", "pair") if self.pairs else ("text",)
        text_specs = [tf.TensorSpec([None], tf.string, name) for name in names]
        id_specs = [
            tf.TensorSpec([None, self.max_length], tf.int32, name)
            for name in ("token_ids", "segment_ids", "padding_mask")
        ]
        from_text = self.from_pairs if self.pairs else self.from_texts
        shown = f"{' and '.join(f'`{name}`' for name in names)}, string [N], "
        shown += f"cut to {self.max_length} tokens"
        ids = f"`token_ids`, `segment_ids`, `padding_mask`, int32 [N, {self.max_length}]"
        return {
            SERVING_DEFAULT: Endpoint(from_text, text_specs, shown, self.outputs()),
            IDS: Endpoint(self.from_ids, id_specs, ids, "the same"),
        }

    def from_texts(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """`text` string [N]; any bytes are taken."""
        return self._answer(self.tokenizer(texts_of(text), max_length=self.max_length))

    def from_pairs(self, text: tf.Tensor, pair: tf.Tensor) -> dict[str, tf.Tensor]:
        """`text` and `pair` string [N]."""
        text, pair = texts_of(text), texts_of(pair)
        with tf.control_dependencies([same_rows(text=text, pair=pair)]):
            text = tf.identity(text)
        return self._answer(self.tokenizer(text, pair, max_length=self.max_length))

    def from_ids(
        self, token_ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Int32 [N, L] each, cut here to the longest row.

        The width is fixed because TensorFlow Serving's batching would pad rows of other widths
        with their first element, and a mask then with ones. A row whose mask is all 0 gets the
        mask `token_ids != [PAD]`, so that a client may send zeros for it.
        """
        shape = [None, self.max_length]
        token_ids = tf.ensure_shape(token_ids, shape)
        segment_ids = tf.ensure_shape(segment_ids, shape)
        padding_mask = tf.ensure_shape(padding_mask, shape)
        rows = same_rows(token_ids=token_ids, segment_ids=segment_ids, padding_mask=padding_mask)
        with tf.control_dependencies([rows]):
            token_ids = check_below(token_ids, self.model.config.vocab_size, "token_ids")
        segment_ids = check_below(segment_ids, self.model.config.type_vocab_size, "segment_ids")
        mask = check_below(padding_mask, 2, "padding_mask") > 0
        given = tf.reduce_any(mask, axis=1, keepdims=True)
        mask = tf.where(given, mask, token_ids != self.tokenizer.vocab.pad_id)
        places = tf.range(1, self.max_length + 1) * tf.cast(mask, tf.int32)
        width = tf.reduce_max(tf.concat([tf.reshape(places, [-1]), [1]], axis=0))
        return self._answer(
            {
                "token_ids": token_ids[:, :width],
                "segment_ids": segment_ids[:, :width],
                "padding_mask": tf.cast(mask, tf.int32)[:, :width],
            }
        )

    def _answer(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.decode(self.model(features, training=False))

    def samples(self) -> Samples:
        texts = self.sentences()
        inputs = {"text": texts}
        if self.pairs:
            inputs["pair"] = texts[1:] + texts[:1]
        ids = self._encode(inputs, pad_to=self.max_length)
        return {
            SERVING_DEFAULT: inputs,
            IDS: {name: value.numpy().tolist() for name, value in ids.items()},
        }

    def expected(self, samples: Samples) -> dict[str, dict[str, np.ndarray]]:
        logits = OnCpu(self.model).predict_on_batch(self._encode(samples[SERVING_DEFAULT]))
        outputs = {name: value.numpy() for name, value in self.decode(logits).items()}
        return dict.fromkeys(samples, outputs)

    def notes(self) -> list[str]:
        return [
            f"`{IDS}` is for clients that tokenize with vocab.txt: fill rows up to "
            f"{self.max_length} with the id of\n`[PAD]`; a row whose `padding_mask` is all 0 gets "
            "the mask `token_ids != [PAD]`."
        ]

    def _encode(self, inputs: dict[str, list], **width: int) -> dict[str, tf.Tensor]:
        return self.tokenizer(
            inputs["text"], inputs.get("pair"), max_length=self.max_length, **width
        )

    def instances(self) -> list[str] | list[dict[str, str]]:
        if not self.pairs:
            return list(_EXAMPLES)
        pairs = zip(_EXAMPLES, _EXAMPLE_PAIRS, strict=True)
        return [{"text": text, "pair": pair} for text, pair in pairs]


class ClassifierSignatures(TextSignatures):
    """`label` string [N], `label_id` int32 [N], `probabilities` [N, C], `score` [N]."""

    title = "A BERT text classifier"
    decisions: ClassVar = ("label_id",)
    measure = "probabilities"

    def decode(self, logits):
        decoded = decode_classes(logits)
        return {
            "label": label_names(decoded["label_ids"], self.labels),
            "label_id": decoded["label_ids"],
            "probabilities": decoded["probabilities"],
            "score": tf.reduce_max(decoded["probabilities"], axis=-1),
        }

    def outputs(self):
        return (
            "`label` string [N], `label_id` int32 [N], "
            f"`probabilities` float32 [N, {len(self.labels)}], `score` float32 [N]"
        )


class RegressionSignatures(TextSignatures):
    """`score` float32 [N]."""

    title = "A BERT model that scores texts"
    has_labels = False

    def decode(self, logits):
        return {"score": decode_scores(logits)}

    def outputs(self):
        return "`score` float32 [N]"


class MultiLabelSignatures(TextSignatures):
    """`labels` string [N, C], `label_count` int32 [N], `probabilities` float32 [N, C].

    The labels whose probability is at least 1/2 come first in a row, in their order; the rest of
    the row is "".
    """

    title = "A BERT model that gives a text any number of labels"
    decisions: ClassVar = ("labels", "label_count")
    measure = "probabilities"

    def decode(self, logits):
        decoded = decode_label_sets(logits)
        chosen = decoded["chosen"]
        names = tf.broadcast_to(tf.constant(self.labels, tf.string), tf.shape(chosen))
        return {
            "labels": dense(tf.ragged.boolean_mask(names, chosen), len(self.labels)),
            "label_count": tf.math.count_nonzero(chosen, axis=-1, dtype=tf.int32),
            "probabilities": decoded["probabilities"],
        }

    def outputs(self):
        number = len(self.labels)
        return (
            f'`labels` string [N, {number}], those chosen and then "", `label_count` int32 [N], '
            f"`probabilities` float32 [N, {number}]"
        )
