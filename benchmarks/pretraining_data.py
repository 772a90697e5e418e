"""Speed and memory of making pre-training shards, and of the input pipeline.

``python benchmarks/pretraining_data.py TEXT... --vocab vocab.txt [--megabytes 20]``

The texts are repeated to the size asked for. google-research/bert `create_pretraining_data.py`
makes about 700 examples/s on one core with the same meaning of the options: `dupe_factor` passes,
each with pairs and masks of its own, written in the same schema. It keeps all examples in memory
and shuffles them over the whole corpus; we shuffle within a shard (training draws its own order).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOOGLE = 700


def measure(corpus: Path, vocab: Path, form: str, workers: int) -> dict[str, float]:
    """Runs in a process of its own, so that its peak of memory is its own."""
    from keras_bert_impl.data.example_settings import ExampleSettings
    from keras_bert_impl.data.generation import generate
    from keras_bert_impl.text.tokenizer import BertTokenizer
    from keras_bert_impl.text.vocab import Vocab

    tokenizer = BertTokenizer(Vocab.load(vocab))
    tokenizer.tokenize(["Warm up."])
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        output = Path(name) / "shards"
        result = generate(corpus, tokenizer, output, ExampleSettings(form=form), workers=workers)
        seconds = time.monotonic() - began
    peaks = [
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return {
        "examples_per_s": result.examples["train"] / seconds,
        "megabytes_per_s": corpus.stat().st_size / 1e6 / seconds,
        "seconds": seconds,
        "peak_mb_self": peaks[0],
        "peak_mb_worker": peaks[1],
    }


def feed(corpus: Path, vocab: Path) -> dict[str, float]:
    """Examples a second of the dynamic pipeline, batch 32."""
    from keras_bert_impl.data.example_settings import ExampleSettings
    from keras_bert_impl.data.generation import generate
    from keras_bert_impl.data.pretraining_batches import pretraining_batches
    from keras_bert_impl.data.shards import open_shards
    from keras_bert_impl.text.tokenizer import BertTokenizer
    from keras_bert_impl.text.vocab import Vocab

    tokenizer = BertTokenizer(Vocab.load(vocab))
    with tempfile.TemporaryDirectory() as name:
        generate(corpus, tokenizer, Path(name) / "shards", ExampleSettings())
        shards = open_shards(Path(name) / "shards")
        batches = iter(pretraining_batches(shards, tokenizer.vocab, batch_size=32))
        for _ in range(20):
            next(batches)
        began = time.monotonic()
        for _ in range(1000):
            next(batches)
        return {"examples_per_s": 32_000 / (time.monotonic() - began)}


def one(arguments: list[str], cores: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", *arguments]
    pinned = {**os.environ, "TF_NUM_INTRAOP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    if hasattr(os, "sched_setaffinity"):
        usable = set(sorted(os.sched_getaffinity(0))[:cores])
        pin = lambda: os.sched_setaffinity(0, usable)  # noqa: E731
    else:
        pin = None
    done = subprocess.run(command, env=pinned, preexec_fn=pin, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(options: argparse.Namespace) -> None:
    from keras_bert_impl.data.corpus import read_documents

    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name) / "corpus.txt"
        texts = "\n\n".join(d.text for d in read_documents([str(text) for text in options.texts]))
        with corpus.open("w") as file:
            while file.tell() < options.megabytes * 1e6:
                file.write(texts + "\n\n")
        runs = {
            "static, 1 worker": ["measure", str(corpus), str(options.vocab), "static", "1"],
            "static, 2 workers": ["measure", str(corpus), str(options.vocab), "static", "2"],
            "dynamic, 1 worker": ["measure", str(corpus), str(options.vocab), "dynamic", "1"],
            "input pipeline": ["feed", str(corpus), str(options.vocab)],
        }
        found = {}
        for title, arguments in runs.items():
            found[title] = one(arguments, 1 if "1 worker" in title else 2)
            figures = ", ".join(f"{key} {value:,.1f}" for key, value in found[title].items())
            print(f"{title}: {figures}", flush=True)
        static, two = found["static, 1 worker"], found["static, 2 workers"]
        print(f"static against google-research: {static['examples_per_s'] / GOOGLE:.0f}x")
        print(f"2 workers against 1: {static['seconds'] / two['seconds']:.2f}x")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        what, where, words, *rest = sys.argv[2:]
        job = measure if what == "measure" else feed
        numbers = job(Path(where), Path(words), *(int(r) if r.isdigit() else r for r in rest))
        print(json.dumps(numbers))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("texts", nargs="+", type=Path)
        parser.add_argument("--vocab", required=True, type=Path)
        parser.add_argument("--megabytes", type=float, default=20)
        main(parser.parse_args())
