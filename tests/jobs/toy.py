"""A task so small that a random model learns it in seconds: which list do the words come from?"""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = {
    "good": "fine great lovely superb warm brilliant charming witty".split(),
    "bad": "awful dull poor boring cold dreadful stale silly".split(),
}
FILLERS = "the film was a play and its music story with actors".split()
ENDINGS = ["##s", "##ly", "##ing", ".", "!", "?"]
VOCAB = [*SPECIAL, *WORDS["good"], *WORDS["bad"], *FILLERS, *ENDINGS]
CONFIG = {
    "vocab_size": len(VOCAB),
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def rows(number: int, seed: int) -> list[tuple[str, str]]:
    """Texts with their labels, as many of each."""
    draw = random.Random(seed)
    made = []
    for index in range(number):
        label = ("good", "bad")[index % 2]
        words = [*draw.sample(WORDS[label], 2), *draw.sample(FILLERS, draw.randint(1, 6))]
        draw.shuffle(words)
        made.append((" ".join(words), label))
    return made


def write_tsv(path: Path, table: list[tuple[str, ...]], header: str | None = "text\tlabel") -> Path:
    lines = ([header] if header else []) + ["\t".join(row) for row in table]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_weights(folder: Path, **changes) -> Path:
    """A folder with a random encoder and its vocabulary."""
    from keras_bert_impl import BertConfig, BertEncoder

    BertEncoder(BertConfig(**{**CONFIG, **changes})).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCAB), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> SimpleNamespace:
    """Paths of `train`, `dev`, `test` and `weights`."""
    folder = tmp_path_factory.mktemp("toy")
    sizes = {"train": 96, "dev": 24, "test": 20}
    paths = {
        name: write_tsv(folder / f"{name}.tsv", rows(size, seed))
        for seed, (name, size) in enumerate(sizes.items())
    }
    return SimpleNamespace(**paths, weights=write_weights(folder / "weights"))


def settings(toy, output: Path, **changes):
    from keras_bert_impl.jobs import FinetuneSettings

    values = {
        **{"train": toy.train, "dev": toy.dev, "weights": toy.weights, "output": output},
        **{"epochs": 6, "batch_size": 8, "learning_rate": 3e-3, "max_length": 32, "seed": 1},
    }
    return FinetuneSettings(**{**values, **changes})


@pytest.fixture(scope="session")
def trained(toy, tmp_path_factory) -> SimpleNamespace:
    """A finished run: its `folder`, the `result` of the job, the `events` on the way."""
    from keras_bert_impl.jobs import finetune

    folder, events = tmp_path_factory.mktemp("runs") / "toy", []
    result = finetune(settings(toy, folder), events.append)
    return SimpleNamespace(folder=folder, result=result, events=events)


def weights_of(folder) -> dict[str, np.ndarray]:
    """The weights in a run folder by their paths."""
    found = {}
    with h5py.File(folder / "model.weights.h5") as file:
        file.visititems(
            lambda name, item: (
                found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found
