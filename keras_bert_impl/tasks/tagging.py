"""Token classification: a tag for each word; entities, parts of speech, segmentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np

from keras_bert_impl.data.batches import PerToken
from keras_bert_impl.data.tagged_json import TaggedTexts, read_spans
from keras_bert_impl.data.tagging import TaggedSentences, read_tagged
from keras_bert_impl.data.windows import encode_words
from keras_bert_impl.decoding.entities import (
    Entity,
    decode_tags,
    find_entities,
    predict_word_logits,
)
from keras_bert_impl.metrics import accuracy, entity_scores
from keras_bert_impl.models import BertTokenClassifier
from keras_bert_impl.tasks.task import Encoded, Task, path_of, row_losses
from keras_bert_impl.text.tag_schemes import scheme_of_labels

__all__ = ["TaggedText", "TokenClassification"]


class TaggedText(NamedTuple):
    """What a model says of one text: its words with their tags, and the entities.

    Attributes:
        words: the words.
        tags: one a word.
        probabilities: of the tags.
        entities: with offsets into the text (of words: into the words joined by spaces).
    """

    words: list[str]
    tags: list[str]
    probabilities: list[float]
    entities: list[Entity]


class TokenClassification(Task):
    """A tag for each word; files of columns as in CoNLL, or JSON lines with spans."""

    name = "token-classification"
    model_class = BertTokenClassifier
    metrics: ClassVar = {"f1": "f1", "accuracy": "accuracy"}
    shown: ClassVar = {
        "precision": "precision",
        "recall": "recall",
        "f1": "entity F1",
        "accuracy": "accuracy",
    }

    def read(self, path, inputs, before=None) -> TaggedSentences | TaggedTexts:
        is_json = inputs.format == "jsonl" or str(path).endswith((".json", ".jsonl"))
        return read_spans(path) if is_json else read_tagged(path)

    def labels(self, examples, inputs):
        self._labelled(examples)
        return sorted(set(chain.from_iterable(examples.tags)))

    def check(self, examples, labels):
        self._labelled(examples)
        known = set(labels)
        for number, tags in enumerate(examples.tags):
            for place, tag in enumerate(tags):
                if tag not in known:
                    line = _line(examples, number, place)
                    raise ValueError(
                        f"{examples.path}:{line}: unknown tag {tag!r}; known tags: "
                        f"{', '.join(map(repr, labels))}"
                    )

    def _labelled(self, examples) -> None:
        if examples.tags is None:
            raise ValueError(f"{examples.path}: no tags: expected two columns or more")

    def encode(self, tokenizer, examples, labels, options, *, training=False):
        windows = encode_words(tokenizer, examples.words, max_length=options.max_length)
        if not training:
            return Encoded(windows.rows, source=windows)
        targets = PerToken(windows.spread(self._classes(examples, labels)))
        return Encoded(windows.rows, targets, PerToken(windows.weights()), source=windows)

    def _classes(self, examples, labels) -> np.ndarray:
        places = {label: place for place, label in enumerate(labels)}
        return np.array([places[tag] for tags in examples.tags for tag in tags], np.int32)

    def model_arguments(self, labels):
        return {"num_classes": len(labels), "labels": labels}

    def outputs(self, model, encoded, batch_size):
        return predict_word_logits(model, encoded.source, batch_size=batch_size)

    def _tags(self, outputs, encoded, labels):
        return decode_tags(outputs, encoded.source.lengths, labels)

    def predictions(self, outputs, encoded, labels, options) -> list:
        """(tags, probabilities) of each sentence; `tagged_texts` makes entities of them."""
        return list(zip(*self._tags(outputs, encoded, labels), strict=True))

    def score(self, examples, outputs, encoded, labels, options):
        found, _ = self._tags(outputs, encoded, labels)
        tokens = [(tag, other) for a, b in zip(examples.tags, found, strict=True)
                  for tag, other in zip(a, b, strict=True)]  # fmt: skip
        right, predicted = zip(*tokens, strict=True)
        report = {"accuracy": accuracy(right, predicted), "examples": len(examples)}
        report["constant"] = len(set(predicted)) == 1 < len(predicted)
        if scheme_of_labels(labels) == "plain":
            return {"f1": report["accuracy"], **report}
        scores = entity_scores(examples.tags, found)
        averages = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
        classes = {
            name: {
                "precision": row["precision"],
                "recall": row["recall"],
                "f1": row["f1-score"],
                "support": int(row["support"]),
            }
            for name, row in scores.report.items()
            if not name.endswith(" avg")
        }
        return {**averages, **report, "classes": classes}

    def loss(self, examples, outputs, labels):
        return float(row_losses(outputs, self._classes(examples, labels)).mean())

    def counts(self, examples, labels):
        found = Counter(chain.from_iterable(examples.tags))
        return {label: found[label] for label in labels}

    def read_inputs(self, source, inputs, run, size):
        yield self.read(path_of(source, "tagged words"), inputs)

    def tsv_lines(self, examples, predictions):
        """The file that was read with one column more; of texts, a word a line."""
        if isinstance(examples, TaggedTexts):
            for words, (tags, _) in zip(examples.words, predictions, strict=True):
                yield from (f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True))
                yield ""
            return
        lines = [line.rstrip("\r\n") for line in examples.raw_lines]
        separator = "\t" if "\t" in examples.separator else examples.separator
        for numbers, (tags, _) in zip(examples.lines, predictions, strict=True):
            for number, tag in zip(numbers, tags, strict=True):
                lines[number - 1] = f"{lines[number - 1]}{separator}{tag}"
        yield from lines

    def json_lines(self, examples, predictions):
        texts = (examples.texts, examples.offsets) if isinstance(examples, TaggedTexts) else ()
        for found in self.tagged_texts(examples.words, predictions, *texts):
            entities = [
                {**entity._asdict(), "score": round(entity.score, 6)} for entity in found.entities
            ]
            yield {"words": found.words, "tags": found.tags, "entities": entities}

    def errors(self, examples, predictions):
        wrong = [("line", "word", "tag", "prediction")]
        rows = zip(examples.words, examples.tags, predictions, strict=True)
        for number, (words, tags, (found, _)) in enumerate(rows):
            for place, (word, tag, other) in enumerate(zip(words, tags, found, strict=True)):
                if tag != other:
                    wrong.append((str(_line(examples, number, place)), word, tag, other))
        return wrong

    def tagged_texts(
        self, sentences: Sequence[list[str]], predictions: list, texts=None, offsets=None
    ) -> list[TaggedText]:
        """Predictions with entities; `texts` and word `offsets` where words came from texts."""
        found = []
        for number, (words, (tags, probabilities)) in enumerate(
            zip(sentences, predictions, strict=True)
        ):
            if texts is None:
                text, ends = " ".join(words), np.cumsum([len(word) + 1 for word in words]) - 1
                places = [(int(end) - len(w), int(end)) for w, end in zip(words, ends, strict=True)]
            else:
                text, places = texts[number], offsets[number]
            entities = find_entities(text, places, tags, probabilities)
            found.append(TaggedText(list(words), list(tags), list(probabilities), entities))
        return found


def _line(examples, number: int, place: int) -> int:
    """The line of a word: one of its own in a file of columns, that of the text in JSON lines."""
    line = examples.lines[number]
    return line if isinstance(line, int) else line[place]
