"""The checks that every public layer and model passes, over a table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_bert_impl import layers, models
from keras_bert_impl.config import BertConfig

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=16,
    type_vocab_size=3,
)
# Two texts and a row that is all padding.
TOKEN_IDS = np.array([[2, 7, 9, 3, 0], [2, 5, 4, 8, 3], [0, 0, 0, 0, 0]], "int32")
SEGMENT_IDS = np.array([[0, 0, 1, 2, 0], [0, 1, 1, 2, 2], [0, 0, 0, 0, 0]], "int32")
PADDING_MASK = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], "int32")
BATCH = {"token_ids": TOKEN_IDS, "segment_ids": SEGMENT_IDS, "padding_mask": PADDING_MASK}


class Case(NamedTuple):
    make: Callable  # keyword arguments of keras.layers.Layer -> the object
    inputs: tuple  # positional arguments of a call
    options: Mapping = MappingProxyType({})  # and those by name


def vectors(*shape) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


BIAS = ops.convert_to_numpy(layers.attention_bias(PADDING_MASK, "float32"))
HIDDEN = vectors(3, 5, 8)
LAYERS = {
    "BertEmbeddings": Case(
        lambda **kw: layers.BertEmbeddings(30, 8, max_length=5, num_segments=3, **kw),
        (TOKEN_IDS, SEGMENT_IDS),
    ),
    "ClassificationHead": Case(
        lambda **kw: layers.ClassificationHead(3, dropout=0.2, **kw), (vectors(3, 8),)
    ),
    "Dropout": Case(lambda **kw: layers.Dropout(0.3, **kw), (HIDDEN,)),
    "EncoderBlock": Case(lambda **kw: layers.EncoderBlock(2, 12, **kw), (HIDDEN, BIAS)),
    "LayerNorm": Case(layers.LayerNorm, (HIDDEN,)),
    "MaskedLMHead": Case(
        lambda **kw: layers.MaskedLMHead(30, **kw), (vectors(6, 8), vectors(30, 8))
    ),
    "Pooler": Case(lambda **kw: layers.Pooler(0.1, **kw), (HIDDEN,)),
    "PositionEmbedding": Case(lambda **kw: layers.PositionEmbedding(5, 8, **kw), (TOKEN_IDS,)),
    "ScalarMix": Case(layers.ScalarMix, ([HIDDEN, HIDDEN[::-1], 2 * HIDDEN],)),
    "SegmentEmbedding": Case(lambda **kw: layers.SegmentEmbedding(3, 8, **kw), (SEGMENT_IDS,)),
    "SelfAttention": Case(lambda **kw: layers.SelfAttention(2, **kw), (HIDDEN, BIAS)),
}
PRE_NORM = CONFIG.replace(norm_position="pre", position_embedding_type="sinusoidal")
MASKED = {**BATCH, "masked_positions": np.array([[1, 2], [4, 0], [0, 0]], "int32")}
CHOICES = {name: np.stack([x, x[::-1]], axis=1) for name, x in BATCH.items()}
MODELS = {
    "BertEncoder": Case(lambda **kw: models.BertEncoder(CONFIG, **kw), (BATCH,)),
    "BertEncoder, pre": Case(lambda **kw: models.BertEncoder(PRE_NORM, **kw), (BATCH,)),
    "BertClassifier": Case(
        lambda **kw: models.BertClassifier(CONFIG, 3, dropout=0.2, labels=["a", "b", "c"], **kw),
        (BATCH,),
    ),
    "BertClassifier, regression": Case(
        lambda **kw: models.BertClassifier(CONFIG, 1, problem="regression", **kw), (BATCH,)
    ),
    "BertMultipleChoice": Case(lambda **kw: models.BertMultipleChoice(CONFIG, **kw), (CHOICES,)),
    "BertPretrainer": Case(lambda **kw: models.BertPretrainer(CONFIG, **kw), (MASKED,)),
    "BertPretrainer, masked LM alone": Case(
        lambda **kw: models.BertPretrainer(CONFIG, next_sentence=False, **kw), (BATCH,)
    ),
    "BertSpanPredictor": Case(lambda **kw: models.BertSpanPredictor(CONFIG, **kw), (BATCH,)),
    "BertTokenClassifier": Case(
        lambda **kw: models.BertTokenClassifier(CONFIG, 3, dropout=0.2, **kw), (BATCH,)
    ),
}


def _arrays(outputs) -> list[np.ndarray]:
    return [ops.convert_to_numpy(ops.cast(x, "float32")) for x in keras.tree.flatten(outputs)]


def check_config_round_trip(case: Case) -> None:
    """`from_config(get_config())` is the same object once it has the same weights."""
    first = case.make(name="a_name")
    expected = _arrays(first(*case.inputs))
    second = type(first).from_config(first.get_config())
    second(*case.inputs)
    assert second.get_config() == first.get_config()
    second.set_weights(first.get_weights())
    for a, b in zip(expected, _arrays(second(*case.inputs)), strict=True):
        np.testing.assert_array_equal(a, b)


def check_keras_file(case: Case, path) -> None:
    """A `.keras` file gives the same outputs, also with dynamic shapes."""
    made, arguments = case.make(), case.inputs[0]
    if not isinstance(made, keras.Model):
        arguments = list(case.inputs)
        inputs = keras.tree.map_structure(
            lambda x: keras.Input((None,) * (x.ndim - 2) + x.shape[-1:], dtype=x.dtype), arguments
        )
        made = keras.Model(inputs, made(*inputs))
    made.save(path)
    loaded = keras.models.load_model(path)
    for a, b in zip(_arrays(made(arguments)), _arrays(loaded(arguments)), strict=True):
        np.testing.assert_array_equal(a, b)


def check_mixed_precision(case: Case, policy: str) -> None:
    """float32 weights; finite outputs close to float32's, also for a row that is all padding."""
    reference, mixed = case.make(), case.make(dtype=policy)
    expected = _arrays(reference(*case.inputs))
    mixed(*case.inputs)
    assert {v.dtype for v in mixed.trainable_weights} <= {"float32"}
    mixed.set_weights(reference.get_weights())
    outputs = mixed(*case.inputs)
    dtypes = {keras.backend.standardize_dtype(x.dtype) for x in keras.tree.flatten(outputs)}
    assert dtypes <= {policy.removeprefix("mixed_"), "float32"}
    for a, b in zip(expected, _arrays(outputs), strict=True):
        assert np.isfinite(b).all()
        np.testing.assert_allclose(a, b, atol=0.1)


def check_gradients(case: Case) -> None:
    """A gradient reaches each weight; that of a key's bias is 0 by the softmax, so it is left."""
    made = case.make()
    made(*case.inputs)
    for variable in made.trainable_weights:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape) * 0.5)
    for variable, gradient in zip(made.trainable_weights, gradients(made, case), strict=True):
        assert gradient is not None, variable.path
        if not variable.path.endswith("key/bias"):
            assert float(ops.max(ops.abs(gradient))) > 1e-6, variable.path


def gradients(made, case: Case) -> list:
    """The gradients of a fixed random projection of all outputs."""

    def project(outputs):
        total = 0.0
        for x in keras.tree.flatten(outputs):
            total += ops.sum(ops.cast(x, "float32") * vectors(*x.shape))
        return total

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            total = project(made(*case.inputs, **case.options))
        found = tape.gradient(total, [v.value for v in made.trainable_weights])
        return [None if g is None else tf.convert_to_tensor(g) for g in found]
    import jax

    def loss(values):
        fixed = [v.value for v in made.non_trainable_variables]
        outputs = made.stateless_call(values, fixed, *case.inputs, **case.options)[0]
        return project(outputs)

    return jax.grad(loss)([v.value for v in made.trainable_weights])
