"""Extractive question answering: the part of a context that answers a question.

N rows.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.graph_windows import question_rows
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.decoding.graph_spans import best_answers
from keras_bert_impl.serving.signatures import (
    SERVING_DEFAULT,
    Endpoint,
    OnCpu,
    Samples,
    Signatures,
    same_rows,
    texts_of,
    token_outputs,
)
from keras_bert_impl.tasks import TASKS
from keras_bert_impl.text.characters import Characters, valid_utf8

__all__ = ["QuestionSignatures"]

_QUESTIONS = ("Who sings?", "[SEP] 电影好看吗？", "What does it cost?", "谁？")
_CONTEXTS = (
    "Great 👍🏽: Ça coûte 1 000 €, and the\u00a0choir sings.",
    "这部电影很好看。",
)
_LONG = "The plot is thin, but the actors make up for it. 我爱北京。 "


class QuestionSignatures(Signatures):
    """`question`, `context` string [N] -> the answer, where it stands, and its probability.

    A context that is longer than the model is read in windows. Offsets count characters (code
    points) of the context, the end excluded; without an answer both are 0.
    """

    title = "A BERT model that answers questions with a part of a text"
    decisions: ClassVar = ("answer", "start", "end")
    has_labels = False
    segments = 2

    def endpoints(self) -> dict[str, Endpoint]:
        specs = [tf.TensorSpec([None], tf.string, name) for name in ("question", "context")]
        inputs = f"`question` string [N], cut to {self.options.max_query_length} tokens, "
        inputs += "`context` string [N]"
        outputs = "`answer` string [N], `start`, `end` int32 [N], `score` float32 [N]"
        if self.options.unanswerable:
            outputs += ", `null_odds` float32 [N]"
        return {SERVING_DEFAULT: Endpoint(self.from_texts, specs, inputs, outputs)}

    def from_texts(self, question: tf.Tensor, context: tf.Tensor) -> dict[str, tf.Tensor]:
        """`question` and `context` string [N]; any bytes are taken."""
        question, context = texts_of(question), valid_utf8(texts_of(context))
        with tf.control_dependencies([same_rows(question=question, context=context)]):
            context = tf.identity(context)
        options = self.options
        rows = question_rows(
            self.tokenizer,
            question,
            context,
            max_length=options.max_length,
            doc_stride=options.doc_stride,
            max_query_length=options.max_query_length,
        )
        logits = token_outputs(
            self._logits, rows.token_ids, rows.segment_ids, pad_id=self.tokenizer.vocab.pad_id
        )
        found = best_answers(
            rows,
            tf.ensure_shape(logits, [None, 2]),
            Characters(context),
            n_best=options.n_best,
            max_answer_length=options.max_answer_length,
            unanswerable=options.unanswerable,
            null_threshold=options.null_threshold,
        )
        outputs = {
            "answer": found.texts,
            "start": found.starts,
            "end": found.ends,
            "score": tf.cast(found.probabilities, tf.float32),
        }
        if found.null_odds is not None:
            outputs["null_odds"] = tf.cast(found.null_odds, tf.float32)
        return outputs

    def _logits(self, features: dict[str, tf.Tensor]) -> tf.Tensor:
        outputs = self.model(features, training=False)
        return tf.cast(tf.stack([outputs["start"], outputs["end"]], axis=-1), tf.float32)

    def samples(self) -> Samples:
        contexts = [*_CONTEXTS, " ".join(_CONTEXTS), _LONG * (1 + self.max_length // 8)]
        return {SERVING_DEFAULT: {"question": list(_QUESTIONS), "context": contexts}}

    def expected(self, samples: Samples) -> dict[str, dict[str, np.ndarray]]:
        inputs, task = samples[SERVING_DEFAULT], TASKS["question-answering"]
        questions = QuestionSet.of(inputs["question"], inputs["context"])
        encoded = task.encode(self.tokenizer, questions, None, self.options)
        outputs = task.outputs(OnCpu(self.model), encoded, 32)
        found = task.predictions(outputs, encoded, None, self.options)
        answers = {
            "answer": np.array([one.text for one in found], object),
            "start": np.array([one.start for one in found], np.int32),
            "end": np.array([one.end for one in found], np.int32),
            "score": np.array([one.probability for one in found], np.float32),
        }
        if self.options.unanswerable:
            answers["null_odds"] = np.array([one.null_odds for one in found], np.float32)
        return {SERVING_DEFAULT: answers}

    def instances(self) -> list[dict[str, str]]:
        return [
            {
                "question": "Where is the tower?",
                "context": "The tower was built in 1889 and stands in Paris.",
            },
            {"question": "谁写了《红楼梦》？", "context": "《红楼梦》的作者是曹雪芹。"},
        ]

    def notes(self) -> list[str]:
        options = self.options
        notes = [
            "`answer` is the part of the context from `start` to `end`, which count characters "
            "(code points),\nthe end excluded; `score` is its probability among the "
            f"{options.n_best} best. Contexts of more than one row of\n{options.max_length} tokens "
            f"are read in windows, {options.doc_stride} tokens apart."
        ]
        if options.unanswerable:
            notes.append(
                "`null_odds` is how much better than the best answer no answer is; above "
                f'{options.null_threshold:g} the answer is "",\nfrom 0 to 0, and `score` is the '
                "probability of that."
            )
        return notes
