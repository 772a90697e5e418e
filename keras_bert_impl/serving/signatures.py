"""What the SavedModel of every kind of task has in common.

N rows. Every input passes `tf.ensure_shape` first: TensorFlow Serving does not compare requests
with the signature, and a scalar string that reaches the tokenizer's operations ends the server.
Outputs are dense, for a ragged tensor cannot be served, and have the batch dimension first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.tasks import TaskOptions
from keras_bert_impl.text.packing import to_dense
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = [
    "SERVING_DEFAULT",
    "Endpoint",
    "OnCpu",
    "Samples",
    "Signatures",
    "dense",
    "same_rows",
    "texts_of",
    "token_outputs",
]

SERVING_DEFAULT = "serving_default"
# Signature -> input -> rows.
Samples = dict[str, dict[str, list]]

_ROWS_AT_ONCE = 32
_SENTENCES = (
    "A fine film, funny and sad.",
    "",
    "Ça coûte 1 000 €, n'est-ce pas?",
    "这部电影很好看。",
    "Great 👍🏽 :-)",
    "[SEP] is ordinary text",
)
_WORDS = "The plot is thin, but the actors make up for it. "


class Endpoint(NamedTuple):
    """A signature: its function, the specs of its inputs, and both in words for the README."""

    function: Callable[..., dict[str, tf.Tensor]]
    specs: list[tf.TensorSpec]
    inputs: str
    outputs: str


class Signatures(ABC):
    """The signatures of one kind of task.

    Floats are float32 whatever the model computes in, for the server cannot write bfloat16 as
    JSON.

    Args:
        model: the model.
        tokenizer: the tokenizer of its vocabulary.
        labels: the names of its classes; empty where it has none.
        options: how texts become rows.

    Attributes:
        title: what it is.
        decisions: outputs that say what was chosen; where they differ from Python's, two choices
            may be equally good, which `measure` tells.
        measure: output of float32 that says how good the choice is.
        has_labels: whether its classes have names.
        least_length: least `max_length`.
        segments: segments that a row has.
    """

    title: ClassVar[str]
    decisions: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[str] = "score"
    has_labels: ClassVar[bool] = True
    least_length: ClassVar[int] = 3
    segments: ClassVar[int] = 1

    def __init__(
        self,
        model: keras.Model,
        tokenizer: BertTokenizer,
        *,
        labels: Sequence[str] = (),
        options: TaskOptions,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.options = options

    @property
    def max_length(self) -> int:
        """Longest row in tokens."""
        return self.options.max_length

    def check(self) -> None:
        """Raises ValueError where labels, `max_length` or vocabulary do not fit the model."""
        config = self.model.config
        number = self.model.num_classes if self.has_labels else 0
        if len(self.labels) != number:
            raise ValueError(
                f"expected {number} labels, one a class of the model, got {len(self.labels)}: "
                f"{', '.join(map(str, self.labels))}"
            )
        longest = config.max_position_embeddings
        if not self.least_length <= self.max_length <= longest:
            raise ValueError(
                f"max_length must be in [{self.least_length}, {longest}] (the model's "
                f"max_position_embeddings), got {self.max_length}"
            )
        if len(self.tokenizer.vocab) > config.vocab_size:
            raise ValueError(
                f"the vocabulary has {len(self.tokenizer.vocab)} tokens, the model only "
                f"{config.vocab_size}"
            )
        if config.type_vocab_size < self.segments:
            raise ValueError("pairs need a model of two segments, type_vocab_size is 1")

    @abstractmethod
    def endpoints(self) -> dict[str, Endpoint]:
        """Name -> signature; one is `SERVING_DEFAULT`."""

    @abstractmethod
    def samples(self) -> Samples:
        """Inputs of each signature, of several scripts, the last row one that is cut."""

    @abstractmethod
    def expected(self, samples: Samples) -> dict[str, dict[str, np.ndarray]]:
        """The outputs of each signature for the samples, as Python computes them."""

    @abstractmethod
    def instances(self) -> list[Any]:
        """Two instances of a REST request."""

    def notes(self) -> list[str]:
        """What the README says below the table of signatures, a paragraph each."""
        return []

    def sentences(self) -> list[str]:
        """Short texts of several scripts, one of them empty, and one that is cut."""
        return [*_SENTENCES, _WORDS * (1 + self.max_length // 8)]


class OnCpu:
    """A model computed step by step on the CPU: a GPU may multiply in TF32."""

    def __init__(self, model: keras.Model) -> None:
        self._model = model

    def predict_on_batch(self, features: dict[str, Any]) -> Any:
        """The outputs of the model, as `keras.Model.predict_on_batch`."""
        with tf.device("CPU"):
            features = {name: tf.constant(value) for name, value in features.items()}
            return tf.nest.map_structure(np.asarray, self._model(features, training=False))


def texts_of(text: tf.Tensor) -> tf.Tensor:
    """The first operation on a text: string [N] of any bytes."""
    return tf.ensure_shape(text, [None])


def same_rows(**tensors: tf.Tensor) -> tf.Operation:
    """Fails the request where the inputs have unequal numbers of rows."""
    rows = tf.stack([tf.shape(tensor)[0] for tensor in tensors.values()])
    equal = tf.reduce_all(rows == rows[0])
    return tf.debugging.Assert(equal, [f"{', '.join(tensors)} must have as many rows, got", rows])


def dense(values: tf.RaggedTensor, width: int | None = None) -> tf.Tensor:
    """Ragged [N, (W)] -> [N, longest or `width`], at least one column, filled with "" or 0."""
    if width is None:
        width = tf.reduce_max(tf.concat([values.row_lengths(), [1]], 0))
    return values.to_tensor(shape=tf.stack([values.nrows(), tf.cast(width, tf.int64)]))


def token_outputs(
    function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
    token_ids: tf.RaggedTensor,
    segment_ids: tf.RaggedTensor,
    *,
    pad_id: int,
) -> tf.Tensor:
    """Outputs of a model at each token, computed some rows at a time to bound the memory.

    Args:
        function: features [B, S] -> float32 [B, S, K].
        token_ids, segment_ids: ragged int32 [R, (S)].
        pad_id: id of ``[PAD]``.

    Returns:
        [tokens, K], in the order of ``token_ids.flat_values``.
    """
    rows = tf.cast(token_ids.nrows(), tf.int32)

    def step(first, outputs):
        part = slice(first, first + _ROWS_AT_ONCE)
        features = to_dense(token_ids[part], segment_ids[part], pad_id=pad_id)
        values = tf.boolean_mask(function(features), features["padding_mask"] > 0)
        return first + _ROWS_AT_ONCE, outputs.write(outputs.size(), values)

    outputs = tf.TensorArray(tf.float32, 0, dynamic_size=True, infer_shape=False)
    _, outputs = tf.while_loop(
        lambda first, _: (first < rows) | (first == 0),
        step,
        (0, outputs),
        parallel_iterations=1,
    )
    return outputs.concat()
