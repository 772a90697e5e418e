"""The tokenizer on text with known answers, published tests, odd input and bad input."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.text.reference_tokenizer import ReferenceTokenizer, load_vocab
from tests.text.samples import SPECIALS

TOKENS = [
    *SPECIALS, "a", "b", "##a", "##b", "good", "##ness", "istanbul", "cafe", ",", "!", "#", "[",
    "]", "mask", "sep", "\u4e2d", "\u6587", "##\u6587", "\u03c3", "\u03c2", "##\u03c2", "##\u03c3",
    "ab", "##c", "\u00e9", "##\u00e9", "e", "##e", "A", "##A", "\U0001f600", "'",
]  # fmt: skip
AB = TOKENS.index("ab")


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(Vocab(TOKENS))


@pytest.fixture(scope="module")
def goldens(shared):
    """Name of a golden file -> its content, the tokenizer and the port for its vocabulary."""
    loaded = {}
    for name in ("uncased", "cased", "chinese", "multilingual_cased"):
        path = shared / "reference" / f"tokenization_{name}.json"
        golden = json.loads(path.read_text(encoding="utf-8"))
        vocab = shared / "data" / "vocab" / golden["vocab"]
        lowercase = golden["do_lower_case"]
        loaded[name] = (
            golden["cases"],
            BertTokenizer(Vocab.load(vocab), lowercase=lowercase),
            ReferenceTokenizer(load_vocab(vocab), lowercase=lowercase),
        )
    return loaded


def spans(tokenizer, text, **options):
    """Pieces of one text with their offsets."""
    got = tokenizer.tokenize(text, **options)
    fields = (field.flat_values.numpy().tolist() for field in got[:3])
    return [(tokenizer.vocab.id_to_token(i), s, e) for i, s, e in zip(*fields, strict=True)]


@pytest.mark.parametrize("name", ["uncased", "cased", "chinese", "multilingual_cased"])
def test_goldens_of_google(goldens, name):
    cases, tokenizer, port = goldens[name]
    assert [port.ids(case["text"]) for case in cases] == [case["ids"] for case in cases]
    got = tokenizer.tokenize([case["text"] for case in cases])
    assert got.ids.to_list() == [case["ids"] for case in cases]
    offsets = [
        [list(span) for span in zip(*row, strict=True)]
        for row in zip(got.starts.to_list(), got.ends.to_list(), strict=True)
    ]
    with_offsets = [n for n, case in enumerate(cases) if case.get("offsets") is not None]
    assert len(with_offsets) > 50
    assert [offsets[n] for n in with_offsets] == [cases[n]["offsets"] for n in with_offsets]


def complete(tokens):
    """A published vocabulary with the special tokens that it lacks behind it."""
    return Vocab(dict.fromkeys([*tokens, *SPECIALS]))


def test_published_cases(shared):
    path = shared / "reference" / "published_tokenization_tests.json"
    published = json.loads(path.read_text(encoding="utf-8"))
    for source in ("google", "hf"):
        case = published[source]["full_tokenizer"]
        tokenizer = BertTokenizer(complete(case["vocab"]))
        assert tokenizer.tokens(case["input"]) == case["tokens"]
        assert tokenizer.tokenize(case["input"]).ids.to_list() == [case["ids"]]
    google = published["google"]
    pieces = BertTokenizer(complete(google["wordpiece"]["vocab"]), lowercase=False)
    for text, tokens in google["wordpiece"]["cases"]:
        assert pieces.tokens(text) == tokens
    words = [google["basic_chinese"], *google["basic_lower"]]
    words += [{**case, "do_lower_case": False} for case in google["basic_no_lower"]]
    words += [case for case in published["hf"]["basic"] if "never_split" not in case]
    vocab = complete([token for case in words for token in case["tokens"]])
    by_options: dict[tuple, list] = {}
    for case in words:
        options = case.get("do_lower_case", True), case.get("strip_accents")
        by_options.setdefault(options, []).append(case)
    for (lowercase, strip_accents), cases in by_options.items():
        tokenizer = BertTokenizer(vocab, lowercase=lowercase, strip_accents=strip_accents)
        for case in cases:
            assert tokenizer.tokens(case["input"]) == case["tokens"]
    chinese = published["hf"]["tokenize_chinese_chars"]
    vocab = complete([*chinese["true"], *chinese["false"]])
    for setting in (True, False):
        tokenizer = BertTokenizer(vocab, tokenize_chinese_chars=setting)
        assert tokenizer.tokens(chinese["input"]) == chinese[str(setting).lower()]


def test_published_cases_of_keras_hub(shared):
    path = shared / "reference" / "published_tokenization_tests.json"
    case = json.loads(path.read_text(encoding="utf-8"))["keras_hub"]
    words = case["classifier_preprocessor"]
    tokenizer = BertTokenizer(Vocab(words["vocab"]), lowercase=words["lowercase"])
    features = tokenizer(words["input"], pad_to=words["sequence_length"])
    for name in ("token_ids", "segment_ids", "padding_mask"):
        assert features[name].numpy().tolist() == [words[name]]
    special = case["special_tokens_in_strings"]
    got = tokenizer.tokenize(special["input"], special_tokens=SPECIALS)
    assert got.ids.to_list() == [special["ids"]]


def test_published_offsets_of_hugging_face(goldens, shared):
    path = shared / "reference" / "published_tokenization_tests.json"
    case = json.loads(path.read_text(encoding="utf-8"))["hf"]["offsets_uncased_or_cased"]
    for key, name in (("lower", "uncased"), ("cased", "cased")):
        want = [(token, *span) for span, token in case[key][1:-1]]
        assert spans(goldens[name][1], case["input"], special_tokens=["[MASK]"]) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        (" \t\n\u3000\u2028", []),
        ("\0\ufffd\u200b\x07", []),
        ("Goodness!", [("good", 0, 4), ("##ness", 4, 8), ("!", 8, 9)]),
        ("\u0130stanbul", [("istanbul", 0, 8)]),
        ("caf\u00e9 cafe\u0301", [("cafe", 0, 4), ("cafe", 5, 9)]),
        ("a\u200bb", [("ab", 0, 3)]),
        ("\ufeffab\0", [("ab", 1, 3)]),
        ("\u4e2da\u6587", [("\u4e2d", 0, 1), ("a", 1, 2), ("\u6587", 2, 3)]),
        ("good \U0001f600\U0001f600", [("good", 0, 4), ("[UNK]", 5, 7)]),
        ("good\U0001f600", [("[UNK]", 0, 5)]),
        ("\U0001f600", [("\U0001f600", 0, 1)]),
        ("[MASK]##a", [(t, n, n + len(t)) for t, n in (("[", 0), ("mask", 1), ("]", 5))]
         + [("#", 6, 7), ("#", 7, 8), ("a", 8, 9)]),
        ("A\u03a3 a\u03a3a \u03a3 A'\u03a3'", [
            ("a", 0, 1), ("##\u03c2", 1, 2), ("a", 3, 4), ("##\u03c3", 4, 5), ("##a", 5, 6),
            ("\u03c3", 7, 8), ("a", 9, 10), ("'", 10, 11), ("\u03c2", 11, 12), ("'", 12, 13)]),
    ],
)  # fmt: skip
def test_rules_and_offsets(tokenizer, text, want):
    assert spans(tokenizer, text) == want
    got = [row for row in tokenizer.tokenize(["a \u00e9", text, "good"]).starts.to_list()]
    assert got[1] == [start for _, start, _ in want]


def test_wide_gaps_and_unknown_words_do_not_shift_later_offsets(tokenizer):
    text = "\u3000\u3000a \u044f\u044f\u044f \u00a0\u2003 \u2014 good,\u6587\u6587\u6587 b"
    for piece, start, end in spans(tokenizer, text):
        assert text[start:end] == piece or piece == "[UNK]"
    assert [piece for piece, _, _ in spans(tokenizer, text)][-3:] == ["\u6587", "\u6587", "b"]


def test_words_over_the_limit_are_unknown(tokenizer):
    for unit, piece in (("a", "##a"), ("\u00e9", "##e"), ("e\u0301", "##e")):
        longest, longer = unit * 200, unit * 201
        assert spans(tokenizer, longest)[1:][0][0] == piece
        assert len(spans(tokenizer, longest)) == 200
        assert [token for token, _, _ in spans(tokenizer, f"a {longer} b")] == ["a", "[UNK]", "b"]
        assert len(spans(tokenizer, f"{longest},{longest}")) == 401
    short = BertTokenizer(Vocab(TOKENS), max_chars_per_word=2)
    assert short.tokens("ab aba good") == ["ab", "[UNK]", "[UNK]"]
    wide = BertTokenizer(Vocab(TOKENS), max_chars_per_word=2000)
    assert len(wide.tokens("a" * 2000)) == 2000
    assert wide.tokens("a" * 2001) == ["[UNK]"]


def test_word_ids_count_words_and_marks(tokenizer):
    got = tokenizer.tokenize(["goodness, a", "", "\u4e2d\u6587 zzz good"])
    assert got.word_ids.to_list() == [[0, 0, 1, 2], [], [0, 1, 2, 3]]
    assert {field.dtype for field in got} == {tf.int32}


def test_case_and_accents():
    vocab = Vocab(TOKENS)
    tokens = {
        (lowercase, strip): BertTokenizer(vocab, lowercase=lowercase, strip_accents=strip).tokens(
            "A\u00e9"
        )
        for lowercase in (True, False)
        for strip in (True, False, None)
    }
    assert tokens == {
        (True, True): ["a", "##e"],
        (True, None): ["a", "##e"],
        (True, False): ["a", "##\u00e9"],
        (False, True): ["A", "##e"],
        (False, None): ["A", "##\u00e9"],
        (False, False): ["A", "##\u00e9"],
    }


def test_chinese_characters_by_option():
    tokenizer = BertTokenizer(Vocab(TOKENS), tokenize_chinese_chars=False)
    assert spans(tokenizer, "\u4e2d\u6587") == [("\u4e2d", 0, 1), ("##\u6587", 1, 2)]


def test_special_tokens_are_kept_whole_only_where_asked(tokenizer):
    text = "A[MASK]\u00e9 [SEP] [mask][MASK]"
    assert spans(tokenizer, text, special_tokens=("[MASK]",)) == [
        ("a", 0, 1), ("[MASK]", 1, 7), ("e", 7, 8), ("[", 9, 10), ("sep", 10, 13), ("]", 13, 14),
        ("[", 15, 16), ("mask", 16, 20), ("]", 20, 21), ("[MASK]", 21, 27),
    ]  # fmt: skip
    features = tokenizer(["[MASK] a", "b"], ["[SEP]", "a"], special_tokens=("[MASK]", "[SEP]"))
    assert features["token_ids"].numpy().tolist() == [[2, 4, 5, 3, 3, 3], [2, 6, 3, 5, 3, 0]]


@pytest.mark.parametrize("token", ["[NONE]", "good", "a", "!"])
def test_special_tokens_must_be_special(tokenizer, token):
    with pytest.raises(ValueError, match=r"not in the vocabulary as a token of at least three"):
        tokenizer.tokenize("a", special_tokens=[token])


def test_special_tokens_must_not_overlap_themselves():
    tokenizer = BertTokenizer(Vocab([*TOKENS, "---"]))
    with pytest.raises(ValueError, match="'---': begins as it ends"):
        tokenizer.tokenize("a", special_tokens=["---"])


def test_private_characters_in_the_text_are_not_our_own_codes(tokenizer):
    codes = [chr(code) for code in range(0xF0000, 0xF0040)]
    assert {tuple(tokenizer.tokens(char)) for char in codes} == {("[UNK]",)}


def test_odd_vocabularies_do_not_shift_ids():
    tokens = [*TOKENS, "", "a", "", "##", "###", "un-good", "x y", "\u00c9", "zz"]
    tokenizer = BertTokenizer(Vocab(tokens))
    port = ReferenceTokenizer({token: number for number, token in enumerate(tokens)})
    text = "a b un-good ## # x y \u00c9 zz ### un good"
    assert tokenizer.tokenize(text).ids.to_list() == [port.ids(text)]
    assert tokenizer.tokenize("zz").ids.to_list() == [[len(tokens) - 1]]


def test_model_input(tokenizer):
    features = tokenizer(["goodness", "a"], ["a b", "good"], max_length=6)
    assert features["token_ids"].numpy().tolist() == [[2, 9, 10, 3, 5, 3], [2, 5, 3, 9, 3, 0]]
    assert features["segment_ids"].numpy().tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    assert features["padding_mask"].numpy().tolist() == [[1] * 6, [1] * 5 + [0]]
    assert {value.dtype for value in features.values()} == {tf.int32}
    assert tokenizer("a b a b", pad_to=4)["token_ids"].numpy().tolist() == [[2, 5, 6, 3]]
    assert tokenizer("a", pad_to=5)["padding_mask"].numpy().tolist() == [[1, 1, 1, 0, 0]]


def test_texts_and_pairs_must_be_as_many(tokenizer):
    with pytest.raises(ValueError, match="2 texts but 1 pairs"):
        tokenizer(["a", "b"], ["a"])


def test_decode_joins_pieces_to_words(tokenizer):
    ids = tokenizer("Goodness, a!", pad_to=9)["token_ids"][0]
    assert tokenizer.decode(ids) == "goodness , a !"
    assert tokenizer.decode([2, 9, 3], skip_special_tokens=False) == "[CLS] good [SEP]"
    assert tokenizer.decode([]) == ""
    with pytest.raises(ValueError, match="token id 999 is outside the vocabulary"):
        tokenizer.decode([999])


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        ([], []),
        ([""], [[]]),
        (["", "a", "\u200b"], [[], [5], []]),
        ([b"a\xff\xfeb", b"\xed\xa0\x80a", b"\xe4\xb8"], [[AB], [5], []]),
        ([b"\xf4\x90\x80\x80 b"], [[6]]),
        (["a\0b", "\0"], [[AB], []]),
        (["\ud800", "a \udc00b"], [[1], [5, 1]]),
    ],
)  # fmt: skip
def test_odd_input_gets_a_sane_answer(tokenizer, texts, rows):
    assert tokenizer.tokenize(texts).ids.to_list() == rows
    assert tokenizer(texts)["token_ids"].shape[0] == len(rows)


def test_a_text_of_one_megabyte(tokenizer):
    for text in ("good \u00e9 " * 125_000, "a" * 1_000_000, "\u4e2d" * 333_333, "\u00e9" * 500_000):
        got = tokenizer.tokenize([text, "a"])
        assert got.ends.to_list()[0][-1] == len(text.rstrip())
        assert got.ids.to_list()[1] == [5]


@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_wrong_rank_is_refused_eagerly_and_in_graphs(tokenizer, shape):
    texts = tf.fill(shape, "a")
    with pytest.raises(ValueError, match=rf"vector of strings \[N\], .* rank {len(shape)}"):
        tokenizer.tokenize(texts)

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
    def in_graph(texts):
        return tokenizer(texts)

    assert in_graph(tf.constant(["a"]))["token_ids"].numpy().tolist() == [[2, 5, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with expected shape"):
        in_graph(texts)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", 1], "element 1 is int: 1"),
        ([None], "element 0 is NoneType"),
        (7, "received int: 7"),
        (np.array([1.5]), "element 0 is float64"),
    ],
)
def test_what_is_not_text_is_refused(tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        tokenizer.tokenize(texts)


def test_a_tensor_that_is_not_text_is_refused(tokenizer):
    with pytest.raises(ValueError, match="tensor of dtype int32"):
        tokenizer.tokenize(tf.constant([1]))


def test_arrays_and_tuples_of_strings_are_texts(tokenizer):
    for texts in (("a", "b"), np.array(["a", "b"]), np.array(["a", "b"], object)):
        assert tokenizer.tokenize(texts).ids.to_list() == [[5], [6]]


def test_limit_must_be_positive():
    with pytest.raises(ValueError, match="max_chars_per_word must be at least 1, got 0"):
        BertTokenizer(Vocab(TOKENS), max_chars_per_word=0)


def test_copies_are_equal():
    tokenizer = BertTokenizer(
        Vocab(TOKENS), lowercase=False, strip_accents=True, tokenize_chinese_chars=False,
        max_chars_per_word=7,
    )  # fmt: skip
    config = json.loads(json.dumps(tokenizer.get_config()))
    for copy in (BertTokenizer.from_config(config), pickle.loads(pickle.dumps(tokenizer))):
        assert copy.get_config() == config
        assert copy.tokens("A\u00e9 \u4e2d\u6587") == tokenizer.tokens("A\u00e9 \u4e2d\u6587")
