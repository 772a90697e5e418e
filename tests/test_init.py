"""The package's front door: lazy names, and nothing heavy imported on the way in."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import keras_bert_impl

HEAVY = {"keras", "tensorflow", "tensorflow_text", "jax", "numpy", "huggingface_hub", "typer"}


def imported_by(code: str) -> set[str]:
    """Top-level modules in a fresh process after ``code``."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in result.stdout.split()}


def test_import_is_light():
    assert imported_by("import keras_bert_impl; dir(keras_bert_impl)") & HEAVY == set()


def test_sources_import_is_light():
    assert imported_by("from keras_bert_impl.sources import resolve") & HEAVY == set()


@pytest.mark.parametrize("name", keras_bert_impl.__all__)
def test_every_name_is_there(name):
    value = getattr(keras_bert_impl, name)
    if name != "__version__":
        module = importlib.import_module(f"keras_bert_impl.{keras_bert_impl._MODULES[name]}")
        assert value is getattr(module, name)
        assert name in module.__all__


def test_names_are_listed():
    assert set(keras_bert_impl._MODULES) <= set(dir(keras_bert_impl))
    assert keras_bert_impl.__all__ == [*sorted(keras_bert_impl._MODULES), "__version__"]


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'keras_bert_impl' has no attribute 'Bert'"):
        _ = keras_bert_impl.Bert
