"""Kills `generate` at random points with SIGKILL, goes on, and compares the shards.

``python benchmarks/kill_generation.py [--times 12] [--workers 2]``: makes shards of a corpus of
its own without interruption, then the same by a process that is killed again and again, and says
whether all bytes are equal.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", "ran", "far", "away", "from", "its", "old"]


def write_corpus(path: Path) -> None:
    draw = random.Random(0)
    with path.open("w") as file:
        for _ in range(6000):
            for _ in range(draw.randint(4, 30)):
                file.write(" ".join(draw.choices(WORDS, k=draw.randint(3, 20))) + ".\n")
            file.write("\n")


def generate(corpus: Path, output: Path, workers: int) -> None:
    from keras_bert_impl.data.example_settings import ExampleSettings
    from keras_bert_impl.data.generation import generate as run
    from keras_bert_impl.text.tokenizer import BertTokenizer
    from keras_bert_impl.text.vocab import Vocab

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "."]
    settings = ExampleSettings(form="static", chunk_bytes=60_000, hold_out=0.1)

    def show(progress) -> None:
        print(progress.chunks, flush=True)

    tokenizer = BertTokenizer(Vocab(tokens))
    run(corpus, tokenizer, output, settings, workers=workers, on_progress=show)


def digests(folder: Path) -> dict[str, str]:
    files = [*folder.glob("*.tfrecord"), folder / "manifest.json"]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main(times: int, workers: int) -> bool:
    with tempfile.TemporaryDirectory() as name:
        corpus, whole, killed = (Path(name) / part for part in ("corpus.txt", "whole", "killed"))
        write_corpus(corpus)
        command = [sys.executable, __file__, "--workers", str(workers), "--make"]
        quiet = {"stdout": subprocess.PIPE, "text": True}
        subprocess.run([*command, str(corpus), str(whole)], check=True, **quiet)
        draw = random.Random(time.time())
        for number in range(times):
            process = subprocess.Popen([*command, str(corpus), str(killed)], **quiet)
            before = int(process.stdout.readline())
            for _ in range(draw.randint(0, 3)):
                process.stdout.readline()
            time.sleep(draw.uniform(0, 0.3))
            process.kill()
            process.wait()
            done = len(list((killed / ".progress").glob("[0-9]*.npz")))
            print(f"kill {number + 1}: began with {before - 1}, {done} finished", flush=True)
        subprocess.run([*command, str(corpus), str(killed)], check=True, **quiet)
        equal = digests(whole) == digests(killed)
        print(f"{len(digests(whole))} files {'equal' if equal else 'DIFFER'} after {times} kills")
        return equal


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--make", nargs=2, type=Path, metavar=("CORPUS", "OUTPUT"))
    options = parser.parse_args()
    if options.make:
        generate(*options.make, options.workers)
    else:
        sys.exit(not main(options.times, options.workers))
