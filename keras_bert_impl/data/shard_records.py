"""The records of pre-training shards: what kind they are, and whether one can be trained on."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from google.protobuf.message import DecodeError

__all__ = ["RecordKind", "kind_of", "parser_of", "wrong_record"]

_PLACE_IN_GRAPH = re.compile(r"\{\{.*?\}\}\s*|Name: <unknown>,\s*|, Index: \d+")
STATIC_KEYS = ("input_mask", "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


class RecordKind(NamedTuple):
    """What the records of a file hold."""

    form: str
    token_key: str
    segment_key: str
    seq_length: int
    predictions: int
    has_sentence_task: bool
    has_words: bool


def kind_of(record: bytes, name: str) -> RecordKind:
    """What a record holds, by its keys.

    Raises:
        ValueError: it is no example of pre-training; the message begins with `name`.
    """
    example = tf.train.Example()
    try:
        example.ParseFromString(record)
    except DecodeError:
        raise ValueError(f"{name} is no tf.train.Example") from None
    features = example.features.feature
    # Ours, Google's, and those of tf-models-official's `use_v2_feature_names`.
    for segment_key, token_key in (
        ("first_length", "token_ids"),
        ("segment_ids", "input_ids"),
        ("input_type_ids", "input_word_ids"),
    ):
        if token_key in features and segment_key in features:
            break
    else:
        raise ValueError(
            f"{name} is no example of pre-training: expected the keys of Google's "
            f"create_pretraining_data.py (input_ids, masked_lm_positions ...), got "
            f"{sorted(features)}"
        )
    is_dynamic = token_key == "token_ids"
    if not is_dynamic:
        absent = [key for key in STATIC_KEYS if key not in features]
        if absent:
            raise ValueError(f"{name} has no {absent[0]}, only {sorted(features)}")
    return RecordKind(
        form="dynamic" if is_dynamic else "static",
        token_key=token_key,
        segment_key=segment_key,
        seq_length=len(features[token_key].int64_list.value),
        predictions=0 if is_dynamic else len(features["masked_lm_positions"].int64_list.value),
        has_sentence_task=("is_random_next" if is_dynamic else "next_sentence_labels") in features,
        has_words="continues" in features,
    )


@functools.cache
def parser_of(kind: RecordKind) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
    """A function of serialized records [N], traced once for all files of a kind.

    It gives the largest token id of each record (int64 [N]), its length (int64 [N]), and whether
    its values are in range (bool [N]); a record that lacks a key or has another length is a
    `tf.errors.InvalidArgumentError`.
    """
    parse = _static if kind.form == "static" else _dynamic
    return tf.function(
        lambda records: parse(records, kind),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )


def _dynamic(records: tf.Tensor, kind: RecordKind):
    spec = {
        "token_ids": tf.io.RaggedFeature(tf.int64),
        "first_length": tf.io.FixedLenFeature([], tf.int64),
    }
    if kind.has_sentence_task:
        spec["is_random_next"] = tf.io.FixedLenFeature([], tf.int64)
    if kind.has_words:
        spec["continues"] = tf.io.RaggedFeature(tf.int64)
    found = tf.io.parse_example(records, spec)
    tokens, first = found["token_ids"], found["first_length"]
    lengths = tf.cast(tokens.row_lengths(), tf.int64)
    fine = (lengths > 0) & (tf.reduce_min(tokens, axis=1) >= 0)
    fine &= (first > 0) & (first <= lengths)
    if kind.has_sentence_task:
        fine &= _from_0_to(1, found["is_random_next"][:, tf.newaxis])
    if kind.has_words:
        fine &= tf.cast(found["continues"].row_lengths(), tf.int64) == lengths
    return tf.reduce_max(tokens, axis=1), lengths, fine


def _static(records: tf.Tensor, kind: RecordKind):
    whole = tf.io.FixedLenFeature([kind.seq_length], tf.int64)
    slots = tf.io.FixedLenFeature([kind.predictions], tf.int64)
    spec = {
        kind.token_key: whole,
        kind.segment_key: whole,
        "input_mask": whole,
        "masked_lm_positions": slots,
        "masked_lm_ids": slots,
        "masked_lm_weights": tf.io.FixedLenFeature([kind.predictions], tf.float32),
    }
    if kind.has_sentence_task:
        spec["next_sentence_labels"] = tf.io.FixedLenFeature([1], tf.int64)
    found = tf.io.parse_example(records, spec)
    ids = tf.concat([found[kind.token_key], found["masked_lm_ids"]], axis=1)
    weights = found["masked_lm_weights"]
    fine = tf.reduce_min(ids, axis=1) >= 0
    fine &= _from_0_to(1, found[kind.segment_key]) & _from_0_to(1, found["input_mask"])
    fine &= _from_0_to(kind.seq_length - 1, found["masked_lm_positions"])
    fine &= tf.reduce_all(tf.math.is_finite(weights) & (weights >= 0), axis=1)
    if kind.has_sentence_task:
        fine &= _from_0_to(1, found["next_sentence_labels"])
    lengths = tf.fill([tf.shape(ids)[0]], tf.constant(kind.seq_length, tf.int64))
    return tf.reduce_max(ids, axis=1), lengths, fine


def _from_0_to(largest: int, values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_all((values >= 0) & (values <= largest), axis=1)


def wrong_record(records: list[bytes], first: int, kind: RecordKind, name: str) -> str | None:
    """The message for the first record that is not of a kind or out of range; None: all are fine.

    Args:
        records: serialized.
        first: number of the first one in its file.
        kind: that of record 0 of the file.
        name: the file.
    """
    parse = parser_of(kind)
    for number, record in enumerate(records, first):
        try:
            if bool(parse(tf.constant([record]))[2][0]):
                continue
        except tf.errors.InvalidArgumentError as error:
            return _other_kind(record, number, kind, name) or (
                f"{name}: record {number}: {_PLACE_IN_GRAPH.sub('', error.message.splitlines()[0])}"
            )
        return f"{name}: record {number}: {_out_of_range(record, kind)}"
    return None


def _other_kind(record: bytes, number: int, kind: RecordKind, name: str) -> str | None:
    try:
        found = kind_of(record, f"{name}: record {number}")
    except ValueError as error:
        return str(error)
    for field in ("form", "token_key", "seq_length", "predictions", "has_sentence_task"):
        ours, theirs = getattr(kind, field), getattr(found, field)
        if ours != theirs and not (kind.form == "dynamic" and field == "seq_length"):
            return f"{name}: record {number} has {field} {theirs!r}, and record 0 has {ours!r}"
    return None


def _out_of_range(record: bytes, kind: RecordKind) -> str:
    features = tf.train.Example.FromString(record).features.feature
    last = kind.seq_length - 1
    ranges = {
        kind.token_key: None,
        "masked_lm_ids": None,
        kind.segment_key: 1,
        "input_mask": 1,
        "masked_lm_positions": last,
        "next_sentence_labels": 1,
        "is_random_next": 1,
    }
    if kind.form == "dynamic":
        ranges["first_length"] = len(features["token_ids"].int64_list.value)
    for key, largest in ranges.items():
        for value in features[key].int64_list.value if key in features else ():
            if value < 0 or (largest is not None and value > largest):
                expected = "0 or more" if largest is None else f"from 0 to {largest}"
                return f"{key} holds {value}, expected {expected}"
    if kind.form == "static":
        weights = list(features["masked_lm_weights"].float_list.value)
        return f"masked_lm_weights must be finite and not negative, got {weights}"
    return "token_ids, first_length and continues do not fit each other"
