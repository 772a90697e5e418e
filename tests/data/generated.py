"""A small corpus, its tokenizer, and what is in the shards made of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

WORDS = "the cat dog sat on a mat ran far away from its old red house and slept well".split()
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ed", "."]


def tokenizer() -> BertTokenizer:
    return BertTokenizer(Vocab(TOKENS))


def write_corpus(path: Path, documents: int = 60, seed: int = 0) -> Path:
    """Sentences a line, blank lines between documents, about 1 KB a document."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(documents):
        for _ in range(rng.integers(4, 20)):
            words = rng.choice(WORDS, rng.integers(3, 15))
            lines.append(" ".join(words) + ".")
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every shard."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.glob("*.tfrecord*"))
    }


def examples_of(file: Path) -> list[dict[str, list]]:
    """Features of every record, by TensorFlow's own readers."""
    kind = "GZIP" if file.suffix == ".gz" else ""
    found = []
    for record in tf.data.TFRecordDataset(str(file), kind).as_numpy_iterator():
        example = tf.train.Example.FromString(record)
        found.append(
            {
                key: list(feature.int64_list.value)
                if feature.HasField("int64_list")
                else list(feature.float_list.value)
                for key, feature in example.features.feature.items()
            }
        )
    return found
