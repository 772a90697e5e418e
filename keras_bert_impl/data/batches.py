"""Texts to batches of token ids that waste little on padding (tf.data).

Texts are tokenized once, in large chunks on all cores, and kept as one flat array of ids. A batch
is cut from it by plain gathers; no Python runs while the model trains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from keras_bert_impl.data.encoding import EncodedTexts, check_length, encode_texts
from keras_bert_impl.data.labels import class_weight_table

__all__ = [
    "PerToken",
    "Targets",
    "as_one_batch",
    "bucketed_batches",
    "length_sorted_batches",
    "row_batches",
    "sorted_row_batches",
]


@dataclass(frozen=True)
class PerToken:
    """A value for each token of all rows, [sum of lengths]; 0 where a batch is padded."""

    values: np.ndarray


Targets = np.ndarray | PerToken | Mapping[str, np.ndarray | PerToken] | None


def row_batches(
    rows: EncodedTexts,
    targets: Targets = None,
    weights: Targets = None,
    *,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    drop_remainder: bool = False,
    pool_batches: int = 100,
    pad_to: int | None = None,
    choices: int | None = None,
    passes: int | None = None,
) -> tf.data.Dataset:
    """Batches of packed rows with targets of any form; order and options of `bucketed_batches`.

    Args:
        rows: N packed rows.
        targets: an array [N, ...], a `PerToken` (becomes [B, S]), or a dict of these.
        weights: sample weights, likewise.
        batch_size, shuffle, seed, drop_remainder, pool_batches, pad_to: as `bucketed_batches`.
        choices: C: so many rows, one behind the other, are one example; features are [B, C, S],
            and targets and weights are those of N / C examples.
        passes: with `shuffle`: so many passes, one behind the other, in the orders in which the
            epochs of ``fit`` go through the dataset of one pass.

    Returns:
        Dataset of ``features``, ``(features, targets)`` or ``(features, targets, weights)``.

    Raises:
        ValueError: weights without targets, or an array is not as long as the rows.
    """
    if targets is None and weights is not None:
        raise ValueError("weights need targets")
    parts = tuple(part for part in (targets, weights) if part is not None)
    for part in tf.nest.flatten(parts):
        is_per_token = isinstance(part, PerToken)
        found = len(part.values if is_per_token else part)
        wanted = len(rows.token_ids) if is_per_token else len(rows) // (choices or 1)
        if found != wanted:
            raise ValueError(f"expected a target or weight for each of {wanted}, got {found}")
    number = len(rows) // (choices or 1)
    cut = _Cut(number, batch_size, drop_remainder, pool_batches, pad_to, rows.pad_id, choices)
    return cut.dataset(rows, parts, None if shuffle else np.arange(number), seed, passes)


def sorted_row_batches(
    rows: EncodedTexts, *, batch_size: int = 32, choices: int | None = None
) -> tuple[tf.data.Dataset, np.ndarray]:
    """Batches of rows of about equal length, and the way back, as `length_sorted_batches`."""
    return _sorted(rows, (), batch_size, choices)


def _sorted(rows, targets, batch_size, choices=None) -> tuple[tf.data.Dataset, np.ndarray]:
    lengths = rows.lengths.reshape(-1, choices or 1).max(axis=1)
    order = np.argsort(-lengths, kind="stable")
    restore = np.empty_like(order)
    restore[order] = np.arange(len(order))
    cut = _Cut(len(order), batch_size, pad_id=rows.pad_id, choices=choices)
    return cut.dataset(rows, targets, order), restore


def bucketed_batches(
    tokenizer,
    texts: Sequence[str] | EncodedTexts,
    pairs: Sequence[str] | None = None,
    labels: Sequence | np.ndarray | None = None,
    *,
    batch_size: int = 32,
    max_length: int = 128,
    truncation: str = "longest_first",
    shuffle: bool = False,
    seed: int = 0,
    class_weights: str | Mapping[int, float] | None = None,
    drop_remainder: bool = False,
    pool_batches: int = 100,
    pad_to: int | None = None,
) -> tf.data.Dataset:
    """Batches for ``model.fit`` and ``model.evaluate``, each padded to its own longest row.

    With `shuffle`, the rows are shuffled, cut into pools of `pool_batches` batches, sorted by
    length within a pool (equal lengths stay shuffled) and cut into batches, whose order is shuffled
    again. Every pass over the dataset has another order; the sequence of orders depends on `seed`
    (and on TensorFlow's global seed where one is set) and on nothing else.
    Without, the batches keep the order of `texts`; where the order does not matter or can be
    restored, `length_sorted_batches` is faster.

    Args:
        tokenizer: a `BertTokenizer`.
        texts: first texts; or what `keras_bert_impl.data.encoding.encode_texts` made of texts and
            pairs, with `max_length` and `truncation`, which then are not looked at here.
        pairs: second texts.
        labels: class indices (int), or scores or multi-hot rows (float).
        batch_size: rows a batch; the last may have fewer.
        max_length: longest row, special tokens included; longer texts are cut and counted in a
            warning.
        truncation: which text of a pair is cut, as in `BertTokenizer`.
        shuffle: see above.
        seed: of the order.
        class_weights: ``"balanced"`` or a dict from class index to weight; see
            `keras_bert_impl.data.labels.class_weight_table`.
        drop_remainder: leave rows out (others in every pass, with `shuffle`) so that all batches
            are full.
        pool_batches: more means less padding, fewer means more randomness.
        pad_to: pad every batch to this length instead (static shapes, for XLA and TPUs).

    Returns:
        Dataset of ``features``, ``(features, labels)`` or ``(features, labels, weights)``.
        ``features`` has int32 [B, S] ``token_ids``, ``segment_ids`` and ``padding_mask``; labels
        are int32 or float32 [B, ...]; weights float32 [B]. The cardinality is known.

    Raises:
        ValueError: lengths differ, labels are strings, or an option is out of range.
    """
    check_length("labels", labels, texts)
    if pad_to is not None and pad_to < max_length:
        raise ValueError(f"pad_to={pad_to} is less than max_length={max_length}")
    targets = _targets(labels, class_weights)
    rows = texts
    if not isinstance(texts, EncodedTexts):
        rows = encode_texts(tokenizer, texts, pairs, max_length=max_length, truncation=truncation)
    return row_batches(
        rows,
        *targets,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        drop_remainder=drop_remainder,
        pool_batches=pool_batches,
        pad_to=pad_to,
    )


def length_sorted_batches(
    tokenizer,
    texts: Sequence[str] | EncodedTexts,
    pairs: Sequence[str] | None = None,
    labels: Sequence | np.ndarray | None = None,
    *,
    batch_size: int = 32,
    max_length: int = 128,
    truncation: str = "longest_first",
) -> tuple[tf.data.Dataset, np.ndarray]:
    """Batches of rows of about equal length, longest first, and the way back to the order of texts.

    Returns:
        The dataset (as `bucketed_batches`) and int64 [N] `restore`:
        ``model.predict(dataset)[restore]`` has the order of `texts`.

    Raises:
        ValueError: as `bucketed_batches`.
    """
    check_length("labels", labels, texts)
    targets = _targets(labels, None)
    rows = texts
    if not isinstance(texts, EncodedTexts):
        rows = encode_texts(tokenizer, texts, pairs, max_length=max_length, truncation=truncation)
    return _sorted(rows, targets, batch_size)


def as_one_batch(rows: EncodedTexts, choices: int | None = None) -> dict[str, tf.Tensor]:
    """The features of all rows, int32 [N, longest]: for a few, without a dataset."""
    number = len(rows) // (choices or 1)
    cut = _Cut(number, number, pad_id=rows.pad_id, choices=choices)
    arrays = (rows.token_ids, rows.starts, rows.lengths, rows.first_lengths)
    return cut._features(arrays, tf.range(number, dtype=tf.int64))[0]


@dataclass(frozen=True)
class _Cut:
    """How N rows, or groups of `choices` rows, are cut into batches."""

    rows: int
    batch_size: int
    drop_remainder: bool = False
    pool_batches: int = 1
    pad_to: int | None = None
    pad_id: int = 0
    choices: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "pool_batches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.batches == 0:
            raise ValueError(
                f"{self.rows} rows give no full batch of {self.batch_size} (drop_remainder=True)"
            )

    @property
    def batches(self) -> int:
        return (self.rows if self.drop_remainder else self.rows + self.batch_size - 1) // (
            self.batch_size
        )

    @property
    def used(self) -> int:
        """Rows of one pass."""
        return min(self.rows, self.batches * self.batch_size)

    def dataset(
        self,
        rows: EncodedTexts,
        targets: tuple[Targets, ...],
        order: np.ndarray | None = None,
        seed: int = 0,
        number: int | None = None,
    ) -> tf.data.Dataset:
        """Batches in a fixed order of rows, or in a new random one for every pass.

        The arrays travel as elements of a dataset, not as constants of its functions: a graph
        with hundreds of megabytes inside is slow to build and cannot pass 2 GB.
        """
        arrays = (rows.token_ids, rows.starts, rows.lengths, rows.first_lengths)
        if order is None:
            passes = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).take(1)
            if number is not None:
                # Drawn now, as whoever iterates once more, to look at a batch, would shift them.
                # At the end of an epoch `fit` begins a pass that it does not go through.
                drawn = [next(passes.as_numpy_iterator()) for _ in range(2 * number - 1)]
                passes = tf.data.Dataset.from_tensor_slices(drawn[::2])
        else:
            passes = tf.data.Dataset.from_tensors(order.astype(np.int64))

        def one_pass(arrays, targets, given):
            if order is None:
                row_order, batch_order = self._shuffled(arrays[2], [seed, given])
            else:
                row_order, batch_order = given, tf.range(self.batches, dtype=tf.int64)
            numbers = tf.data.Dataset.from_tensor_slices(batch_order)

            def one_batch(number):
                first = number * self.batch_size
                chosen = row_order[first : tf.minimum(first + self.batch_size, self.used)]
                features, places, real = self._features(arrays, chosen)
                if not targets:
                    return features
                chosen_targets = tf.nest.map_structure(
                    lambda values, is_per_token: (
                        self._per_token(values, places, real)
                        if is_per_token
                        else self._per_row(values, chosen)
                    ),
                    targets,
                    per_token,
                )
                return features, *chosen_targets

            return numbers.map(one_batch, num_parallel_calls=tf.data.AUTOTUNE)

        values = tf.nest.map_structure(lambda t: getattr(t, "values", t), targets)
        per_token = tf.nest.map_structure(lambda t: isinstance(t, PerToken), targets)
        all_arrays = tf.data.Dataset.from_tensors((arrays, values))
        batches = tf.data.Dataset.zip(all_arrays.repeat(), passes).flat_map(
            lambda values, given: one_pass(*values, given)
        )
        batches = batches.apply(
            tf.data.experimental.assert_cardinality(self.batches * (number or 1))
        )
        return batches.prefetch(tf.data.AUTOTUNE)

    def _shuffled(self, lengths: tf.Tensor, seed: list) -> tuple[tf.Tensor, tf.Tensor]:
        if self.choices is not None:
            lengths = tf.reduce_max(tf.reshape(lengths, [-1, self.choices]), axis=-1)
        seed = tf.cast(tf.stack(seed), tf.int64)
        shuffle = tf.random.experimental.stateless_shuffle
        order = shuffle(tf.range(self.rows, dtype=tf.int64), seed)[: self.used]
        pool = tf.range(self.used, dtype=tf.int64) // (self.pool_batches * self.batch_size)
        length = tf.cast(tf.gather(lengths, order), tf.int64)
        longest = tf.reduce_max(length) + 1
        order = tf.gather(order, tf.argsort(pool * longest + length, stable=True))
        return order, shuffle(tf.range(self.batches, dtype=tf.int64), seed + 1)

    def _per_row(self, values: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.gather(values, chosen), [self._static_rows, *values.shape[1:]])

    def _per_token(self, values: tf.Tensor, places: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        found = tf.where(real, tf.gather(values, places), tf.zeros((), values.dtype))
        return tf.ensure_shape(found, [self._static_rows, self.pad_to])

    @property
    def _static_rows(self) -> int | None:
        return self.batch_size if self.drop_remainder else None

    def _features(self, arrays: tuple, chosen: tf.Tensor) -> tuple:
        """Dense rows, int32 [B, S], S = longest of the batch, or `pad_to`.

        And where each token is among all, int64 [B, S], and whether it is one, bool [B, S].
        """
        token_ids, starts, lengths, first_lengths = arrays
        if self.choices is not None:
            chosen = chosen[:, tf.newaxis] * self.choices + tf.range(self.choices, dtype=tf.int64)
            chosen = tf.reshape(chosen, [-1])
        lengths = tf.gather(lengths, chosen)
        positions = tf.range(tf.reduce_max(lengths) if self.pad_to is None else self.pad_to)
        real = positions < lengths[:, tf.newaxis]
        places = tf.gather(starts, chosen)[:, tf.newaxis] + tf.cast(positions, tf.int64)
        places = tf.minimum(places, tf.size(token_ids, tf.int64) - 1)
        ids = tf.gather(token_ids, places)
        second = positions >= tf.gather(first_lengths, chosen)[:, tf.newaxis]
        features = {
            "token_ids": tf.where(real, ids, self.pad_id),
            "segment_ids": tf.cast(real & second, tf.int32),
            "padding_mask": tf.cast(real, tf.int32),
        }
        static = [self._static_rows, self.pad_to]
        if self.choices is not None:
            shape = [-1, self.choices, tf.shape(real)[1]]
            features = {name: tf.reshape(value, shape) for name, value in features.items()}
            static = [self._static_rows, self.choices, self.pad_to]
        features = {name: tf.ensure_shape(value, static) for name, value in features.items()}
        return features, places, real


def _targets(labels, class_weights) -> tuple[np.ndarray, ...]:
    """Arrays behind the features: none, labels, or labels and weights."""
    if labels is None:
        if class_weights is not None:
            raise ValueError("class_weights need labels")
        return ()
    labels = np.asarray(labels)
    if labels.dtype.kind in "iub":
        labels = labels.astype(np.int32)
    elif labels.dtype.kind == "f":
        labels = labels.astype(np.float32)
    else:
        raise ValueError(
            f"labels: expected class indices or scores, got {labels.dtype} ({labels.flat[0]!r}): "
            "encode names with keras_bert_impl.data.labels.encode_labels"
        )
    if class_weights is None:
        return (labels,)
    if labels.dtype != np.int32 or labels.ndim != 1:
        raise ValueError(
            f"class_weights need class indices (int [N]) as labels, got {labels.dtype} "
            f"{list(labels.shape)}"
        )
    return labels, class_weight_table(labels, class_weights)[labels]
