"""The model of pre-training with its optimizer."""

from __future__ import annotations

import os

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.jobs.pretraining_settings import PretrainSettings
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.training import AdamW, Lamb, WarmupLinearDecay

__all__ = ["make_pretrainer"]


def make_pretrainer(
    settings: PretrainSettings,
    config: BertConfig,
    *,
    next_sentence: bool,
    dtype: str,
    init_checkpoint: str | os.PathLike | None,
) -> BertPretrainer:
    """A compiled model with a built optimizer; call it within the scope of the strategy.

    Args:
        settings: optimizer, schedule, seed, micro-batches.
        config: of a model with random weights.
        next_sentence: whether it has that head.
        dtype: the policy.
        init_checkpoint: weights to start from, with their config; None: random ones.

    Raises:
        FileNotFoundError, ValueError: of the weights to start from.
    """
    keras.utils.set_random_seed(settings.seed)
    options = {"next_sentence": next_sentence, "dtype": dtype}
    if init_checkpoint is None:
        model = BertPretrainer(config, **options)
    else:
        model = BertPretrainer.from_pretrained(init_checkpoint, **options)
    kind = {"adamw": AdamW, "lamb": Lamb}[settings.optimizer]
    optimizer = kind(WarmupLinearDecay(settings.learning_rate, settings.steps, settings.warmup))
    if dtype == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(
        optimizer,
        jit_compile=False,
        micro_batches=settings.micro_batches,
        steps_per_execution=settings.steps_per_execution,
    )
    model.optimizer.build(model.trainable_variables)
    return model
