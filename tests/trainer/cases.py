"""The runs whose results must not depend on the devices; used with TensorFlow and with JAX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertClassifier, BertPretrainer
from keras_bert_impl.training import AdamW, Lamb, WarmupLinearDecay

CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=6,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.2,
)
STEPS, BATCH, LENGTH, SLOTS = 8, 16, 6, 3


@dataclass(frozen=True)
class Case:
    """A model with what it is trained by."""

    kind: str = "pretrainer"
    optimizer: str = "adamw"
    global_clipnorm: float | None = None
    ema: bool = False
    micro_batches: int = 1
    steps_per_execution: int = 1
    dtype: str = "float32"
    adversarial: float = 0.0
    r_drop: float = 0.0


EVERYTHING = {"global_clipnorm": 0.1, "ema": True, "micro_batches": 4, "steps_per_execution": 4}


def batches(kind: str) -> Iterator[tuple]:
    """(inputs, targets, weights) of each step, [16, ...]; the weights are very uneven.

    Of the pre-training rows dealt to two replicas the second has no mask in the first step, and of
    those dealt to four the second has none in the second step; in the third, one row alone has.
    """
    random = np.random.default_rng(0)
    for step in range(STEPS):
        inputs = {
            "token_ids": random.integers(0, 20, (BATCH, LENGTH)).astype("int32"),
            "segment_ids": random.integers(0, 2, (BATCH, LENGTH)).astype("int32"),
            "padding_mask": np.ones((BATCH, LENGTH), "int32"),
        }
        labels = random.integers(0, 2, BATCH).astype("int32")
        if kind == "classifier":
            # Weights of the classes times those of the rows.
            weights = np.where(labels == 1, 4.0, 0.5) * random.uniform(0, 2, BATCH) ** 3
            weights[1::4] *= step != 1
            yield inputs, labels, weights.astype("float32")
            continue
        inputs["masked_positions"] = random.integers(0, LENGTH, (BATCH, SLOTS)).astype("int32")
        masked = random.integers(0, 20, (BATCH, SLOTS)).astype("int32")
        weights = (random.uniform(0, 1, (BATCH, SLOTS)) < 0.6).astype("float32")
        if step == 0:
            weights[1::2] = 0.0
        elif step == 1:
            weights[1::4] = 0.0
        elif step == 2:
            weights[1:] = 0.0
        yield (
            inputs,
            {"masked_lm": masked, "next_sentence": labels},
            {"masked_lm": weights, "next_sentence": np.ones(BATCH, "float32")},
        )


def make_model(case: Case) -> keras.Model:
    """Compiled; call it in the scope of the strategy or distribution."""
    keras.utils.set_random_seed(1)
    if case.kind == "classifier":
        model = BertClassifier(CONFIG, 2, dtype=case.dtype)
    else:
        model = BertPretrainer(CONFIG, dtype=case.dtype)
    ema = {"use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 3} if case.ema else {}
    # Keys' biases have a gradient of rounding only, which a smaller epsilon would scale up.
    optimizer = {"adamw": AdamW, "lamb": Lamb}[case.optimizer](
        WarmupLinearDecay(2e-3, 12, 3), epsilon=1e-5, global_clipnorm=case.global_clipnorm, **ema
    )
    options = {"steps_per_execution": case.steps_per_execution}
    if keras.backend.backend() == "tensorflow":
        options |= {"micro_batches": case.micro_batches, "jit_compile": False}
        options |= {"adversarial": case.adversarial, "r_drop": case.r_drop}
    if case.kind == "classifier":
        options["loss"] = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, **options)
    model.optimizer.build(model.trainable_variables)
    return model


def weights_by_path(model: keras.Model) -> dict[str, np.ndarray]:
    return {v.path: keras.ops.convert_to_numpy(v).astype("float32") for v in model.weights}


def flat_weights(model: keras.Model) -> list[float]:
    return np.concatenate([w.ravel() for w in weights_by_path(model).values()]).tolist()
