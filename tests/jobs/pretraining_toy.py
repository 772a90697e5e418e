"""A corpus, shards and a model so small that a run takes seconds."""

from __future__ import annotations

import json
import random
from pathlib import Path

from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.generation import generate
from keras_bert_impl.data.masking import Masking
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

WORDS = "the a cat dog sun moon sees likes finds big small old new house tree river".split()
CONFIG = {
    "vocab_size": 5 + len(WORDS) + 1,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
}


def make_corpus(file: Path, documents: int = 30) -> Path:
    draw = random.Random(0)
    text = "\n\n".join(
        "\n".join(
            " ".join(draw.choices(WORDS, k=draw.randint(3, 9))) + " ."
            for _ in range(draw.randint(3, 8))
        )
        for _ in range(documents)
    )
    file.write_text(text + "\n", "utf-8")
    return file


def make_shards(folder: Path, **options) -> Path:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "."]
    settings = {
        "max_seq_length": 24,
        "masking": Masking(max_predictions=4),
        "hold_out": 0.25,
        "chunk_bytes": 2000,
        **options,
    }
    corpus = make_corpus(folder.with_suffix(".txt"))
    generate(corpus, BertTokenizer(Vocab(tokens)), folder, ExampleSettings(**settings))
    return folder


def write_config(file: Path, **changes) -> Path:
    file.write_text(json.dumps({**CONFIG, **changes}), "utf-8")
    return file
