"""Tokenizer files of a model folder: ours, Hugging Face's and Google's."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from keras_bert_impl.text.vocab import Vocab

__all__ = ["is_lowercase", "read_tokenizer", "write_tokenizer"]

logger = logging.getLogger(__name__)

# Hugging Face's name in tokenizer_config.json, its name in the normalizer of tokenizer.json, ours.
OPTIONS = (
    ("do_lower_case", "lowercase", "lowercase"),
    ("strip_accents", "strip_accents", "strip_accents"),
    ("tokenize_chinese_chars", "handle_chinese_chars", "tokenize_chinese_chars"),
)


def read_tokenizer(folder: Path) -> tuple[Vocab, dict[str, Any]]:
    """Vocabulary and options of a folder.

    The vocabulary is ``vocab.txt``, else the one in ``tokenizer.json``. Each option is taken from
    ``tokenizer_config.json``, else from ``tokenizer.json``. Google's folders have neither: there
    the case is told from the vocabulary, see `is_lowercase`.

    Raises:
        FileNotFoundError: the folder holds neither ``vocab.txt`` nor ``tokenizer.json``.
        ValueError: a file is not valid JSON or holds no WordPiece vocabulary.
    """
    config = _read_json(folder / "tokenizer_config.json")
    tokenizer = _read_json(folder / "tokenizer.json")
    if (folder / "vocab.txt").is_file():
        vocab = Vocab.load(folder / "vocab.txt")
    elif tokenizer:
        vocab = _vocab_of(tokenizer, folder / "tokenizer.json")
    else:
        raise FileNotFoundError(f"{folder}: neither vocab.txt nor tokenizer.json is there")
    normalizer = tokenizer.get("normalizer") or {}
    options: dict[str, Any] = {}
    for config_name, normalizer_name, own_name in OPTIONS:
        if config_name in config:
            options[own_name] = config[config_name]
        elif normalizer_name in normalizer:
            options[own_name] = normalizer[normalizer_name]
    if "max_chars_per_word" in config:
        options["max_chars_per_word"] = config["max_chars_per_word"]
    if "lowercase" not in options:
        options["lowercase"] = is_lowercase(vocab)
        logger.info("%s does not name the case; lowercase=%s", folder, options["lowercase"])
    return vocab, options


def write_tokenizer(folder: Path, vocab: Vocab, options: dict[str, Any]) -> None:
    """Write ``vocab.txt`` and ``tokenizer_config.json`` into a folder, which is made if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab.save(folder / "vocab.txt")
    config = {foreign: options[own] for foreign, _, own in OPTIONS}
    config["max_chars_per_word"] = options["max_chars_per_word"]
    text = json.dumps({"tokenizer_class": "BertTokenizer", **config}, indent=2)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def _vocab_of(tokenizer: dict[str, Any], path: Path) -> Vocab:
    model = tokenizer.get("model") or {}
    kind, ids = model.get("type", "WordPiece"), model.get("vocab")
    if kind != "WordPiece" or not isinstance(ids, dict):
        raise ValueError(f"{path}: expected a WordPiece vocabulary, found a model of type {kind!r}")
    added = {entry["content"]: entry["id"] for entry in tokenizer.get("added_tokens", [])}
    ids = {**ids, **added}
    tokens = [""] * (max(ids.values(), default=-1) + 1)
    for token, number in ids.items():
        tokens[number] = token
    return Vocab(tokens, origin=str(path))


def is_lowercase(vocab: Vocab) -> bool:
    """Whether no word of a vocabulary has a capital, for folders that do not name the case.

    Only tokens all of letters count: Google's uncased Chinese vocabulary has ``<S>`` and ``<T>``.
    """
    words = (token.removeprefix("##") for token in vocab.tokens)
    return not any(word.isalpha() and word != word.lower() for word in words)
