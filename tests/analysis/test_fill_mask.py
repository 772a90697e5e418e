"""Candidates for masks: against the model's own logits, real ones, spaces, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from keras import ops

from keras_bert_impl.analysis import fill_mask
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertClassifier, BertPretrainer
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.reference_bert import randomise

WORDS = "the man went to store play ##ing ##ed paris 中 国 的 都 是 北 京 . sep [ ]"
VOCAB = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()])
TOKENIZER = BertTokenizer(VOCAB)
CONFIG = BertConfig(
    vocab_size=len(VOCAB) + 3,  # rows that no token has, as in padded tables
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=12,
)


@pytest.fixture(scope="module")
def model():
    model = BertPretrainer(CONFIG)
    randomise(model, seed=3)
    return model


def scores_at(model, tokens: str) -> list[np.ndarray]:
    """Probabilities at each [MASK] of tokens that are written out."""
    ids = np.array([[VOCAB.token_to_id(token) for token in tokens.split()]], "int32")
    logits = ops.convert_to_numpy(model({"token_ids": ids})["masked_lm"])[0][:, : len(VOCAB)]
    exp = np.exp(logits.astype("float64"))
    return list((exp / exp.sum(-1, keepdims=True))[ids[0] == VOCAB.mask_id])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The man [MASK] to.", "[CLS] the man [MASK] to . [SEP]"),
        ("[MASK]man[MASK]", "[CLS] [MASK] man [MASK] [SEP]"),
        ("中国的[MASK]都是北京", "[CLS] 中 国 的 [MASK] 都 是 北 京 [SEP]"),
        ("the [MASK] [SEP]", "[CLS] the [MASK] [ sep ] [SEP]"),
        ("[MASK]", "[CLS] [MASK] [SEP]"),
    ],
)
def test_candidates_are_the_models(model, text, tokens):
    (found,) = fill_mask(model, TOKENIZER, text, top_k=len(VOCAB))
    expected = scores_at(model, tokens)
    assert len(found) == len(expected)
    for candidates, probabilities in zip(found, expected, strict=True):
        assert sorted(c.id for c in candidates) == list(range(len(VOCAB)))
        assert sum(c.probability for c in candidates) == pytest.approx(1)
        ours = [c.probability for c in candidates]
        assert ours == sorted(ours, reverse=True)
        for c in candidates:
            assert c.token == VOCAB.id_to_token(c.id)
            assert c.probability == pytest.approx(probabilities[c.id], rel=1e-3)


def test_the_text_is_filled(model):
    first, second = fill_mask(model, TOKENIZER, "中[MASK]的 play [MASK] .", top_k=len(VOCAB))[0]
    texts = {candidate.token: candidate.text for candidate in first}
    assert texts["国"] == "中国的 play [MASK] ."
    texts = {candidate.token: candidate.text for candidate in second}
    assert texts["paris"] == "中[MASK]的 play paris ."
    assert texts["##ing"] == "中[MASK]的 playing ."


def test_many_texts_are_as_one_by_one(model):
    texts = ["the [MASK]", "the man went to the [MASK] .", "[MASK] [MASK] to", "paris [MASK]"]
    together = fill_mask(model, TOKENIZER, texts, top_k=3, batch_size=3)
    for text, found in zip(texts, together, strict=True):
        (alone,) = fill_mask(model, TOKENIZER, [text], top_k=3)
        assert [[c.token for c in mask] for mask in found] == [
            [c.token for c in mask] for mask in alone
        ]
        np.testing.assert_allclose(
            [[c.probability for c in mask] for mask in found],
            [[c.probability for c in mask] for mask in alone],
            rtol=1e-4,
        )
    assert fill_mask(model, TOKENIZER, []) == []


def test_texts_without_a_mask_are_refused(model):
    with pytest.raises(ValueError, match=r"text 2 has no \[MASK\] \(in capitals\): 'the \[mask\]'"):
        fill_mask(model, TOKENIZER, ["[MASK]", "the [mask]"])


def test_long_texts_are_refused(model):
    fits = "the " * 9 + "[MASK]"
    assert len(fill_mask(model, TOKENIZER, fits)[0]) == 1
    with pytest.raises(ValueError, match=r"text 1 has 13 tokens .* the model takes at most 12"):
        fill_mask(model, TOKENIZER, f"the {fits}")


@pytest.mark.parametrize("top_k", [0, len(VOCAB) + 1])
def test_top_k_is_checked(model, top_k):
    with pytest.raises(ValueError, match=f"top_k must be from 1 to {len(VOCAB)}, got {top_k}"):
        fill_mask(model, TOKENIZER, "[MASK]", top_k=top_k)


def test_models_and_vocabularies_that_do_not_fit(model):
    with pytest.raises(ValueError, match=r"takes a BertPretrainer.*got BertClassifier"):
        fill_mask(BertClassifier(CONFIG, 2), TOKENIZER, "[MASK]")
    unmasked = BertTokenizer(Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]))
    with pytest.raises(ValueError, match=r"the vocabulary has no \[MASK\] among its 5 tokens"):
        fill_mask(model, unmasked, "[MASK]")
    larger = BertTokenizer(Vocab([*VOCAB.tokens, "a", "b", "c", "d"]))
    with pytest.raises(ValueError, match="has 29 tokens, the model's vocab_size is 28"):
        fill_mask(model, larger, "[MASK]")


def test_a_real_model(shared, berttiny):
    golden = json.loads((shared / "data/weights/real_berttiny_mlm_golden/golden.json").read_text())
    content = json.loads((berttiny / "tokenizer.json").read_text())["model"]["vocab"]
    tokenizer = BertTokenizer(Vocab(sorted(content, key=content.get)))
    model = BertPretrainer.from_pretrained(berttiny)
    expected = golden["top10_tokens_at_mask"]
    found = fill_mask(model, tokenizer, list(expected), top_k=10)
    for (candidates,), wanted in zip(found, expected.values(), strict=True):
        assert [c.token for c in candidates] == [token for token, _ in wanted]
        ratios = [np.log(c.probability / candidates[0].probability) for c in candidates]
        np.testing.assert_allclose(ratios, [x - wanted[0][1] for _, x in wanted], atol=2e-4)
    assert found[0][0][0].text == "paris is the capital of city ."
