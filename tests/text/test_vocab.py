"""Vocabularies as they are published: blank lines, duplicates, CRLF, a byte order mark."""

from __future__ import annotations

import logging

import pytest

from keras_bert_impl.text.vocab import Vocab

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]


def write(path, lines, end="\n", head=b""):
    path.write_bytes(head + "".join(line + end for line in lines).encode("utf-8"))
    return path


def test_line_number_is_the_id(tmp_path):
    vocab = Vocab.load(write(tmp_path / "vocab.txt", TOKENS))
    assert [vocab.token_to_id(token) for token in TOKENS] == list(range(len(TOKENS)))
    assert (vocab.pad_id, vocab.unk_id, vocab.cls_id, vocab.sep_id, vocab.mask_id) == (
        0, 1, 2, 3, 4,
    )  # fmt: skip
    assert len(vocab) == len(TOKENS)
    assert vocab.id_to_token(6) == "##b"
    assert vocab.token_to_id("zzz") is None
    assert "a" in vocab
    assert "zzz" not in vocab


@pytest.mark.parametrize(("end", "head"), [("\r\n", b""), ("\n", b"\xef\xbb\xbf"), (" \n", b"")])
def test_line_ends_and_mark_are_no_part_of_a_token(tmp_path, end, head):
    path = write(tmp_path / "vocab.txt", TOKENS, end, head)
    assert Vocab.load(path).tokens == tuple(TOKENS)


@pytest.mark.parametrize("data", [b"\r\n", b"\n", b"\n\n", b""])
def test_saving_gives_the_identical_file(tmp_path, data):
    path = write(tmp_path / "vocab.txt", [*TOKENS, " x\u3000", "", "a"], "\r\n", b"\xef\xbb\xbf")
    path.write_bytes(path.read_bytes() + b"last" + data)
    Vocab.load(path).save(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == path.read_bytes()


def test_saving_a_list_writes_a_token_a_line(tmp_path):
    Vocab(TOKENS).save(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == ("\n".join(TOKENS) + "\n").encode()


def test_blank_and_duplicate_lines_keep_their_numbers(tmp_path, caplog):
    path = write(tmp_path / "vocab.txt", [*TOKENS, "", "a", "z"])
    with caplog.at_level(logging.WARNING):
        vocab = Vocab.load(path)
    assert vocab.token_to_id("z") == 9
    assert vocab.token_to_id("a") == 8
    assert vocab.id_to_token(5) == "a"
    assert len(vocab) == 10
    blank, duplicate = (record.getMessage() for record in caplog.records)
    assert f"{path}: 1 blank line(s), the first is line 8" in blank
    assert "'a' on line 6" in duplicate
    assert "id is 8" in duplicate


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(("\n".join(TOKENS) + "\nx\u2028y\nz\x85w\n").encode())
    assert Vocab.load(path).tokens[-2:] == ("x\u2028y", "z\x85w")


def test_missing_required_tokens_are_named_with_the_file(tmp_path):
    path = write(tmp_path / "vocab.txt", ["[PAD]", "[CLS]", "<unk>"])
    with pytest.raises(ValueError, match=r"vocab\.txt: \[UNK\], \[SEP\] not found among 3 tokens"):
        Vocab.load(path)


def test_bytes_that_are_not_utf8_are_named_with_the_line(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\n[UNK]\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"vocab\.txt, line 3: not UTF-8"):
        Vocab.load(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        Vocab.load(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("number", [-1, 7])
def test_an_id_outside_is_refused(number):
    with pytest.raises(ValueError, match=rf"token id {number} is outside the vocabulary \[0, 7\)"):
        Vocab(TOKENS).id_to_token(number)


def test_mask_is_optional():
    assert Vocab(["[UNK]", "[CLS]", "[SEP]", "[PAD]"]).mask_id is None
