"""Documents to arrays of token ids."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from keras_bert_impl.data.documents import tokenize_documents
from keras_bert_impl.text import words
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "##ness", "!", "中", "国", "人"]


def test_documents_without_tokens_are_dropped_and_counted():
    tokenizer = BertTokenizer(Vocab(WORDS))
    documents = tokenize_documents(
        tokenizer, [["good", " "], ["\u200b\x00", ""], [], ["goodness!", "\u200b", "good"]]
    )
    assert documents.token_ids.tolist() == [5, 5, 6, 7, 5]
    assert documents.continues.tolist() == [False, False, True, False, False]
    assert documents.sentence_starts.tolist() == [0, 1, 4, 5]
    assert documents.document_starts.tolist() == [0, 1, 3]
    assert (documents.dropped_sentences, documents.dropped_documents) == (4, 2)
    assert len(tokenize_documents(tokenizer, [["\u200b"]])) == 0


def test_pieces_of_a_chinese_word_hang_together():
    pytest.importorskip("jieba")
    tokenizer = BertTokenizer(Vocab(WORDS))
    texts = [["中国人good中国goodness", "国"], ["\u200b 中 国 中国！", "\ud800中国"]]
    documents = tokenize_documents(tokenizer, texts, chinese_words=True)
    pieces = [
        "~" * int(continues) + tokenizer.vocab.id_to_token(token)
        for token, continues in zip(documents.token_ids, documents.continues, strict=True)
    ]
    assert pieces[:10] == "中 ~国 人 good 中 ~国 good ~##ness 国 中".split()
    assert pieces[10:] == "国 中 ~国 [UNK] [UNK] 中 ~国".split()
    plain = tokenize_documents(tokenizer, texts)
    np.testing.assert_array_equal(plain.token_ids, documents.token_ids)
    assert plain.continues.sum() == 1


def test_chinese_words_without_jieba_say_what_to_install(monkeypatch):
    words._segmenter.cache_clear()
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(ValueError, match=r"need jieba: pip install 'keras-bert-impl\[chinese\]'"):
        tokenize_documents(BertTokenizer(Vocab(WORDS)), [["中国"]], chinese_words=True)
