"""The graph functions of a classifier's SavedModel.

N rows, L the width of the `ids` signature, C classes. Every input passes `tf.ensure_shape` first:
TensorFlow Serving does not compare requests with the signature, and a scalar string that reaches
the tokenizer's operations ends the server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from keras_bert_impl.decoding.classification import decode_classes, label_names
from keras_bert_impl.layers.backend import check_below
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["IDS", "SERVING_DEFAULT", "ClassifierSignatures"]

SERVING_DEFAULT, IDS = "serving_default", "ids"


class ClassifierSignatures:
    """Text or ids -> `label` string [N], `label_id` int32 [N], `probabilities` [N, C], `score` [N].

    Rows are padded to the longest of the request. Floats are float32 whatever the model computes
    in, for the server cannot write bfloat16 as JSON.

    Args:
        model: a `BertClassifier`.
        tokenizer: the tokenizer of its vocabulary.
        labels: the C names in the order of the logits.
        max_length: longer texts are cut; also the width L of `ids`.
        pairs: classify pairs of texts.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: BertTokenizer,
        labels: Sequence[str],
        *,
        max_length: int,
        pairs: bool,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.max_length = max_length
        self.pairs = pairs

    def endpoints(self) -> dict[str, tuple[Callable, list[tf.TensorSpec]]]:
        """Name -> function and specs of its inputs."""
        names = ("text", "pair") if self.pairs else ("text",)
        text_specs = [tf.TensorSpec([None], tf.string, name) for name in names]
        id_specs = [
            tf.TensorSpec([None, self.max_length], tf.int32, name)
            for name in ("token_ids", "segment_ids", "padding_mask")
        ]
        from_text = self.from_pairs if self.pairs else self.from_texts
        return {SERVING_DEFAULT: (from_text, text_specs), IDS: (self.from_ids, id_specs)}

    def from_texts(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """`text` string [N]; any bytes are taken."""
        return self._classify(
            self.tokenizer(tf.ensure_shape(text, [None]), max_length=self.max_length)
        )

    def from_pairs(self, text: tf.Tensor, pair: tf.Tensor) -> dict[str, tf.Tensor]:
        """`text` and `pair` string [N]."""
        text, pair = tf.ensure_shape(text, [None]), tf.ensure_shape(pair, [None])
        with tf.control_dependencies([_same_rows(text=text, pair=pair)]):
            text = tf.identity(text)
        return self._classify(self.tokenizer(text, pair, max_length=self.max_length))

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
        rows = _same_rows(token_ids=token_ids, segment_ids=segment_ids, padding_mask=padding_mask)
        with tf.control_dependencies([rows]):
            token_ids = check_below(token_ids, self.model.config.vocab_size, "token_ids")
        segment_ids = check_below(segment_ids, self.model.config.type_vocab_size, "segment_ids")
        mask = check_below(padding_mask, 2, "padding_mask") > 0
        given = tf.reduce_any(mask, axis=1, keepdims=True)
        mask = tf.where(given, mask, token_ids != self.tokenizer.vocab.pad_id)
        places = tf.range(1, self.max_length + 1) * tf.cast(mask, tf.int32)
        width = tf.reduce_max(tf.concat([tf.reshape(places, [-1]), [1]], axis=0))
        return self._classify(
            {
                "token_ids": token_ids[:, :width],
                "segment_ids": segment_ids[:, :width],
                "padding_mask": tf.cast(mask, tf.int32)[:, :width],
            }
        )

    def _classify(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        decoded = decode_classes(self.model(features, training=False))
        return {
            "label": label_names(decoded["label_ids"], self.labels),
            "label_id": decoded["label_ids"],
            "probabilities": decoded["probabilities"],
            "score": tf.reduce_max(decoded["probabilities"], axis=-1),
        }


def _same_rows(**tensors: tf.Tensor) -> tf.Operation:
    """Fails the request where the inputs have unequal numbers of rows."""
    rows = tf.stack([tf.shape(tensor)[0] for tensor in tensors.values()])
    equal = tf.reduce_all(rows == rows[0])
    return tf.debugging.Assert(equal, [f"{', '.join(tensors)} must have as many rows, got", rows])
