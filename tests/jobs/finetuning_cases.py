"""Run by test_finetuning_strategies.py with two logical CPU devices, or on one of two machines.

python -m tests.jobs.finetuning_cases FOLDER            every case on one device and on two
python -m tests.jobs.finetuning_cases FOLDER CASE NAME  a case on the machines of TF_CONFIG
"""

from __future__ import annotations

import sys
from pathlib import Path

import tensorflow as tf

from keras_bert_impl.jobs import FinetuneSettings, finetune
from tests.jobs.toy import rows, write_tsv, write_weights
from tests.tasks import test_tasks as files

# 41 rows: with 8 a step the last one of an epoch has 1, and the second replica none.
# A softmax over choices or positions is blind to the bias of their logits: its gradient is
# rounding, which Adam makes a step of the size of the rate.
SHIFTED = {"learning_rate": 1e-4}
CASES = {
    "classes": {
        **{"class_weights": {"bad": 2.5}, "layer_decay": 0.9, "ema": 0.5, "patience": 1},
        **{"train": lambda folder: write_tsv(folder / "train.tsv", rows(41, 5))},
    },
    "choices": {**SHIFTED, "task": "multiple-choice", "train": files.choices_file},
    "tags": {"task": "token-classification", "train": files.tags_file, "batch_size": 10},
    "questions": {
        **{"task": "question-answering", "train": files.questions_file, "batch_size": 10},
        **{**SHIFTED, "doc_stride": 8, "max_query_length": 8},
    },
}


def settings_of(folder: Path, case: str, strategy: str, name: str) -> FinetuneSettings:
    """Of a case; its file is made in `folder` where it is not there."""
    given = dict(CASES[case])
    make, place = given.pop("train"), folder / case
    if not place.exists():
        place.mkdir()
        make(place)
    (file,) = place.iterdir()
    output = folder / f"{case}-{name}"
    values = {
        **{"train": file, "dev": file, "weights": folder / "weights", "output": output},
        **{"epochs": 2, "batch_size": 8, "learning_rate": 3e-3, "max_length": 32, "seed": 1},
    }
    return FinetuneSettings(**{**values, **given}, strategy=strategy)


def main() -> None:
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        case, name = sys.argv[2:]
        finetune(settings_of(folder, case, "multi_worker", name))
        return
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    write_weights(folder / "weights")
    for strategy in ("none", "mirrored"):
        for case in CASES:
            finetune(settings_of(folder, case, strategy, strategy))


if __name__ == "__main__":
    main()
