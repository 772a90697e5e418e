"""20,000 strings from all Unicode planes: the port's answer in Python, tf.data and a SavedModel."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.text.tokenizer import BertTokenizer
from tests.text.reference_tokenizer import ReferenceTokenizer
from tests.text.samples import fuzz_vocab, random_strings

COUNT, SEED = 20_000, 20260
FIELDS = ("ids", "starts", "ends", "word_ids")
VARIANTS = {
    "uncased": {"lowercase": True},
    "cased": {"lowercase": False},
}
RARER_VARIANTS = {
    "lower, accents kept": {"lowercase": True, "strip_accents": False},
    "cased, accents dropped": {"lowercase": False, "strip_accents": True},
    "chinese words": {"tokenize_chinese_chars": False},
    "short words": {"max_chars_per_word": 3},
}
FRESH_PROCESS = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
texts = np.load(sys.argv[1], allow_pickle=True)
for folder in sys.argv[2:]:
    result = tf.saved_model.load(folder).tokenize(tf.constant(texts))
    np.savez(folder + ".npz", **{name: value.numpy() for name, value in result.items()})
assert "keras_bert_impl" not in sys.modules
"""


@pytest.fixture(scope="module")
def vocab():
    return fuzz_vocab(SEED)


@pytest.fixture(scope="module")
def texts(vocab):
    return random_strings(SEED, COUNT, vocab)


@pytest.fixture(scope="module")
def tokenizers(vocab):
    return {name: BertTokenizer(vocab, **options) for name, options in VARIANTS.items()}


@pytest.fixture(scope="module")
def wanted(vocab, texts):
    """What the port says: name -> ids and word numbers of each text."""
    ids = {token: number for number, token in enumerate(vocab.tokens)}
    ports = {name: ReferenceTokenizer(ids, **options) for name, options in VARIANTS.items()}
    return {name: [port.ids_and_words(text) for text in texts] for name, port in ports.items()}


@pytest.fixture(scope="module")
def eager(tokenizers, texts):
    return {name: tokenizer.tokenize(texts) for name, tokenizer in tokenizers.items()}


def exported(tokenizer):
    """Tensors that a SavedModel can give, for one tokenizer."""

    def tokenize(texts):
        tokens = tokenizer.tokenize(texts)._asdict()
        flat = {field: value.flat_values for field, value in tokens.items()}
        return {**flat, "row_splits": tokens["ids"].row_splits}

    return tokenize


def check(texts, got, wanted):
    pairs = zip(got.ids.to_list(), got.word_ids.to_list(), strict=True)
    different = [ascii(t) for t, a, b in zip(texts, pairs, wanted, strict=True) if a != b]
    assert not different, f"{len(different)} texts differ, such as {different[:3]}"


@pytest.mark.parametrize("name", VARIANTS)
def test_python(texts, eager, wanted, name):
    check(texts, eager[name], wanted[name])
    ids = eager[name].ids.flat_values
    assert tf.reduce_mean(tf.cast(ids == 1, tf.float32)) < 0.2, "too few known words to tell much"


@pytest.mark.parametrize("name", RARER_VARIANTS)
def test_other_options(vocab, texts, name):
    options, some = RARER_VARIANTS[name], texts[:5000]
    port = ReferenceTokenizer({t: n for n, t in enumerate(vocab.tokens)}, **options)
    check(
        some,
        BertTokenizer(vocab, **options).tokenize(some),
        [port.ids_and_words(text) for text in some],
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_tf_data(texts, tokenizers, eager, name):
    dataset = (
        tf.data.Dataset.from_tensor_slices(texts)
        .batch(61)
        .map(tokenizers[name].tokenize, num_parallel_calls=tf.data.AUTOTUNE)
        .unbatch()
        .batch(COUNT)
    )
    (got,) = list(dataset)
    for field in FIELDS:
        want = getattr(eager[name], field)
        np.testing.assert_array_equal(getattr(got, field).flat_values, want.flat_values)
        np.testing.assert_array_equal(getattr(got, field).row_splits, want.row_splits)


def test_saved_model_in_a_fresh_process(texts, tokenizers, eager, tmp_path):
    folders = {name: str(tmp_path / name) for name in tokenizers}
    for name, tokenizer in tokenizers.items():
        module = tf.Module()
        module.tokenize = tf.function(
            exported(tokenizer),
            input_signature=[tf.TensorSpec([None], tf.string, name="texts")],
            autograph=False,
        )
        tf.saved_model.save(module, folders[name])
    np.save(tmp_path / "texts.npy", np.array(texts, object))
    arguments = [sys.executable, "-c", FRESH_PROCESS, str(tmp_path / "texts.npy")]
    subprocess.run([*arguments, *folders.values()], check=True, cwd=tmp_path)
    for name, folder in folders.items():
        with np.load(folder + ".npz") as got:
            np.testing.assert_array_equal(got["row_splits"], eager[name].ids.row_splits)
            for field in FIELDS:
                want = getattr(eager[name], field).flat_values
                np.testing.assert_array_equal(got[field], want, err_msg=f"{name} {field}")


@pytest.mark.parametrize("name", VARIANTS)
def test_offsets_lie_in_the_text_and_grow(texts, eager, name):
    got = eager[name]
    for text, starts, ends in zip(texts, got.starts.to_list(), got.ends.to_list(), strict=True):
        assert all(0 <= a < b <= len(text) for a, b in zip(starts, ends, strict=True)), ascii(text)
        assert starts == sorted(starts), ascii(text)
        assert ends == sorted(ends), ascii(text)


def test_text_between_the_offsets_is_the_piece(vocab, texts, eager):
    """Exactly for cased text, but for characters that are deleted."""
    port = ReferenceTokenizer({}, lowercase=False)
    got, compared = eager["cased"], 0
    for text, ids, starts, ends in zip(
        texts, got.ids.to_list(), got.starts.to_list(), got.ends.to_list(), strict=True
    ):
        for number, start, end in zip(ids, starts, ends, strict=True):
            if number != vocab.unk_id:
                piece = vocab.id_to_token(number)
                piece = piece[2:] if len(piece) > 2 and piece.startswith("##") else piece
                assert "".join(port.words(text[start:end])) == piece, (ascii(text), start, end)
                compared += 1
    assert compared > 100_000


def test_text_between_the_offsets_normalises_to_the_word(texts, eager):
    """Whole words of uncased text, unknown ones too; pieces of a word can share a character."""
    port = ReferenceTokenizer({})
    got = eager["uncased"]
    for text, words, starts, ends in zip(
        texts, got.word_ids.to_list(), got.starts.to_list(), got.ends.to_list(), strict=True
    ):
        if "\u03a3" in text:  # what stands around a sigma decides on its form
            continue
        want = port.words(text)
        for number in set(words):
            places = [n for n, word in enumerate(words) if word == number]
            span = text[starts[places[0]] : ends[places[-1]]]
            assert "".join(port.words(span)) == want[number], (ascii(text), span)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_batch_gives_what_its_rows_give(texts, tokenizers, eager, name):
    wanted = {field: getattr(eager[name], field)[:200].to_list() for field in FIELDS}
    for number in range(200):
        for field, value in tokenizers[name].tokenize(texts[number])._asdict().items():
            assert value.flat_values.numpy().tolist() == wanted[field][number], ascii(texts[number])


def test_broken_utf8_counts_as_python_counts_it(tokenizers, vocab):
    random = np.random.default_rng(SEED)
    pool = np.frombuffer(
        b"aB \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\xed\xa0\x80\xff\xc0\xf4\x90", "u1"
    )
    broken = [random.choice(pool, random.integers(0, 30)).tobytes() for _ in range(3000)]
    port = ReferenceTokenizer({token: number for number, token in enumerate(vocab.tokens)})
    got = tokenizers["uncased"].tokenize(broken)
    check(broken, got, [port.ids_and_words(data.decode("utf-8", "ignore")) for data in broken])
    replaced = tokenizers["uncased"].tokenize([data.decode("utf-8", "replace") for data in broken])
    np.testing.assert_array_equal(got.starts.flat_values, replaced.starts.flat_values)
    np.testing.assert_array_equal(got.ends.flat_values, replaced.ends.flat_values)
