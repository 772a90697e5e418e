"""Tokenizer files: what is read from which folder, and the round trip."""

from __future__ import annotations

import json

import pytest

from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.tokenizer_files import read_tokenizer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "##ness"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    return tmp_path


def write_json(path, **content):
    path.write_text(json.dumps(content), encoding="utf-8")


def test_options_of_tokenizer_config(folder):
    write_json(
        folder / "tokenizer_config.json",
        do_lower_case=False, strip_accents=True, tokenize_chinese_chars=False, model_max_length=512,
    )  # fmt: skip
    tokenizer = BertTokenizer.from_pretrained(folder)
    assert tokenizer.get_config() == {
        "tokens": TOKENS,
        "lowercase": False,
        "strip_accents": True,
        "tokenize_chinese_chars": False,
        "max_chars_per_word": 200,
    }
    assert BertTokenizer.from_pretrained(folder, lowercase=True).lowercase


def test_saving_and_reading_keeps_everything(tmp_path, folder):
    (folder / "vocab.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*TOKENS, "", "x"]).encode())
    saved = BertTokenizer.from_pretrained(
        folder, lowercase=False, strip_accents=True, tokenize_chinese_chars=False,
        max_chars_per_word=9,
    )  # fmt: skip
    saved.save_pretrained(tmp_path / "new")
    assert (tmp_path / "new/vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()
    assert BertTokenizer.from_pretrained(tmp_path / "new").get_config() == saved.get_config()
    config = json.loads((tmp_path / "new/tokenizer_config.json").read_text())
    assert config["do_lower_case"] is False
    assert config["strip_accents"] is True
    assert config["tokenize_chinese_chars"] is False


def test_tokenizer_json_serves_where_vocab_txt_is_missing(tmp_path):
    write_json(
        tmp_path / "tokenizer.json",
        model={"type": "WordPiece", "vocab": {t: n for n, t in enumerate(TOKENS)}},
        normalizer={"lowercase": False, "strip_accents": None, "handle_chinese_chars": False},
        added_tokens=[{"content": "[NEW]", "id": 8}],
    )
    vocab, options = read_tokenizer(tmp_path)
    assert vocab.tokens == (*TOKENS, "", "[NEW]")
    assert options == {"lowercase": False, "strip_accents": None, "tokenize_chinese_chars": False}


def test_tokenizer_config_wins_over_tokenizer_json(folder):
    write_json(folder / "tokenizer_config.json", do_lower_case=False)
    write_json(folder / "tokenizer.json", normalizer={"lowercase": True, "strip_accents": False})
    assert read_tokenizer(folder)[1] == {"lowercase": False, "strip_accents": False}


@pytest.mark.parametrize(
    ("word", "lowercase"), [("good", True), ("Good", False), ("##Ж", False), ("<S>", True)]
)
def test_the_case_is_told_from_the_vocabulary_of_googles_folders(folder, word, lowercase):
    (folder / "vocab.txt").write_text("\n".join([*TOKENS, word]), encoding="utf-8")
    assert BertTokenizer.from_pretrained(folder).lowercase is lowercase


def test_published_vocabularies_tell_their_case(shared, tmp_path):
    for name, lowercase in (
        ("uncased", True),
        ("chinese", True),
        ("cased", False),
        ("multilingual-cased", False),
    ):
        vocab = shared / "data" / "vocab" / f"bert-base-{name}-vocab.txt"
        (tmp_path / "vocab.txt").write_bytes(vocab.read_bytes())
        assert read_tokenizer(tmp_path)[1] == {"lowercase": lowercase}


def test_a_folder_without_a_vocabulary_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither vocab\.txt nor tokenizer\.json"):
        BertTokenizer.from_pretrained(tmp_path)


def test_broken_files_are_named(folder):
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: not valid JSON"):
        read_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: expected a JSON object"):
        read_tokenizer(folder)


def test_other_kinds_of_tokenizer_are_refused(tmp_path):
    write_json(tmp_path / "tokenizer.json", model={"type": "BPE", "vocab": {"a": 0}})
    with pytest.raises(ValueError, match=r"expected a WordPiece vocabulary, .* type 'BPE'"):
        read_tokenizer(tmp_path)
