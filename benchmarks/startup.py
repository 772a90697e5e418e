"""Seconds to import the package and to show the help of the command, in fresh processes.

python benchmarks/startup.py --output startup.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import keras_bert_impl": ["-c", "import keras_bert_impl"],
    "keras-bert --help": ["-m", "keras_bert_impl", "--help"],
    "keras-bert finetune --help": ["-m", "keras_bert_impl", "finetune", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    times = {name: [] for name in COMMANDS}
    for _ in range(arguments.rounds):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    medians = {name: round(statistics.median(values), 3) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{value:6.3f} s  {name}")
    if arguments.output:
        content = {"format_version": 1, "rounds": arguments.rounds, "seconds": medians}
        arguments.output.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
