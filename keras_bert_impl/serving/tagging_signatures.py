"""Token classification: the words of texts with their tags, and the entities.

N texts, W words and E entities of the text that has most.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.graph_windows import word_rows
from keras_bert_impl.data.tagged_json import split_texts
from keras_bert_impl.data.tagging import TaggedSentences
from keras_bert_impl.decoding.classification import label_names
from keras_bert_impl.decoding.graph_tags import best_tags, entities_of_tags
from keras_bert_impl.serving.signatures import (
    SERVING_DEFAULT,
    Endpoint,
    OnCpu,
    Samples,
    Signatures,
    dense,
    texts_of,
    token_outputs,
)
from keras_bert_impl.tasks import TASKS, TaggedText
from keras_bert_impl.tasks.tagging import joined_offsets
from keras_bert_impl.text.characters import Characters, Words, find_words, valid_utf8

__all__ = ["WORDS", "TaggingSignatures"]

WORDS = "words"
_OUTPUTS = (
    "`words`, `tags` string [N, W], `starts`, `ends` int32 [N, W], `scores` float32 [N, W], "
    "`word_count` int32 [N]; `entity_types`, `entity_texts` string [N, E], `entity_starts`, "
    "`entity_ends` int32 [N, E], `entity_scores` float32 [N, E], `entity_count` int32 [N]"
)
_EXAMPLES = ("Angela Merkel visited Wuhan University.", "我爱北京天安门。")


class TaggingSignatures(Signatures):
    """Texts, or words, -> words, tags and entities.

    Outputs have as many columns as the longest text of the request needs, one at least, filled up
    with "" and 0; the counts say how many are real. Offsets count characters (code points), the
    end excluded: of the text, or of the words joined by one character.
    """

    title = "A BERT model that tags words"
    decisions: ClassVar = ("tags",)
    measure = "scores"

    def endpoints(self) -> dict[str, Endpoint]:
        spec = tf.TensorSpec([None], tf.string, "text")
        words = tf.TensorSpec([None], tf.string, "words")
        listed = "`words` string [N]: the words of a text with a line end (`\\n`) between them"
        return {
            SERVING_DEFAULT: Endpoint(self.from_texts, [spec], "`text` string [N]", _OUTPUTS),
            WORDS: Endpoint(self.from_words, [words], listed, "the same, a tag for each word"),
        }

    def from_texts(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """`text` string [N]; any bytes are taken."""
        text = valid_utf8(texts_of(text))
        characters = Characters(text)
        return self._tag(find_words(text, characters), characters)

    def from_words(self, words: tf.Tensor) -> dict[str, tf.Tensor]:
        """`words` string [N], a word a line; a line end behind the last word may be left out."""
        text = tf.strings.regex_replace(valid_utf8(texts_of(words)), "\n\\z", "")
        strings = tf.strings.split(text, sep="\n")
        # An empty string is no words, and not one empty word.
        some = tf.cast(tf.strings.length(text) > 0, tf.int64) * strings.row_lengths()
        starts = strings.row_starts()
        kept = tf.ragged.range(starts, starts + some)
        strings = kept.with_flat_values(tf.gather(strings.flat_values, kept.flat_values))
        lengths = tf.strings.length(strings.flat_values, unit="UTF8_CHAR")
        before = tf.cumsum(lengths + 1, exclusive=True)
        first = tf.gather(tf.concat([before, [0]], 0), strings.row_starts())
        starts = before - tf.gather(first, strings.value_rowids())
        found = Words(
            strings,
            strings.with_flat_values(starts),
            strings.with_flat_values(starts + lengths),
        )
        return self._tag(found, Characters(tf.strings.regex_replace(text, "\n", " ")))

    def _tag(self, words: Words, characters: Characters) -> dict[str, tf.Tensor]:
        rows = word_rows(self.tokenizer, words.strings, max_length=self.max_length)
        logits = token_outputs(
            lambda features: tf.cast(self.model(features, training=False), tf.float32),
            rows.token_ids,
            rows.segment_ids,
            pad_id=self.tokenizer.vocab.pad_id,
        )
        logits = tf.ensure_shape(tf.gather(logits, rows.positions), [None, len(self.labels)])
        splits = words.strings.row_splits
        tags, probabilities = best_tags(logits, splits, self.labels)
        found = entities_of_tags(tags, probabilities, splits, self.labels)
        starts = tf.gather(words.starts.flat_values, found.first_words)
        ends = tf.gather(words.ends.flat_values, found.last_words - 1)

        def of_words(values):
            return dense(words.strings.with_flat_values(values))

        def of_entities(values):
            return dense(
                tf.RaggedTensor.from_value_rowids(
                    values, found.sentences, words.strings.nrows(), validate=False
                )
            )

        counts = tf.math.bincount(
            tf.cast(found.sentences, tf.int32), minlength=tf.cast(words.strings.nrows(), tf.int32)
        )
        return {
            "words": dense(words.strings),
            "tags": of_words(label_names(tags, self.labels)),
            "starts": dense(words.starts),
            "ends": dense(words.ends),
            "scores": of_words(tf.cast(probabilities, tf.float32)),
            "word_count": tf.cast(words.strings.row_lengths(), tf.int32),
            "entity_types": of_entities(found.types),
            "entity_texts": of_entities(characters.parts(found.sentences, starts, ends)),
            "entity_starts": of_entities(starts),
            "entity_ends": of_entities(ends),
            "entity_scores": of_entities(tf.cast(found.scores, tf.float32)),
            "entity_count": counts,
        }

    def notes(self) -> list[str]:
        return [
            "W and E are the numbers of words and entities of the text that has most; shorter "
            'rows are\nfilled up with "" and 0, `word_count` and `entity_count` say how many are '
            "real. Offsets count\ncharacters (code points) of the text, the end excluded. Texts "
            f"longer than {self.max_length} tokens are read in\nwindows that overlap.",
            f"`{WORDS}` is for texts that are split already, one string a text: "
            f'`{{"signature_name": "{WORDS}", "instances": ["EU\\nrejects\\nGerman call"]}}` '
            "has three words.\nOffsets then count characters of the words joined by one space.",
        ]

    def samples(self) -> Samples:
        texts = self.sentences()
        words = ["\n".join(words) for words in split_texts(texts, []).words]
        return {SERVING_DEFAULT: {"text": texts}, WORDS: {"words": words}}

    def expected(self, samples: Samples) -> dict[str, dict[str, np.ndarray]]:
        texts = samples[SERVING_DEFAULT]["text"]
        split = split_texts(texts, [])
        lines = [words.split("\n") if words else [] for words in samples[WORDS]["words"]]
        return {
            SERVING_DEFAULT: tagged_arrays(
                self._found(split.words, texts, split.offsets), split.offsets
            ),
            WORDS: tagged_arrays(self._found(lines)),
        }

    def _found(self, sentences: list[list[str]], texts=None, offsets=None) -> list[TaggedText]:
        task = TASKS["token-classification"]
        examples = TaggedSentences(sentences, None, None, [], "<memory>", [], " ")
        encoded = task.encode(self.tokenizer, examples, self.labels, self.options)
        outputs = task.outputs(OnCpu(self.model), encoded, len(sentences))
        found = task.predictions(outputs, encoded, self.labels, self.options)
        return task.tagged_texts(sentences, found, texts, offsets)

    def instances(self) -> list[str]:
        return list(_EXAMPLES)


def tagged_arrays(found: list[TaggedText], offsets=None) -> dict[str, np.ndarray]:
    """What `run.predict` gives in the form of the outputs.

    Args:
        found: N texts.
        offsets: start and end of each word; by default those of words joined by one character.
    """
    if offsets is None:
        offsets = [joined_offsets(one.words) for one in found]
    entities = [one.entities for one in found]
    return {
        "words": _array([one.words for one in found], object),
        "tags": _array([one.tags for one in found], object),
        "starts": _array([[start for start, _ in part] for part in offsets], np.int32),
        "ends": _array([[end for _, end in part] for part in offsets], np.int32),
        "scores": _array([one.probabilities for one in found], np.float32),
        "word_count": np.array([len(one.words) for one in found], np.int32),
        "entity_types": _array([[e.type for e in part] for part in entities], object),
        "entity_texts": _array([[e.text for e in part] for part in entities], object),
        "entity_starts": _array([[e.start for e in part] for part in entities], np.int32),
        "entity_ends": _array([[e.end for e in part] for part in entities], np.int32),
        "entity_scores": _array([[e.score for e in part] for part in entities], np.float32),
        "entity_count": np.array([len(part) for part in entities], np.int32),
    }


def _array(rows: list[list], dtype) -> np.ndarray:
    """Rows of one type, filled up to the longest, at least one column."""
    array = np.full((len(rows), max(1, *map(len, rows))), "" if dtype is object else 0, dtype)
    for row, values in zip(array, rows, strict=True):
        row[: len(values)] = values
    return array
