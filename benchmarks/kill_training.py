"""Kills `pretrain` at random points with SIGKILL, resumes, and compares the finished runs.

``python benchmarks/kill_training.py [--times 12] [--form dynamic]``: pre-trains a tiny model
without interruption, then the same in a process that is killed again and again, in steps,
evaluations and while checkpoints are written, and says whether weights, scores and history are
equal, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", "ran", "far", "away", "from", "its", "old"]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "."]
STEPS, SAVE_EVERY = 320, 8


def make_data(folder: Path, form: str) -> tuple[Path, Path]:
    """Shards and a config."""
    from keras_bert_impl.data.example_settings import ExampleSettings
    from keras_bert_impl.data.generation import generate
    from keras_bert_impl.text.tokenizer import BertTokenizer
    from keras_bert_impl.text.vocab import Vocab

    draw = random.Random(0)
    corpus, shards, config = folder / "corpus.txt", folder / "shards", folder / "config.json"
    with corpus.open("w") as file:
        for _ in range(200):
            for _ in range(draw.randint(4, 20)):
                file.write(" ".join(draw.choices(WORDS, k=draw.randint(3, 12))) + ".\n")
            file.write("\n")
    settings = ExampleSettings(form=form, max_seq_length=32, chunk_bytes=20_000, hold_out=0.1)
    generate(corpus, BertTokenizer(Vocab(TOKENS)), shards, settings)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    more = {"vocab_size": len(TOKENS), "intermediate_size": 32, "max_position_embeddings": 32}
    config.write_text(json.dumps({**sizes, **more}))
    return shards, config


def train(shards: Path, config: Path, output: Path) -> None:
    """Begins or resumes a run; a line of output for each part, step or window."""
    from keras_bert_impl import jobs

    def show(event) -> None:
        print(type(event).__name__, getattr(event, "step", ""), flush=True)

    if (output / "pretraining.json").exists():
        settings = jobs.settings_to_resume(output)
    else:
        settings = jobs.PretrainSettings(
            data=shards, size=str(config), output=output, steps=STEPS, batch_size=8,
            learning_rate=5e-3, save_every=SAVE_EVERY,
        )  # fmt: skip
    jobs.pretrain(settings, show)


def content(folder: Path) -> dict:
    """All numbers of a finished run but the speeds."""
    import h5py

    found = {}

    def add(name, item) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item[()].tobytes()

    for file in (folder / "model.weights.h5", *folder.glob("checkpoints/*/model.weights.h5")):
        with h5py.File(file) as stream:
            stream.visititems(lambda name, item, file=file: add(f"{file.name}/{name}", item))
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    evaluations = [(line["step"], line["eval"]) for line in lines]
    # A window that a kill cut in two has other means than a whole one, so only its steps count.
    metrics = json.loads((folder / "metrics.json").read_text())["eval"]
    checkpoints = sorted(file.name for file in folder.glob("checkpoints/*"))
    return {**found, "history": evaluations, "metrics": metrics, "checkpoints": checkpoints}


def main(times: int, form: str) -> bool:
    with tempfile.TemporaryDirectory() as name:
        whole, killed = Path(name) / "whole", Path(name) / "killed"
        shards, config = make_data(Path(name), form)
        command = [sys.executable, __file__, "--train", str(shards), str(config)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        subprocess.run([*command, str(whole)], check=True, **pipes)
        draw = random.Random(time.time())
        for number in range(times):
            with subprocess.Popen([*command, str(killed)], **pipes) as process:
                windows, last = draw.randint(0, 4), ""
                for line in process.stdout:
                    last = line.strip() or last
                    windows -= line.startswith("Window")
                    if windows < 0:
                        break
                time.sleep(draw.uniform(0, 0.2))
                process.kill()
                rest = process.stdout.read().split("\n")
            last = ([last] + [line for line in rest if line])[-1]
            saved = sorted(p.name for p in killed.glob("checkpoints/step-*"))
            print(f"kill {number + 1}: at {last}, checkpoints {saved}", flush=True)
        subprocess.run([*command, str(killed)], check=True, **pipes)
        ours, theirs = content(killed), content(whole)
        unequal = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        left = [str(p.relative_to(killed)) for p in killed.rglob("*.partial*")]
        print(f"{len(ours)} values {'DIFFER: ' + str(unequal) if unequal else 'equal'} after "
              f"{times} kills; left half written: {left or 'nothing'}")  # fmt: skip
        return not unequal and not left


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--form", choices=("dynamic", "static"), default="dynamic")
    parser.add_argument("--train", nargs=3, type=Path, metavar=("SHARDS", "CONFIG", "OUTPUT"))
    options = parser.parse_args()
    if options.train:
        train(*options.train)
    else:
        sys.exit(not main(options.times, options.form))
