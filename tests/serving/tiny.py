"""A classifier small enough to export in seconds, with probabilities that tell texts apart."""

from __future__ import annotations

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

LABELS = ("bad", "mixed, on the whole", "gut 👍")
MAX_LENGTH = 16
WORDS = [
    *("good", "bad", "a", "the", "film", "##s", "plot", "is", "thin", "c", "##a", "##fe"),
    *"!.,中文很好看👍",
]

CONFIG = BertConfig(
    vocab_size=4 + len(WORDS),
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=32,
    initializer_range=0.6,
)


def tokenizer() -> BertTokenizer:
    return BertTokenizer(Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]))


def classifier(**kwargs) -> BertClassifier:
    keras.utils.set_random_seed(7)
    return BertClassifier(CONFIG, len(LABELS), **kwargs)
