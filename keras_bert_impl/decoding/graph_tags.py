"""Logits of words to tags and entities as TensorFlow operations, for graphs that are served.

The answers are those of `decode_tags` and `find_entities`.

Shapes: W words, N sentences, L the longest sentence, C tags, E entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.text.tag_schemes import split_tag, transitions

__all__ = ["EntityWords", "best_tags", "entities_of_tags"]


class EntityWords(NamedTuple):
    """Entities of all sentences: int64 [E] words, the last excluded; string, float64 [E]."""

    sentences: tf.Tensor
    first_words: tf.Tensor
    last_words: tf.Tensor
    types: tf.Tensor
    scores: tf.Tensor


def best_tags(
    logits: tf.Tensor, row_splits: tf.Tensor, labels: Sequence[str]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The most likely tags that the scheme allows, and their probabilities.

    Args:
        logits: [W, C], words of all sentences one behind the other.
        row_splits: words of each sentence, int64 [N + 1].
        labels: the C tags.

    Returns:
        Tags int32 [W] and float64 [W].
    """
    logits = tf.cast(logits, tf.float64)
    rules = transitions(labels)
    if all(part.all() for part in rules):
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)
    else:
        best = _viterbi(tf.RaggedTensor.from_row_splits(logits, row_splits, validate=False), rules)
    probabilities = tf.gather(tf.nn.softmax(logits), best, batch_dims=1)
    return best, probabilities


def _viterbi(logits: tf.RaggedTensor, rules) -> tf.Tensor:
    """The best allowed sequence of each sentence, int32 [W]; a step is a word of all sentences."""
    first, next_, last = (tf.constant(np.where(part, 0.0, -np.inf)) for part in rules)
    lengths = tf.cast(logits.row_lengths(), tf.int32)
    longest = tf.reduce_max(tf.concat([lengths, [1]], 0))
    classes = len(rules.first)
    shape = tf.stack([logits.nrows(), tf.cast(longest, tf.int64), classes])
    scores = tf.transpose(logits.to_tensor(0.0, shape=shape), [1, 0, 2])

    def forward(place, total, origins):
        paths = total[:, :, None] + next_
        origins = origins.write(place, tf.argmax(paths, axis=1, output_type=tf.int32))
        best = tf.reduce_max(paths, axis=1) + scores[place]
        return place + 1, tf.where((place < lengths)[:, None], best, total), origins

    def backward(place, tags, chosen):
        chosen = chosen.write(place, tags)
        origin = tf.ensure_shape(origins.read(place), [None, classes])
        before = tf.gather(origin, tags, batch_dims=1)
        return place - 1, tf.where(place < lengths, before, tags), chosen

    def array():
        return tf.TensorArray(tf.int32, longest, clear_after_read=False, infer_shape=False)

    _, total, origins = tf.while_loop(
        lambda place, *_: place < longest, forward, (1, first + scores[0], array())
    )
    ends = tf.argmax(total + last, axis=1, output_type=tf.int32)
    _, tags, chosen = tf.while_loop(
        lambda place, *_: place > 0, backward, (longest - 1, ends, array())
    )
    tags = tf.transpose(tf.ensure_shape(chosen.write(0, tags).stack(), [None, None]))
    return tf.boolean_mask(tags, tf.sequence_mask(lengths, longest))


def entities_of_tags(
    tags: tf.Tensor, probabilities: tf.Tensor, row_splits: tf.Tensor, labels: Sequence[str]
) -> EntityWords:
    """The spans of the tags; broken sequences are read as `find_spans` reads them.

    Args:
        tags: int32 [W].
        probabilities: float64 [W].
        row_splits: words of each sentence, int64 [N + 1].
        labels: the C tags.
    """
    letters, types = zip(*(split_tag(label) or ("O", "") for label in labels), strict=True)
    goes_on_after = [
        [
            letter in "IE" and before in "BI" and kind == other
            for letter, kind in zip(letters, types, strict=True)
        ]
        for before, other in zip(letters, types, strict=True)
    ]
    words = tf.size(tags, tf.int64)
    sentence_of = tf.searchsorted(row_splits, tf.range(words), side="right", out_type=tf.int64) - 1
    same_sentence = sentence_of[1:] == sentence_of[:-1]
    joined = tf.gather_nd(tf.constant(goes_on_after), tf.stack([tags[:-1], tags[1:]], -1))
    joined = tf.pad(joined & same_sentence, [[1, 1]])[: words + 1]  # with the word before
    inside = tf.gather(tf.constant([letter != "O" for letter in letters]), tags)
    firsts = tf.where(inside & ~joined[:-1])[:, 0]
    lasts = tf.where(inside & ~joined[1:])[:, 0] + 1
    spans = tf.ragged.range(firsts, lasts)
    chances = spans.with_flat_values(tf.gather(probabilities, spans.flat_values))
    return EntityWords(
        tf.gather(sentence_of, firsts),
        firsts,
        lasts,
        tf.gather(tf.constant(types, tf.string), tf.gather(tags, firsts)),
        tf.reduce_mean(chances, axis=1),
    )
