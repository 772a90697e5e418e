"""Extractive question answering, with and without questions that have no answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from keras_bert_impl.data.document_windows import encode_questions, encode_training_questions
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.questions import QuestionSet
from keras_bert_impl.decoding.spans import decode_spans, predict_logits
from keras_bert_impl.metrics.questions import cmrc_scores, squad_scores, squad_v2_scores
from keras_bert_impl.models import BertSpanPredictor
from keras_bert_impl.tasks.task import Encoded, Task

__all__ = ["QuestionAnswering"]

_HAN = re.compile("[\u4e00-\u9fff]")


class QuestionAnswering(Task):
    """A part of a text for each question about it.

    Whether "no answer" is an answer is told by the training file. Chinese answers are scored by
    characters, as CMRC 2018 does.
    """

    name = "question-answering"
    model_class = BertSpanPredictor
    metrics: ClassVar = {"f1": "f1", "exact": "exact_match"}
    shown: ClassVar = {"exact_match": "exact match", "f1": "F1"}
    defaults: ClassVar = {"max_length": 384}

    def read(self, path, inputs, before=None) -> QuestionSet:
        return read_questions(path, inputs.format)

    def options_of(self, examples, options):
        return replace(options, unanswerable=examples.has_impossible)

    def labels(self, examples, inputs):
        return None

    def check(self, examples, labels):
        if not any(question.answers or question.is_impossible for question in examples.questions):
            raise ValueError(f"{examples.path}: no question has an answer")

    def encode(self, tokenizer, examples, labels, options, *, training=False) -> Encoded:
        lengths = {
            "max_length": options.max_length,
            "doc_stride": options.doc_stride,
            "max_query_length": options.max_query_length,
        }
        make = encode_training_questions if training else encode_questions
        windows = make(tokenizer, examples, **lengths)
        return Encoded(windows.rows, windows.targets, source=windows)

    def model_arguments(self, labels):
        return {}

    def outputs(self, model, encoded, batch_size):
        return predict_logits(model, encoded.source, batch_size=batch_size)

    def predictions(self, outputs, encoded, labels, options):
        return decode_spans(
            encoded.source,
            *outputs,
            n_best=options.n_best,
            max_answer_length=options.max_answer_length,
            unanswerable=options.unanswerable,
            null_threshold=options.null_threshold,
        )

    def score(self, examples, outputs, encoded, labels, options):
        found = self.predictions(outputs, encoded, labels, options)
        answers = {q.id: [answer.text for answer in q.answers] for q in examples.questions}
        texts = {answer.id: answer.text for answer in found}
        if options.unanswerable or examples.has_impossible:
            odds = {answer.id: answer.null_odds for answer in found}
            known = None if None in odds.values() else odds
            report = squad_v2_scores(answers, texts, known)
            report = {"exact_match": report.pop("exact"), **report}
        else:
            is_chinese = bool(_HAN.search(examples.contexts[0]))
            report = (cmrc_scores if is_chinese else squad_scores)(answers, texts)
        return {
            **{name: value for name, value in report.items() if not name.endswith("total")},
            "examples": len(examples),
            "constant": len(set(texts.values())) == 1 < len(texts),
        }

    def counts(self, examples, labels):
        impossible = sum(question.is_impossible for question in examples.questions)
        return {"questions": len(examples), "without answer": impossible}

    def read_inputs(self, source, inputs, run, size):
        yield read_questions(source, inputs.format, labelled=False)

    def cells(self, examples, predictions):
        for answer in predictions:
            text, places = " ".join(answer.text.split()), (str(answer.start), str(answer.end))
            yield " ".join(answer.id.split()), text, *places, f"{answer.probability:.6f}"

    def json_lines(self, examples, predictions):
        for answer in predictions:
            content = {
                "id": answer.id,
                "answer": answer.text,
                "start": answer.start,
                "end": answer.end,
                "probability": round(answer.probability, 6),
            }
            odds = answer.null_odds
            yield content if odds is None else {**content, "null_odds": round(odds, 6)}

    def document(self, examples, predictions):
        return {answer.id: answer.text for answer in predictions}

    def errors(self, examples, predictions):
        wrong = [("id", "answers", "prediction", "probability", "question")]
        for question, found in zip(examples.questions, predictions, strict=True):
            golds = list(dict.fromkeys(answer.text for answer in question.answers))
            if found.text not in (golds or [""]):
                shown = (" | ".join(golds), found.text, f"{found.probability:.6f}")
                wrong.append((question.id, *shown, question.text))
        return wrong
