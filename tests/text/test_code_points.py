"""The stored Unicode properties, and every single code point against the port of the rules."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from keras_bert_impl.text.code_points import DATA_FILE, UNICODE_VERSION, ranges_of
from keras_bert_impl.text.code_points_build import compute
from keras_bert_impl.text.tokenizer import BertTokenizer
from tests.text.reference_tokenizer import ReferenceTokenizer
from tests.text.samples import SPECIALS, Vocab, changed_code_points

VARIANTS = [
    {"lowercase": True},
    {"lowercase": False},
    {"lowercase": True, "strip_accents": False},
    {"lowercase": False, "strip_accents": True},
    {"lowercase": True, "tokenize_chinese_chars": False},
]


@pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION,
    reason=f"unicodedata of this Python is not of Unicode {UNICODE_VERSION}",
)
def test_stored_file_is_what_unicodedata_says():
    fresh = compute()
    with np.load(DATA_FILE) as stored:
        assert set(stored.files) == set(fresh)
        for name in stored.files:
            np.testing.assert_array_equal(stored[name], fresh[name], err_msg=name)


def test_stored_file_is_small():
    assert DATA_FILE.stat().st_size < 300_000


def test_ranges_of():
    assert ranges_of(np.array([1, 1, 0, 0, 1], bool)) == [(0, 1), (4, 4)]
    assert ranges_of(np.array([0, 0], bool)) == []


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_plain_code_point_is_treated_as_the_port_does(variant):
    """The whole domain of the fast path: strings of it are not rewritten."""
    plain = _tokenizer(["a", "##b"], variant)._tables.plain_codes
    codes = [c for c in np.flatnonzero(plain).tolist() if c not in changed_code_points()]
    assert len(codes) > 15_000
    letters = [chr(c) for c in codes if not chr(c).isspace()]
    tokens = ["a", "##b", "b", *letters, *(f"##{char}" for char in letters)]
    _compare(tokens, codes, variant)


@pytest.mark.parametrize("variant", VARIANTS[:2], ids=str)
def test_every_other_code_point_is_treated_as_the_port_does(variant):
    """All planes; those that a table block shares with its neighbours are sampled."""
    plain = _tokenizer(["a", "##b"], variant)._tables.plain_codes
    codes = [
        code
        for code in range(0x110000)
        if not plain[code]
        and not 0xD800 <= code < 0xE000
        and code not in changed_code_points()
        and (unicodedata.category(chr(code)) not in ("Cn", "Co") or code % 97 == 0)
        and (code < 0x20000 or code > 0x2EBE0 or code % 7 == 0)
    ]
    assert len(codes) > 40_000
    results = {
        part
        for code in codes
        for form in (chr(code), unicodedata.normalize("NFD", chr(code).lower()))
        for part in form
        if not part.isspace()
    }
    tokens = ["a", "##b", "b", *sorted(results), *(f"##{part}" for part in sorted(results))]
    _compare(tokens, codes, variant)


def _tokenizer(tokens, variant):
    return BertTokenizer(Vocab(dict.fromkeys([*SPECIALS, *tokens])), **variant)


def _compare(tokens, codes, variant):
    tokenizer = _tokenizer(tokens, variant)
    port = ReferenceTokenizer(
        {token: number for number, token in enumerate(tokenizer.vocab.tokens)}, **variant
    )
    texts = [f"a{chr(code)}b" for code in codes]
    got = tokenizer.tokenize(texts)
    for text, ids, words, starts, ends in zip(
        texts,
        got.ids.to_list(),
        got.word_ids.to_list(),
        got.starts.to_list(),
        got.ends.to_list(),
        strict=True,
    ):
        assert (ids, words) == port.ids_and_words(text), ascii(text)
        assert (starts[0], ends[-1]) == (0, 3), ascii(text)
