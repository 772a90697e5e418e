"""Token classification: a tag for each word; entities, parts of speech, segmentation."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np

from keras_bert_impl.data.batches import PerToken
from keras_bert_impl.data.rows import read_lines
from keras_bert_impl.data.tag_checks import discover_tags, encode_tags
from keras_bert_impl.data.tagged_json import (
    TaggedTexts,
    label_of_spans,
    read_spans,
    split_texts,
    split_words,
)
from keras_bert_impl.data.tagging import TaggedSentences, read_tagged, tagged_lines
from keras_bert_impl.data.windows import encode_words
from keras_bert_impl.decoding.entities import (
    Entity,
    decode_tags,
    find_entities,
    predict_word_logits,
)
from keras_bert_impl.metrics import accuracy, entity_scores, span_scores
from keras_bert_impl.models import BertTokenClassifier
from keras_bert_impl.tasks.task import Encoded, Task, chunks, row_losses
from keras_bert_impl.text.tag_schemes import (
    Span,
    find_spans,
    scheme_of_labels,
    tags_of_spans,
)

__all__ = ["TaggedText", "TokenClassification", "joined_offsets"]

_logger = logging.getLogger(__name__)

# So many words in one are a sentence.
_LONG = 20

_FORMS = ("tsv", "jsonl", "text")


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
    """A tag for each word; files of columns as in CoNLL, or JSON lines with spans.

    Entities of columns are scored by words, those of JSON lines by characters.
    """

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
        form = _form(path, inputs)
        if form == "text":
            raise ValueError(f"{path}: a file of format text has no tags")
        return read_spans(path) if form == "jsonl" else read_tagged(path)

    def labels(self, examples, inputs):
        self._labelled(examples)
        return discover_tags(examples.tags)

    def check(self, examples, labels):
        self._labelled(examples)
        self._classes(examples, labels)

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
        return encode_tags(examples.tags, _lines(examples), examples.path, labels)

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
        predictions = self.predictions(outputs, encoded, labels, options)
        found = [tags for tags, _ in predictions]
        right = [labels[number] for number in self._classes(examples, labels)]
        predicted = list(chain.from_iterable(found))
        report = {"accuracy": accuracy(right, predicted), "examples": len(examples)}
        report["constant"] = len(set(predicted)) == 1 < len(predicted)
        if scheme_of_labels(labels) == "plain":
            return {"f1": report["accuracy"], **report}
        if isinstance(examples, TaggedTexts):
            texts = self.tagged_texts(examples.words, predictions, examples.texts, examples.offsets)
            scores = span_scores(examples.spans, [_spans(text.entities) for text in texts])
        else:
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
        found = Counter(self._classes(examples, labels).tolist())
        return {label: found[number] for number, label in enumerate(labels)}

    def read_inputs(self, source, inputs, run, size):
        """A file of columns, of which the first is read; JSON lines; or a sentence a line."""
        form = _form(source, inputs)
        if form == "text":
            for chunk in chunks(read_lines(source), size):
                lines, texts = zip(*chunk, strict=True)
                yield split_texts(list(texts), list(lines), str(source))
        elif form == "jsonl":
            yield read_spans(source, labelled=False)
        else:
            examples = read_tagged(source, labelled=False)
            if _seems_sentences(examples, run.labels):
                _logger.warning(
                    "%s: read as one word a line, in the first column: for a sentence a line give "
                    "the format text (--format text)",
                    examples.path,
                )
            yield examples

    def tsv_lines(self, examples, predictions):
        """The file that was read with one column more; of texts, a word a line."""
        if isinstance(examples, TaggedTexts):
            for words, (tags, _) in zip(examples.words, predictions, strict=True):
                yield from (f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True))
                yield ""
            return
        tags = [tags for tags, _ in predictions]
        yield from (line.removesuffix("\n") for line in tagged_lines(examples, tags))

    def json_lines(self, examples, predictions):
        """Words, tags and entities; of texts also the text and its spans as `read_spans` reads."""
        is_text = isinstance(examples, TaggedTexts)
        texts = (examples.texts, examples.offsets) if is_text else ()
        for number, found in enumerate(self.tagged_texts(examples.words, predictions, *texts)):
            entities = [
                {**entity._asdict(), "score": round(entity.score, 6)} for entity in found.entities
            ]
            row = {"words": found.words, "tags": found.tags, "entities": entities}
            if is_text:
                text = examples.texts[number]
                row = {"text": text, "label": label_of_spans(text, _spans(found.entities)), **row}
            yield row

    def document(self, examples, predictions):
        return list(self.json_lines(examples, predictions)) if predictions else []

    def errors(self, examples, predictions):
        wrong = [("line", "word", "tag", "prediction", "probability")]
        rows = zip(_lines(examples), examples.words, examples.tags, predictions, strict=True)
        scheme = scheme_of_labels(sorted({tag for tags, _ in predictions for tag in tags}))
        for numbers, words, tags, (found, probabilities) in rows:
            if scheme != "plain":
                tags = tags_of_spans(find_spans(tags), len(tags), scheme)
            columns = (numbers, words, tags, found, probabilities)
            for number, word, tag, other, probability in zip(*columns, strict=True):
                if tag != other:
                    wrong.append((str(number), word, tag, other, f"{probability:.6f}"))
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
                text, places = " ".join(words), joined_offsets(words)
            else:
                text, places = texts[number], offsets[number]
            entities = find_entities(text, places, tags, probabilities)
            found.append(TaggedText(list(words), list(tags), list(probabilities), entities))
        return found


def joined_offsets(words: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each word in the words joined by one character."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return [(int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True)]


def _seems_sentences(examples: TaggedSentences, labels: Sequence[str]) -> bool:
    """Whether lines end in no tag, or hold many words (of Chinese, without a space)."""
    fields = examples.raw_lines[examples.lines[0][0] - 1].split()
    return (len(fields) > 1 and fields[-1] not in labels) or any(
        len(word) > _LONG and len(split_words(word)[0]) > _LONG
        for word in chain.from_iterable(examples.words)
    )


def _form(source, inputs) -> str:
    """``tsv`` (columns), ``jsonl``, or ``text`` (a sentence a line)."""
    if inputs.format is None:
        by_name = not hasattr(source, "read") and str(source).endswith((".json", ".jsonl"))
        return "jsonl" if by_name else "tsv"
    if inputs.format not in _FORMS:
        raise ValueError(f"format must be one of {', '.join(_FORMS)}, got {str(inputs.format)!r}")
    return inputs.format


def _spans(entities: list[Entity]) -> list[Span]:
    return [Span(entity.type, entity.start, entity.end) for entity in entities]


def _lines(examples) -> list[list[int]]:
    """The line of each word; in JSON lines, that of its text."""
    if isinstance(examples, TaggedSentences):
        return examples.lines
    pairs = zip(examples.lines, examples.words, strict=True)
    return [[line] * len(words) for line, words in pairs]
