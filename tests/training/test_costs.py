"""What docs/training_on_many_devices.md says that a step costs is counted on the models."""

from __future__ import annotations

import math
import re

import keras
import pytest

from keras_bert_impl.config import SIZES
from keras_bert_impl.models import BertClassifier, BertPretrainer
from tests.conftest import REPO

PAGE = (REPO / "docs" / "training_on_many_devices.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\w+) \| (.*?) \| ([\d,]+) \| ([\d,]+) MB \| ([\d,]+) MB \|$", PAGE, re.M)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_the_table_is_found():
    assert {row[0] for row in ROWS} == {"base", "large"}
    assert len(ROWS) == 4


@pytest.mark.parametrize(("size", "training", "parameters", "summed", "sent"), ROWS)
def test_bytes_of_a_step(size, training, parameters, summed, sent):
    # Without values: a large model has 1.3 GB.
    with keras.StatelessScope():
        if training == "pre-training":
            model = BertPretrainer(SIZES[size])
        else:
            model = BertClassifier(SIZES[size], 2)
    count = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    assert count == number(parameters)
    assert round(4 * count / 1e6) == number(summed)
    assert round(4 * count * 2 * (8 - 1) / 8 / 1e6) == number(sent)
