"""Chinese words, found by jieba, for masking of whole words.

BERT's vocabularies hold single Chinese characters without ``##``, so the pieces do not show which
of them make a word.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Sequence

import numpy as np

from keras_bert_impl.sources import cache_dir
from keras_bert_impl.text.code_points import CHINESE, load_code_points
from keras_bert_impl.text.tokenizer import Tokens

__all__ = ["continues_chinese_word"]


def continues_chinese_word(texts: Sequence[str], tokens: Tokens) -> np.ndarray:
    """Says which pieces are Chinese characters that go on with the word of the piece before.

    Args:
        texts: N texts.
        tokens: their pieces, as ``BertTokenizer.tokenize`` gives them.

    Returns:
        bool [pieces], in the order of ``tokens.ids.flat_values``.

    Raises:
        ValueError: jieba is not installed.
    """
    segmenter = _segmenter()
    words = [word for text in texts for word in segmenter.cut(text)]
    word_of = np.repeat(np.arange(len(words)), [len(word) for word in words])
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    chinese = load_code_points().kind[codes] == CHINESE
    bases = np.cumsum([0, *map(len, texts)])[:-1]
    rows = np.repeat(np.arange(len(texts)), tokens.ids.row_lengths().numpy())
    places = bases[rows] + tokens.starts.flat_values.numpy()
    continues = np.zeros(len(places), bool)
    before, after = places[:-1], places[1:]
    continues[1:] = (word_of[before] == word_of[after]) & chinese[before] & chinese[after]
    return continues


@functools.cache
def _segmenter():
    try:
        import jieba
    except ImportError:
        raise ValueError(
            "whole words of Chinese need jieba: pip install 'keras-bert-impl[chinese]'"
        ) from None
    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # By default jieba reads its dictionary back from the folder for temporary files, which other
    # users may write to.
    folder = cache_dir() / "jieba"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    segmenter.tmp_dir = str(folder)
    return segmenter
