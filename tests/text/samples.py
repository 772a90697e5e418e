"""Vocabulary and random strings of the tokenizer tests; both reach into all Unicode planes."""

from __future__ import annotations

import functools
import random
import unicodedata

import numpy as np

from keras_bert_impl.text.code_points import UNICODE_VERSION, load_code_points
from keras_bert_impl.text.code_points_build import compute
from keras_bert_impl.text.vocab import Vocab

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["good", "##ness", "bad", "##ly", "un", "##believ", "##able", "the", "istanbul", "##stan"]
ODD = [
    *"\u0301\u0327\u0345\u0bbe\u302e\u302f\u1b44\ua953\u093f\u0f71\u0f73\u200d\ufe0f\u20e3",
    *"\u03a3\u03c3\u03c2\u0391\u03b1\u1fb3\u1f88\u0130\u0131\u01c5\u00df\ufb01\u1e9e\u212a\u2126",
    *"\u00e9\u00c9\u00ad\u200b\ufeff\ufffd\0\x07\x85\xa0\u1680\u180e\u2028\u2029\u3000\u00b7\u2019",
    *"\uac00\ud55c\u1112\u1161\u11ab\u3131\u304c\u304b\u3099\uff76\uff9e\uff01\uff21\uff5e",
    *"\u4e2d\u6587\u3400\uf900\ufa0e\U00020000\U0002f800\u2f00\u3007\u3001\u3002\u30fb",
    *"\U0001f600\U0001f468\U0001f3fd\U0001d15e\U0001d165\U0001d16d\U0001d1bb\U00010400\U0001e900",
    *"\ue000\uf8ff\U000f0000\U000f0001\U00100000\U0010ffff\ufffe\u0378\U0001b000\U00011f43",
    *"\u037e\u1fef\u2329\u2014\u201c\u00a1\u055a\u0589\u05be\u061f\u0964\u0e2a\u0e31\u1b4e\u10d6e",
]


@functools.cache
def changed_code_points() -> dict[int, None]:
    """What ``str.translate`` needs to drop characters that this Python's newer Unicode changed."""
    if unicodedata.unidata_version == UNICODE_VERSION:
        return {}
    stored, fresh = load_code_points(), compute()
    changed = np.zeros(0x110000, bool)
    for name in ("sigma", "order", "mark"):
        changed |= getattr(stored, name) != fresh[name]
    changed |= (stored.kind < 4) & (stored.kind != fresh["kind"])
    for name, pairs in (("lower", stored.lower), ("nfd", stored.nfd)):
        keys = set(fresh[f"{name}_keys"].tolist()) ^ set(pairs)
        changed[list(keys)] = True
    return dict.fromkeys(np.flatnonzero(changed).tolist())


def assigned() -> list[str]:
    """All characters but surrogates, private ones and those that Unicode has not given out."""
    return [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")
        and code not in changed_code_points()
    ]


def character_vocab(characters: list[str]) -> Vocab:
    """The characters, their lower and decomposed forms, alone and as continuations."""
    forms: dict[str, None] = {}
    for char in characters:
        for text in (char, char.lower(), unicodedata.normalize("NFD", char.lower())):
            forms.update(dict.fromkeys(part for part in text if not part.isspace()))
    tails = [f"##{form}" for form in forms]
    return Vocab(dict.fromkeys([*SPECIALS, *WORDS, *forms, *tails]))


def fuzz_vocab(seed: int) -> Vocab:
    """ASCII, the odd characters, and 4,000 characters from anywhere."""
    choose = random.Random(seed)
    ascii_characters = [chr(code) for code in range(33, 127)]
    return character_vocab([*ascii_characters, *ODD, *choose.sample(assigned(), 4000)])


def _any_plane(choose: random.Random) -> str:
    code = choose.choice(
        (choose.randrange(0x250), choose.randrange(0xD800), choose.randrange(0xE000, 0x10000),
         choose.randrange(0x10000, 0x20000), choose.randrange(0x20000, 0x110000))
    )  # fmt: skip
    return chr(code)


def _piece(choose: random.Random, known: list[str]) -> str:
    kind = choose.randrange(12)
    if kind < 3:
        return "".join(choose.choices("aAbBoOéüÅ", k=choose.randrange(1, 8)))
    if kind == 3:
        return choose.choice(WORDS).replace("##", "").title()
    if kind == 4:
        return choose.choice(" \t\n\u00a0\u3000")
    if kind == 5:
        return "".join(choose.choices(ODD, k=choose.randrange(1, 5)))
    if kind == 6:
        return "".join(_any_plane(choose) for _ in range(choose.randrange(1, 6)))
    if kind == 7:
        return "".join(choose.choices("Σ.'\u0301aA:\u00b7 \u00ad", k=choose.randrange(2, 7)))
    if kind == 8:
        return "e" + "".join(choose.choices("\u0301\u0327\u302e\u1b44\u0bd7\U0001d165\u0338", k=4))
    if kind == 9 and choose.random() < 0.15:
        unit = choose.choice(("a", "é", "中", "я", "한", "\U0001e900", "e\u0301", "\u200ba", "!a"))
        return unit * choose.choice((66, 67, 99, 100, 101, 199, 200, 201, 202, 300))
    if kind == 10:
        return choose.choice(("[MASK]", "[SEP]", "##a", "##", "[UNK]", ",", "--", "U.S.", "c++"))
    return "".join(choose.choices(known, k=choose.randrange(1, 6)))


def random_strings(seed: int, count: int, vocab: Vocab) -> list[str]:
    """Strings that mix words, odd characters and characters of all planes; no surrogates."""
    choose = random.Random(seed)
    known = [token for token in vocab.tokens if len(token) == 1]
    strings = []
    for _ in range(count):
        pieces = [_piece(choose, known) for _ in range(choose.randrange(0, 9))]
        strings.append(choose.choice(("", " ")).join(pieces))
    return [string.translate(changed_code_points()) for string in strings]
