from __future__ import annotations

import random
from collections import Counter

import pytest

from keras_bert_impl.data.corpus_words import count_corpus_words
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab_learning import SPECIAL_TOKENS, learn_vocab
from keras_bert_impl.text.word_counts import count_words
from tests.data.generated import write_corpus
from tests.text.reference_tokenizer import ReferenceTokenizer
from tests.text.samples import ODD, fuzz_vocab, random_strings


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_are_those_of_googles_tokenizer(lowercase):
    reference = ReferenceTokenizer({}, lowercase=lowercase)
    texts = [*random_strings(5, 400, fuzz_vocab(5)), "".join(ODD), "ΟΔΟΣ Οδός, x\u2028y 北京A."]
    expected = Counter(word for text in texts for word in reference.words(text))
    assert count_words(texts, lowercase=lowercase) == expected


def english_counts() -> dict[str, int]:
    stems = ["walk", "talk", "jump", "paint", "visit", "want", "clean", "open"]
    endings = ["", "s", "ed", "ing", "er", "ers"]
    return {s + e: 10 * len(s) + len(e) for s in stems for e in endings}


@pytest.mark.parametrize("size", [215, 230, 240])
def test_size_is_exact_and_no_word_is_unknown(size):
    counts = english_counts()
    vocab = learn_vocab(counts, size)
    assert len(vocab) == len(set(vocab.tokens)) == size
    tokenizer = BertTokenizer(vocab)
    for word in counts:
        pieces = tokenizer.tokens(word)
        assert "".join(piece.removeprefix("##") for piece in pieces) == word
    assert tokenizer.tokens("x9!") == ["x", "##9", "!"]


def test_order_of_the_tokens():
    tokens = learn_vocab(english_counts(), 130, unused=3).tokens
    assert tokens[:8] == (*SPECIAL_TOKENS, "[unused0]", "[unused1]", "[unused2]")
    assert tokens[8:11] == ("!", '"', "#")
    assert learn_vocab(english_counts(), 230).tokens[99] == "[unused94]"


def test_order_of_the_counts_does_not_matter():
    items = list(english_counts().items())
    expected = learn_vocab(dict(items), 230).tokens
    random.Random(0).shuffle(items)
    assert learn_vocab(dict(items), 230).tokens == expected


def test_chinese_characters_and_punctuation_stand_alone():
    counts = count_words(["北京在北方。北京，café naïve CAFÉ"])
    vocab = learn_vocab(counts, 206)
    assert {"北", "京", "。", "，"} & set(vocab.tokens) == {"北", "京"}  # the others occur once
    assert not any(token.startswith("##") and ord(token[2]) > 127 for token in vocab.tokens)
    assert "##!" not in vocab
    rare = learn_vocab(counts, 210, min_frequency=1)
    assert {"在", "方", "。", "，"} <= set(rare.tokens)


def test_size_that_cannot_be_had():
    with pytest.raises(ValueError, match=r"too small for a vocabulary of 30522 tokens.*at most 2"):
        learn_vocab(english_counts(), 30522)
    with pytest.raises(ValueError, match=r"no room .* ask for at least 204"):
        learn_vocab(english_counts(), 150)


def test_largest_size_of_the_message_can_be_had():
    with pytest.raises(ValueError, match="at most") as error:
        learn_vocab(english_counts(), 1000)
    largest = int(str(error.value).split("at most ")[1].split()[0])
    assert len(learn_vocab(english_counts(), largest)) == largest


def test_counts_of_a_corpus_do_not_depend_on_the_number_of_workers(tmp_path):
    corpus = write_corpus(tmp_path / "corpus.txt")
    expected = count_words([corpus.read_text()])
    done = []
    found = [
        count_corpus_words(corpus, workers=workers, on_progress=done.append) for workers in (1, 2)
    ]
    assert found == [expected, expected]
    assert done[0] > 0


def test_corpus_without_words(tmp_path):
    (tmp_path / "corpus.txt").write_text("\x01\x02\n\n\x03\n")
    with pytest.raises(ValueError, match="no word"):
        count_corpus_words(tmp_path / "corpus.txt", corpus_format="sentences")
