"""Title: From a Wikipedia dump to words for a mask.

Description: learns a vocabulary, makes shards, pre-trains a small BERT and asks it; what
`keras-bert vocab`, `pretrain-data`, `pretrain` and `fill-mask` do, in Python.

    python examples/wikipedia_to_fill_mask.py enwiki-latest-pages-articles1.xml.bz2 FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.jobs import (
    PretrainSettings,
    fill_texts,
    make_shards,
    make_vocabulary,
    pretrain,
)
from keras_bert_impl.jobs.pretraining_progress import Window

TEXTS = ("the capital of france is [MASK] .", "he was [MASK] in the year 1900 .")


def main(
    dump: str, folder: str, vocab_size: int = 8000, size: str = "tiny", steps: int = 5000
) -> None:
    folder = Path(folder)
    vocabulary = make_vocabulary(dump, folder / "vocab.txt", size=vocab_size)
    print(f"{vocabulary.tokens} tokens from {vocabulary.words} words")

    made = make_shards(
        dump, vocabulary.file, folder / "shards", ExampleSettings(hold_out=0.05), cased=False
    )
    print("\n".join(made.report))

    settings = PretrainSettings(
        data=made.folder,
        output=folder / "run",
        size=size,
        steps=steps,
        save_every=max(steps // 10, 1),
        learning_rate=1e-3,
    )
    pretrain(settings, lambda event: print(event) if isinstance(event, Window) else None)

    filled = fill_texts(folder / "run", TEXTS)
    for text, masks in zip(filled.texts, filled.masks, strict=True):
        print(text, [f"{c.token} {c.probability:.3f}" for c in masks[0]])


if __name__ == "__main__":
    main(*sys.argv[1:])
