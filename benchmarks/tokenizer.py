"""Speed of our tokenizer beside tensorflow_text's and Hugging Face's, English and Chinese.

    taskset -c 0 python benchmarks/tokenizer.py --data FOLDER --output tokenizer.json

From a string tensor (a list for Hugging Face) to ids and character or byte offsets, in MB of UTF-8
a second. The tokenizers take turns, each warmed up before; medians of the rounds and the ratio of
medians are shown. ``FOLDER`` holds ``data/pretrain_en``, ``data/pretrain_zh`` and ``data/vocab``;
without it the text is made from this repository's own samples. tensorflow_text's
FastBertTokenizer does not give Google's ids for all text; it is there for its speed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import tensorflow as tf
import tensorflow_text as tf_text

from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

REPO = Path(__file__).resolve().parent.parent
ENGLISH_FILES = ("novels.txt.gz", "sotu.part1.txt.gz")
CHINESE_FILES = ("hongloumeng.txt.gz", "wiki_paragraphs_cmrc.txt.gz")
SMALL_ENGLISH = (
    "The quick brown fox jumps over the lazy dog, and nobody minds.",
    "\u201cIt isn\u2019t late,\u201d she said \u2014 \u201cwe\u2019ll take the 9:15 train.\u201d",
    "A caf\u00e9 near the station sells unbelievably good coffee for $3.50.",
)
SMALL_CHINESE = (
    "\u8fd9\u5bb6\u9152\u5e97\u7684\u4f4d\u7f6e\u5f88\u597d\uff0c\u623f\u95f4\u4e5f\u5e72\u51c0\u3002",
    "\u4f5c\u8005\u57282008\u5e74\u5199\u4e86\u8fd9\u672c\u4e66\uff0c\u5185\u5bb9\u5f88\u6709\u610f\u601d\u3002",
)


def read_lines(folder: Path, names: tuple[str, ...], limit: int) -> list[str]:
    """Lines with text in them, of about ``limit`` bytes together, the same share of each file."""
    lines: list[str] = []
    for name in names:
        size = 0
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            for line in file:
                if size > limit / len(names):
                    break
                if line.strip():
                    lines.append(line.strip())
                    size += len(line.encode("utf-8"))
    return lines


def corpora(data: Path | None, megabytes: float) -> dict[str, tuple[list[str], Vocab]]:
    """Language -> lines and vocabulary."""
    limit = int(megabytes * 1e6)
    if data is not None:
        folder, vocabs = data / "data", data / "data" / "vocab"
        return {
            "English": (
                read_lines(folder / "pretrain_en", ENGLISH_FILES, limit),
                Vocab.load(vocabs / "bert-base-uncased-vocab.txt"),
            ),
            "Chinese": (
                read_lines(folder / "pretrain_zh", CHINESE_FILES, limit),
                Vocab.load(vocabs / "bert-base-chinese-vocab.txt"),
            ),
        }
    made = {}
    for language, sentences in (("English", SMALL_ENGLISH), ("Chinese", SMALL_CHINESE)):
        line = " ".join(sentences)
        words = dict.fromkeys(line.lower().split())
        letters = dict.fromkeys(char for char in line.lower() if not char.isspace())
        tokens = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *words])
        tails = [f"##{letter}" for letter in letters]
        repeats = limit // len(line.encode("utf-8"))
        made[language] = ([line] * repeats, Vocab(dict.fromkeys([*tokens, *tails])))
    return made


def contenders(lines: list[str], vocab: Vocab) -> dict[str, Callable[[], object]]:
    """Name -> what is timed; each is given its input in the form that it takes best."""
    texts = tf.constant(lines)
    ours = BertTokenizer(vocab)
    fast_bert = tf_text.FastBertTokenizer(
        list(vocab.tokens), lower_case_nfd_strip_accents=True, token_out_type=tf.int32
    )
    in_graph = tf.function(
        lambda: fast_bert.tokenize_with_offsets(texts), input_signature=[], autograph=False
    )
    runs = {
        "keras_bert_impl": lambda: ours.tokenize(texts).ends.flat_values.numpy(),
        "tensorflow_text FastBertTokenizer": lambda: in_graph()[2].flat_values.numpy(),
    }
    try:
        from tokenizers.implementations import BertWordPieceTokenizer
    except ImportError:
        print("tokenizers is not installed: pip install tokenizers")
        return runs
    theirs = BertWordPieceTokenizer({token: number for number, token in enumerate(vocab.tokens)})
    runs["tokenizers encode_batch"] = lambda: theirs.encode_batch(lines, add_special_tokens=False)
    return runs


def measure(runs: dict[str, Callable[[], object]], size: int, rounds: int) -> dict[str, float]:
    """Median MB/s of each, the contenders taking turns."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: size / statistics.median(times) / 1e6 for name, times in seconds.items()}


def main() -> None:
    """Measure, print a table, write JSON."""
    shared = os.environ.get("KERAS_BERT_SHARED")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(shared) if shared else None)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=float, default=4.0, help="text of each language")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    results = {}
    for language, (lines, vocab) in corpora(options.data, options.megabytes).items():
        size = sum(len(line.encode("utf-8")) for line in lines)
        speeds = measure(contenders(lines, vocab), size, options.rounds)
        own = speeds["keras_bert_impl"]
        print(f"\n{language}: {len(lines)} lines, {size / 1e6:.1f} MB, {options.rounds} rounds")
        for name, speed in speeds.items():
            print(f"  {name:36s}{speed:8.1f} MB/s   ours / this {own / speed:6.2f}")
        results[language] = {
            "lines": len(lines),
            "bytes": size,
            "megabytes_per_second": speeds,
            "ratio_of_ours": {name: own / speed for name, speed in speeds.items()},
        }
    if options.output:
        report = {"rounds": options.rounds, "results": results}
        options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
