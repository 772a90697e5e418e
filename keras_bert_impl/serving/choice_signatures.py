"""Multiple choice: which of C texts goes on with a text.

N rows, C choices.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.choices import ChoiceExamples
from keras_bert_impl.decoding.classification import decode_classes
from keras_bert_impl.serving.signatures import (
    SERVING_DEFAULT,
    Endpoint,
    OnCpu,
    Samples,
    Signatures,
    same_rows,
    texts_of,
)
from keras_bert_impl.tasks import TASKS

__all__ = ["ChoiceSignatures"]


class ChoiceSignatures(Signatures):
    """`prompt` string [N], `choices` string [N, C] -> the index and the text of the best choice.

    All rows of a request have as many choices.
    """

    title = "A BERT model that chooses how a text goes on"
    has_labels = False
    decisions: ClassVar = ("choice",)
    measure = "probabilities"
    segments = 2

    def endpoints(self) -> dict[str, Endpoint]:
        specs = [
            tf.TensorSpec([None], tf.string, "prompt"),
            tf.TensorSpec([None, None], tf.string, "choices"),
        ]
        inputs = "`prompt` string [N], `choices` string [N, C], together cut to "
        inputs += f"{self.max_length} tokens"
        outputs = "`choice` int32 [N], from 0 on, `choice_text` string [N], "
        outputs += "`probabilities` float32 [N, C], `score` float32 [N]"
        return {SERVING_DEFAULT: Endpoint(self.from_choices, specs, inputs, outputs)}

    def from_choices(self, prompt: tf.Tensor, choices: tf.Tensor) -> dict[str, tf.Tensor]:
        """`prompt` string [N], `choices` string [N, C]."""
        prompt, choices = texts_of(prompt), tf.ensure_shape(choices, [None, None])
        number = tf.shape(choices)[1]
        some = tf.debugging.Assert(number > 0, ["choices must have a column at least"])
        with tf.control_dependencies([some, same_rows(prompt=prompt, choices=choices)]):
            prompts = tf.repeat(prompt, number)
        rows = self.tokenizer(prompts, tf.reshape(choices, [-1]), max_length=self.max_length)
        features = {
            name: tf.reshape(value, tf.stack([tf.size(prompt), number, tf.shape(value)[1]]))
            for name, value in rows.items()
        }
        decoded = decode_classes(self.model(features, training=False))
        return {
            "choice": decoded["label_ids"],
            "choice_text": tf.gather(choices, decoded["label_ids"], batch_dims=1),
            "probabilities": decoded["probabilities"],
            "score": tf.reduce_max(decoded["probabilities"], axis=-1),
        }

    def samples(self) -> Samples:
        texts = self.sentences()
        choices = [list(pair) for pair in zip(texts[1:] + texts[:1], texts[::-1], strict=True)]
        return {SERVING_DEFAULT: {"prompt": texts, "choices": choices}}

    def expected(self, samples: Samples) -> dict[str, dict[str, np.ndarray]]:
        inputs, task = samples[SERVING_DEFAULT], TASKS["multiple-choice"]
        examples = ChoiceExamples(inputs["prompt"], [tuple(row) for row in inputs["choices"]])
        encoded = task.encode(self.tokenizer, examples, None, self.options)
        outputs = task.outputs(OnCpu(self.model), encoded, len(examples))
        found = task.predictions(outputs, encoded, None, self.options)
        texts = [row[one.choice] for row, one in zip(inputs["choices"], found, strict=True)]
        answers = {
            "choice": np.array([one.choice for one in found], np.int32),
            "choice_text": np.array(texts, object),
            "probabilities": np.array([one.probabilities for one in found], np.float32),
            "score": np.array([one.probability for one in found], np.float32),
        }
        return {SERVING_DEFAULT: answers}

    def instances(self) -> list[dict[str, Any]]:
        return [
            {
                "prompt": "She opened the umbrella",
                "choices": ["because it had begun to rain.", "because the soup was too salty."],
            },
            {"prompt": "他打开了伞，", "choices": ["因为开始下雨了。", "因为汤太咸了。"]},
        ]

    def notes(self) -> list[str]:
        return [
            "All rows of a request have as many choices; with batching, all requests at a time. A "
            "choice is\nwhat goes on, with the beginning of its sentence where it has one."
        ]
