"""Which layers are trained, and how fast: freezing, low-rank changes, rates by depth."""

from __future__ import annotations

import keras

from keras_bert_impl.training.optimizers import AdamW

__all__ = ["LayerwiseAdamW", "choose_trainable", "layer_rates"]


def choose_trainable(model, freeze_layers: int = 0, lora_rank: int | None = None) -> None:
    """Freezes a part of a model with an `encoder`; before `compile`.

    Args:
        model: the model.
        freeze_layers: the embeddings and so many layers from below; -1: the whole encoder.
        lora_rank: train changes of this rank of the projections in place of the encoder's weights
            (Hu et al. 2021), by Keras' `enable_lora`; None: no.

    Raises:
        ValueError: the encoder has fewer layers.
    """
    encoder = model.encoder
    if freeze_layers > len(encoder.blocks):
        raise ValueError(
            f"freeze_layers: the encoder has {len(encoder.blocks)} layers, got {freeze_layers}"
        )
    if freeze_layers == -1:
        encoder.trainable = False
        return
    if freeze_layers or lora_rank is not None:
        encoder.embeddings.trainable = False
    for block in encoder.blocks[:freeze_layers]:
        block.trainable = False
    if lora_rank is None:
        return
    for block in encoder.blocks[freeze_layers:]:
        for norm in (block.attention_norm, block.output_norm):
            norm.trainable = False
        attention = block.attention
        for dense in (
            *(attention.query, attention.key, attention.value, attention.projection),
            *(block.intermediate, block.output_projection),
        ):
            dense.enable_lora(lora_rank)


def layer_rates(model, decay: float) -> dict[str, float]:
    """Path of each variable -> its factor on the learning rate.

    1 for the head, ``decay`` for the pooler and the last of L layers, ``decay ** L`` for the first,
    ``decay ** (L + 1)`` for the embeddings.

    Source: google-research/electra `model/optimization.py`, _get_layer_lrs (its head has 1, its
    last layer `decay`).
    """
    encoder, rates = model.encoder, {}
    depth = len(encoder.blocks)
    parts = [(encoder.embeddings, depth + 1), (encoder.pooler, 1)]
    parts += [(block, depth - index) for index, block in enumerate(encoder.blocks)]
    for layer, distance in parts:
        rates |= {variable.path: decay**distance for variable in layer.variables}
    return rates


@keras.saving.register_keras_serializable("keras_bert_impl", name="LayerwiseAdamW")
class LayerwiseAdamW(AdamW):
    """AdamW with a factor on the learning rate of some variables, in both of its terms.

    Args:
        learning_rate: as `AdamW`.
        rates: path of a variable -> factor; 1 for others.
        **kwargs: as `AdamW`.
    """

    def __init__(self, learning_rate=5e-5, rates: dict[str, float] | None = None, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.rates = dict(rates or {})
        self._rates: list[float] = []

    def build(self, variables):
        """Creates the moments; called by Keras."""
        super().build(variables)
        self._rates = [self.rates.get(variable.path, 1.0) for variable in variables]

    def update_step(self, gradient, variable, learning_rate):
        factor = self._rates[self._get_variable_index(variable)]
        rate = learning_rate["rate"] * factor
        super().update_step(gradient, variable, learning_rate | {"rate": rate})

    def get_config(self):
        return {**super().get_config(), "rates": self.rates}
