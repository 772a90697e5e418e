"""The numbers of a BERT model, read from and written to the two public JSON formats."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["SIZES", "BertConfig"]

ACTIVATIONS = ("gelu_erf", "gelu_tanh", "relu", "tanh", "linear")
POSITION_KINDS = ("learned", "sinusoidal")
NORM_PLACES = ("post", "pre")
FAMILIES = ("google", "huggingface")

# Family -> the name of the activation in its files -> our explicit name.
_ACTIVATION_NAMES = {
    "google": {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"},
    "huggingface": {
        "gelu": "gelu_erf",
        "gelu_python": "gelu_erf",
        "gelu_new": "gelu_tanh",
        "gelu_fast": "gelu_tanh",
        "gelu_pytorch_tanh": "gelu_tanh",
        "relu": "relu",
        "tanh": "tanh",
        "linear": "linear",
    },
}
# Written back where a file cannot tell the two forms of GELU apart otherwise.
_WRITTEN_ACTIVATIONS = {
    "google": {"gelu_tanh": "gelu", "gelu_erf": "gelu_erf"},
    "huggingface": {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Hyper-parameters of a BERT encoder (Devlin et al. 2019, section 3; `bert_config.json`).

    Args:
        vocab_size: rows of the token embedding table. BERT: 30522 (uncased English).
        hidden_size: width H of the encoder. BERT: 768 (base), 1024 (large).
        num_hidden_layers: encoder blocks L. BERT: 12, 24.
        num_attention_heads: heads A; must divide `hidden_size`. BERT: 12, 16.
        intermediate_size: width of the feed-forward layer. BERT: 4 * H.
        hidden_act: "gelu_tanh" (Google's released models), "gelu_erf" (Hugging Face's "gelu"),
            "relu", "tanh" or "linear". Used by the encoder and by the masked-LM head.
        hidden_dropout_prob: dropout on embeddings and block outputs, in [0, 1). BERT: 0.1.
        attention_probs_dropout_prob: dropout on attention weights, in [0, 1). BERT: 0.1.
        max_position_embeddings: longest sequence. BERT: 512.
        type_vocab_size: number of segments. BERT: 2.
        initializer_range: standard deviation of the truncated normal initialiser. BERT: 0.02.
        layer_norm_eps: epsilon inside every LayerNorm. BERT: 1e-12.
        position_embedding_type: "learned" (BERT) or "sinusoidal" (Vaswani et al. 2017, 3.5).
        norm_position: "post" (BERT: LayerNorm after the residual sum) or "pre".

    Raises:
        ValueError: a field has a value outside its range; the message names the field.

    >>> BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2).intermediate_size
    512
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 0
    hidden_act: str = "gelu_tanh"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    position_embedding_type: str = "learned"
    norm_position: str = "post"

    def __post_init__(self):
        if self.intermediate_size == 0:
            object.__setattr__(self, "intermediate_size", 4 * self.hidden_size)
        for field in dataclasses.fields(self):
            _check_type(field.name, field.type, getattr(self, field.name))
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size ({self.hidden_size}) must be a multiple of num_attention_heads "
                f"({self.num_attention_heads})"
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        for name in ("initializer_range", "layer_norm_eps"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be greater than 0, got {getattr(self, name)}")
        for name, known in (
            ("hidden_act", ACTIVATIONS),
            ("position_embedding_type", POSITION_KINDS),
            ("norm_position", NORM_PLACES),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")

    @property
    def num_parameters(self) -> int:
        """Trainable parameters of the encoder with its pooler."""
        h, f = self.hidden_size, self.intermediate_size
        positions = self.max_position_embeddings if self.position_embedding_type == "learned" else 0
        embeddings = (self.vocab_size + positions + self.type_vocab_size) * h + 2 * h
        block = 4 * (h * h + h) + 2 * h * f + f + h + 4 * h
        final_norm = 2 * h if self.norm_position == "pre" else 0
        pooler = h * h + h
        return embeddings + self.num_hidden_layers * block + final_norm + pooler

    def to_dict(self) -> dict[str, Any]:
        """Every field by name; `BertConfig(**config.to_dict()) == config`."""
        return dataclasses.asdict(self)

    def replace(self, **changes) -> BertConfig:
        """A copy with the named fields changed."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, family: str, where: str = "") -> BertConfig:
        """Reads the content of a `bert_config.json` or `config.json`.

        Args:
            values: the parsed JSON object.
            family: "google" (`"gelu"` is the tanh form) or "huggingface" (`"gelu"` is the erf
                form).
            where: name of the file for error messages.

        Raises:
            ValueError: a required field is missing, a value is out of range, or the file
                describes another model than an absolute-position BERT encoder.
        """
        where = where or f"{family} config"
        _check_family(family)
        missing = [name for name in _REQUIRED if name not in values]
        if missing:
            raise ValueError(f"{where}: missing {missing}; found {sorted(values)}")
        kind = values.get("model_type", "bert")
        if kind != "bert":
            raise ValueError(f"{where}: model_type must be 'bert', got {kind!r}")
        if values.get("is_decoder"):
            raise ValueError(f"{where}: is_decoder must be false; decoders are not supported")
        known = {field.name for field in dataclasses.fields(cls)}
        fields = {name: value for name, value in values.items() if name in known}
        fields["hidden_act"] = _read_activation(values.get("hidden_act", "gelu"), family, where)
        fields["position_embedding_type"] = _read_positions(values, where)
        try:
            return cls(**fields)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    @classmethod
    def from_file(cls, path: str | os.PathLike, *, family: str | None = None) -> BertConfig:
        """Reads a JSON file; without `family`, `config.json` is read as Hugging Face's.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is not a JSON object, or as in `from_dict`.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such config file")
        try:
            values = json.loads(path.read_text(encoding="utf-8-sig"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not a JSON file: {error}") from None
        if not isinstance(values, dict):
            raise ValueError(f"{path}: expected a JSON object, got {type(values).__name__}")
        if family is None:
            is_hub_file = "model_type" in values or path.name == "config.json"
            family = "huggingface" if is_hub_file else "google"
        return cls.from_dict(values, family=family, where=str(path))

    def to_family(self, family: str) -> dict[str, Any]:
        """The JSON object that `from_dict` with the same `family` reads back as this config."""
        _check_family(family)
        values = self.to_dict()
        values["hidden_act"] = _WRITTEN_ACTIVATIONS[family].get(self.hidden_act, self.hidden_act)
        if family == "huggingface":
            values["model_type"] = "bert"
            kind = "absolute" if self.position_embedding_type == "learned" else "sinusoidal"
            values["position_embedding_type"] = kind
        elif self.position_embedding_type == "learned":
            del values["position_embedding_type"]
        if self.norm_position == "post":
            del values["norm_position"]
        return values


_REQUIRED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)
_POSITIVE = (*_REQUIRED, "max_position_embeddings", "type_vocab_size")


def _check_type(name: str, kind: str, value) -> None:
    expected = {"int": int, "float": (int, float), "str": str}[kind]
    if isinstance(value, bool) or not isinstance(value, expected):
        raise ValueError(f"{name} must be {kind}, got {value!r}")


def _check_family(family: str) -> None:
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {FAMILIES}, got {family!r}")


def _read_activation(name: str, family: str, where: str) -> str:
    names = _ACTIVATION_NAMES[family]
    if name in ACTIVATIONS:
        return name
    if not isinstance(name, str) or name not in names:
        known = sorted({*names, *ACTIVATIONS})
        raise ValueError(f"{where}: hidden_act must be one of {known}, got {name!r}")
    return names[name]


def _read_positions(values: Mapping[str, Any], where: str) -> str:
    kind = values.get("position_embedding_type", "learned")
    kind = "learned" if kind == "absolute" else kind
    if kind not in POSITION_KINDS:
        raise ValueError(
            f"{where}: position_embedding_type must be 'absolute' or 'sinusoidal', got {kind!r}"
        )
    return kind


def _sizes() -> dict[str, BertConfig]:
    """base, large (Devlin et al. 2019, section 3) and the 24 miniatures (Turc et al. 2019)."""
    sizes = {
        f"L{layers}_H{hidden}": BertConfig(
            hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 64
        )
        for layers in (2, 4, 6, 8, 10, 12)
        for hidden in (128, 256, 512, 768)
    }
    named = {"tiny": "L2_H128", "mini": "L4_H256", "small": "L4_H512", "medium": "L8_H512"}
    sizes.update({name: sizes[key] for name, key in named.items()})
    sizes["base"] = sizes["L12_H768"]
    sizes["large"] = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16)
    return sizes


SIZES: dict[str, BertConfig] = _sizes()
