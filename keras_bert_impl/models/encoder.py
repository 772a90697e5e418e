"""The BERT encoder (Devlin et al. 2019, section 3; google-research/bert `modeling.py`).

Shapes: B batch, S sequence, H hidden, N heads, L blocks.
"""

from __future__ import annotations

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import (
    BertEmbeddings,
    EncoderBlock,
    LayerNorm,
    Pooler,
    attention_bias,
    backend,
)
from keras_bert_impl.models.pretrained import INPUTS, Pretrained
from keras_bert_impl.trainer import Trainer

__all__ = ["BertEncoder"]


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertEncoder(Pretrained, Trainer):
    """Embeddings, L blocks and the pooler.

    Padding: positions with `padding_mask` 0 do not change the output at any other position.
    The outputs at padding are finite and meaningless; `sequence_output` and `hidden_states`
    carry a Keras mask, so that pooling and recurrent layers on top skip them.

    Args:
        config: a `BertConfig` (or the dict of one).

    Call arguments:
        inputs: dict of integer tensors [B, S]: `token_ids`, and optionally `segment_ids`
            (default: all 0) and `padding_mask` (1 = real token; default: all 1).
        training: bool, switches dropout on.
        return_hidden_states: adds `hidden_states`, a list of L + 1 tensors [B, S, H]: the
            embeddings and the output of each block.
        return_attentions: adds `attentions`, a list of L tensors [B, N, S, S].
        pooled_only: returns `pooled_output` alone; the last block is then computed at [CLS] only.

    Returns:
        dict: `sequence_output` float [B, S, H], `pooled_output` float [B, H].

    Raises:
        ValueError: the input is not such a dict, a tensor is not [B, S] or not integer, S is
            larger than `max_position_embeddings`, or `pooled_only` is given with another output.

    >>> import numpy as np
    >>> config = BertConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> output = BertEncoder(config)({"token_ids": np.array([[2, 7, 3], [2, 3, 0]])})
    >>> tuple(output["sequence_output"].shape), tuple(output["pooled_output"].shape)
    ((2, 3, 8), (2, 8))
    """

    def __init__(self, config: BertConfig | dict, **kwargs):
        super().__init__(**kwargs)
        self.config = BertConfig(**config) if isinstance(config, dict) else config
        config, policy = self.config, self.dtype_policy
        self.embeddings = BertEmbeddings(
            config.vocab_size,
            config.hidden_size,
            max_length=config.max_position_embeddings,
            num_segments=config.type_vocab_size,
            position_kind=config.position_embedding_type,
            dropout=config.hidden_dropout_prob,
            epsilon=config.layer_norm_eps,
            initializer_range=config.initializer_range,
            dtype=policy,
            name="embeddings",
        )
        self.blocks = [
            EncoderBlock(
                config.num_attention_heads,
                config.intermediate_size,
                activation=config.hidden_act,
                dropout=config.hidden_dropout_prob,
                attention_dropout=config.attention_probs_dropout_prob,
                epsilon=config.layer_norm_eps,
                initializer_range=config.initializer_range,
                norm_position=config.norm_position,
                dtype=policy,
                name=f"block_{index}",
            )
            for index in range(config.num_hidden_layers)
        ]
        self.final_norm = None
        if config.norm_position == "pre":
            self.final_norm = LayerNorm(config.layer_norm_eps, dtype=policy, name="final_norm")
        self.pooler = Pooler(config.initializer_range, dtype=policy, name="pooler")
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; the shapes follow from the config alone."""
        shape = (None, None, self.config.hidden_size)
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build(shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)
        self.pooler.build(shape)

    def call(
        self,
        inputs,
        training=False,
        return_hidden_states=False,
        return_attentions=False,
        pooled_only=False,
    ):
        inputs = check_inputs(inputs)
        check_outputs(return_hidden_states, return_attentions, pooled_only)
        token_ids, mask = inputs["token_ids"], inputs.get("padding_mask")
        bias = None
        if mask is not None:
            bias = attention_bias(ops.cast(mask, "bool"), self.compute_dtype)
        x = self.embeddings(token_ids, inputs.get("segment_ids"), training=training)
        hidden_states, attentions = [x], []
        for block in self.blocks:
            queries = x[:, :1] if pooled_only and block is self.blocks[-1] else None
            x, weights = block(x, bias, training=training, return_weights=True, queries=queries)
            if return_attentions:  # Eagerly, weights that are kept take memory.
                attentions.append(weights)
            hidden_states.append(x)
        if self.final_norm is not None:
            x = self.final_norm(x, training=training)
        outputs = {"pooled_output": self.pooler(x)}
        if not pooled_only:
            outputs["sequence_output"] = x
        if return_hidden_states:
            outputs["hidden_states"] = hidden_states
        if return_attentions:
            outputs["attentions"] = attentions
        return outputs

    def compute_mask(self, inputs, previous_mask=None):
        if not isinstance(inputs, dict) or inputs.get("padding_mask") is None:
            return None
        return {
            "pooled_output": None,
            "sequence_output": ops.cast(inputs["padding_mask"], "bool"),
        }

    def _set_mask_metadata(self, inputs, outputs, previous_mask):
        """Keras pairs masks with outputs by order, which the optional outputs would shift."""
        if "sequence_output" not in outputs:
            return
        for sequence in (outputs["sequence_output"], *outputs.get("hidden_states", ())):
            masked = {"pooled_output": outputs["pooled_output"], "sequence_output": sequence}
            super()._set_mask_metadata(inputs, masked, previous_mask)

    def compute_output_spec(
        self,
        inputs,
        training=False,
        return_hidden_states=False,
        return_attentions=False,
        pooled_only=False,
    ):
        inputs = check_inputs(inputs)
        check_outputs(return_hidden_states, return_attentions, pooled_only)
        batch, length = inputs["token_ids"].shape
        config, dtype = self.config, self.compute_dtype

        def spec(*shape):
            return keras.KerasTensor(shape, dtype=dtype)

        sequence = (batch, length, config.hidden_size)
        outputs = {"pooled_output": spec(batch, config.hidden_size)}
        if not pooled_only:
            outputs["sequence_output"] = spec(*sequence)
        if return_hidden_states:
            outputs["hidden_states"] = [
                spec(*sequence) for _ in range(config.num_hidden_layers + 1)
            ]
        if return_attentions:
            heads = (batch, config.num_attention_heads, length, length)
            outputs["attentions"] = [spec(*heads) for _ in range(config.num_hidden_layers)]
        return outputs

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}


def check_outputs(return_hidden_states: bool, return_attentions: bool, pooled_only: bool) -> None:
    """Raises ValueError where `pooled_only` leaves out what another argument asks for."""
    if pooled_only and (return_hidden_states or return_attentions):
        raise ValueError(
            "pooled_only=True computes no hidden_states and attentions of the last block: give it "
            "without return_hidden_states and return_attentions"
        )


def check_inputs(inputs, axes: tuple[str, ...] = BertEncoder.input_axes) -> dict:
    """The input dict as int32 tensors.

    Raises:
        ValueError: it is not a dict, `token_ids` is absent, a name is unknown, a tensor is not
            one of integers with these axes, or the shapes differ.
    """
    if not isinstance(inputs, dict):
        raise ValueError(
            f"expected a dict with the keys {INPUTS} (the last two optional), "
            f"got {type(inputs).__name__}"
        )
    unknown = sorted(set(inputs) - set(INPUTS))
    if unknown or "token_ids" not in inputs:
        raise ValueError(
            f"expected the inputs {INPUTS} (the last two optional), got {sorted(inputs)}"
        )
    tensors = {}
    for name, value in inputs.items():
        if value is None:
            continue
        if not isinstance(value, keras.KerasTensor):
            value = ops.convert_to_tensor(value)
        dtype = keras.backend.standardize_dtype(value.dtype)
        if backend.is_building():
            # A model of a user that is loaded is built by Keras, from shapes alone: as floats.
            value, dtype = ops.cast(value, "int32"), "int32"
        if "int" not in dtype and dtype != "bool":
            raise ValueError(f"{name} must be integers, got {dtype}")
        if len(value.shape) != len(axes):
            raise ValueError(f"{name} must have the shape [{', '.join(axes)}], got {value.shape}")
        if dtype != "int32" and not isinstance(value, keras.KerasTensor):
            value = ops.cast(value, "int32")
        tensors[name] = value
    expected = tuple(tensors["token_ids"].shape)
    for name, value in tensors.items():
        if any(a != b for a, b in zip(value.shape, expected, strict=True) if None not in (a, b)):
            raise ValueError(
                f"{name} must have the shape of token_ids, {expected}, got {tuple(value.shape)}"
            )
    return tensors
