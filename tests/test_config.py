"""BertConfig: the numbers of the published sizes, both JSON formats, messages."""

from __future__ import annotations

import dataclasses
import json

import pytest

from keras_bert_impl.config import SIZES, BertConfig

SMALL = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
GOOGLE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.2,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 21128,
    "directionality": "bidi",
    "pooler_fc_size": 768,
}
HUGGING_FACE = {
    **GOOGLE,
    "model_type": "bert",
    "layer_norm_eps": 1e-9,
    "position_embedding_type": "absolute",
    "architectures": ["BertForMaskedLM"],
    "classifier_dropout": None,
}


def counted(config: BertConfig) -> int:
    """Devlin et al. 2019, section 3, counted by hand: with pooler, learned positions, post-LN."""
    h, f = config.hidden_size, config.intermediate_size
    tables = (30522 + 512 + 2) * h
    attention = 4 * (h + 1) * h
    feed_forward = (h + 1) * f + (f + 1) * h
    norm = 2 * h
    blocks = config.num_hidden_layers * (attention + feed_forward + 2 * norm)
    return tables + norm + blocks + (h + 1) * h


def test_published_sizes():
    assert SIZES["base"].num_parameters == 109_482_240
    assert SIZES["large"].num_parameters == 335_141_888
    miniatures = {name for name in SIZES if name.startswith("L")}
    assert len(miniatures) == 24
    for name in miniatures:
        config = SIZES[name]
        assert name == f"L{config.num_hidden_layers}_H{config.hidden_size}"
        assert config.num_attention_heads == config.hidden_size // 64
        assert config.intermediate_size == 4 * config.hidden_size
    assert {config.num_parameters == counted(config) for config in SIZES.values()} == {True}
    # Turc et al. 2019, table 1, in millions.
    published = {"tiny": 4.4, "mini": 11.2, "small": 28.8, "medium": 41.4}
    assert {name: round(SIZES[name].num_parameters / 1e6, 1) for name in published} == published


@pytest.mark.parametrize(
    "config",
    [
        SIZES["tiny"],
        SMALL.replace(norm_position="pre", type_vocab_size=4, intermediate_size=12),
        SMALL.replace(position_embedding_type="sinusoidal", vocab_size=40),
    ],
    ids=["tiny", "pre", "sinusoidal"],
)
def test_parameters_are_those_of_the_built_encoder(config):
    from keras_bert_impl.models import BertEncoder

    assert BertEncoder(config).count_params() == config.num_parameters


def test_google_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text("\ufeff" + json.dumps(GOOGLE), encoding="utf-8")
    config = BertConfig.from_file(path)
    assert config.hidden_act == "gelu_tanh"
    assert (config.vocab_size, config.hidden_dropout_prob) == (21128, 0.2)
    assert (config.layer_norm_eps, config.position_embedding_type) == (1e-12, "learned")


@pytest.mark.parametrize(
    ("family", "name", "expected"),
    [
        ("google", "gelu", "gelu_tanh"),
        ("google", "relu", "relu"),
        ("huggingface", "gelu", "gelu_erf"),
        ("huggingface", "gelu_new", "gelu_tanh"),
        ("huggingface", "gelu_pytorch_tanh", "gelu_tanh"),
        ("huggingface", "relu", "relu"),
    ],
)
def test_activation_by_family(family, name, expected):
    config = BertConfig.from_dict({**GOOGLE, "hidden_act": name}, family=family)
    assert config.hidden_act == expected


def test_hugging_face_file_by_name_or_content(tmp_path):
    for name, values in (
        ("config.json", HUGGING_FACE),
        ("other.json", HUGGING_FACE),
        ("config.json", GOOGLE),
    ):
        path = tmp_path / name
        path.write_text(json.dumps(values))
        config = BertConfig.from_file(path)
        assert config.hidden_act == "gelu_erf"
        assert config.layer_norm_eps == values.get("layer_norm_eps", 1e-12)


@pytest.mark.parametrize("family", ["google", "huggingface"])
@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        SMALL.replace(hidden_act="gelu_erf", layer_norm_eps=1e-5, type_vocab_size=1),
        SMALL.replace(hidden_act="relu", position_embedding_type="sinusoidal"),
        SMALL.replace(norm_position="pre", hidden_dropout_prob=0),
    ],
    ids=["default", "erf", "sinusoidal", "pre"],
)
def test_what_is_written_is_read_back(config, family):
    values = json.loads(json.dumps(config.to_family(family)))
    assert BertConfig.from_dict(values, family=family) == config
    assert BertConfig(**json.loads(json.dumps(config.to_dict()))) == config


def test_written_files_are_what_their_families_read():
    assert SMALL.to_family("google")["hidden_act"] == "gelu"
    assert set(SMALL.to_family("google")) == {*GOOGLE, "layer_norm_eps"} - {
        "directionality",
        "pooler_fc_size",
    }
    values = SMALL.replace(hidden_act="gelu_erf").to_family("huggingface")
    assert (values["hidden_act"], values["model_type"]) == ("gelu", "bert")
    assert values["position_embedding_type"] == "absolute"


def test_real_files(shared):
    google = BertConfig.from_file(shared / "data/weights/tf1_tiny_keras_bert/bert_config.json")
    assert (google.hidden_size, google.num_hidden_layers, google.vocab_size) == (4, 2, 15)
    assert google.hidden_act == "gelu_tanh"
    for name in ("pretraining", "sequence_classification", "question_answering"):
        config = BertConfig.from_file(shared / f"data/weights/tiny_random_hf/{name}/config.json")
        assert (config.hidden_size, config.num_hidden_layers, config.vocab_size) == (32, 3, 60)
        assert (config.hidden_act, config.max_position_embeddings) == ("gelu_erf", 40)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 10, "num_attention_heads": 3}, r"hidden_size \(10\) must be a multiple"),
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"vocab_size": 10.5}, "vocab_size must be int, got 10.5"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be int, got True"),
        ({"hidden_size": "8"}, "hidden_size must be int, got '8'"),
        ({"hidden_dropout_prob": 1.0}, r"hidden_dropout_prob must be in \[0, 1\), got 1.0"),
        ({"attention_probs_dropout_prob": -0.1}, "attention_probs_dropout_prob must be in"),
        ({"layer_norm_eps": 0}, "layer_norm_eps must be greater than 0"),
        ({"initializer_range": float("nan")}, "initializer_range must be greater than 0"),
        ({"hidden_act": "gelu"}, r"hidden_act must be one of \('gelu_erf', 'gelu_tanh'"),
        ({"position_embedding_type": "rotary"}, "position_embedding_type must be one of"),
        ({"norm_position": "both"}, "norm_position must be one of"),
    ],
)
def test_bad_values(changes, message):
    with pytest.raises(ValueError, match=message):
        SMALL.replace(**changes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vocab_size": 3}, r"a file: missing \['hidden_size', .*found \['vocab_size'\]"),
        ({**GOOGLE, "hidden_act": "swish"}, r"a file: hidden_act must be one of .*got 'swish'"),
        ({**GOOGLE, "hidden_act": ["gelu"]}, r"a file: hidden_act must be one of"),
        ({**HUGGING_FACE, "model_type": "roberta"}, "a file: model_type must be 'bert'"),
        ({**HUGGING_FACE, "is_decoder": True}, "a file: is_decoder must be false"),
        ({**HUGGING_FACE, "position_embedding_type": "relative_key"}, "'absolute' or 'sinusoidal'"),
        ({**GOOGLE, "num_attention_heads": 5}, "a file: hidden_size .* must be a multiple"),
    ],
)
def test_bad_files_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        BertConfig.from_dict(values, family="huggingface", where="a file")


def test_files_that_are_no_configs(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json: no such config file"):
        BertConfig.from_file(tmp_path / "none.json")
    for content, message in (
        ("{", "not a JSON file"),
        ("[1]", "expected a JSON object, got list"),
        (b"\xff\xfe\x00", "not a JSON file"),
    ):
        path = tmp_path / "bad.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(ValueError, match=rf"bad\.json: {message}"):
            BertConfig.from_file(path)
    with pytest.raises(ValueError, match="family must be one of"):
        BertConfig.from_dict(GOOGLE, family="pytorch")


def test_configs_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.hidden_size = 3
