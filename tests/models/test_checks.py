"""Every public model: configs, files, precision, gradients."""

from __future__ import annotations

import pytest

from keras_bert_impl import models
from tests import checks


def test_the_table_holds_every_public_model():
    public = {name for name in models.__all__ if isinstance(getattr(models, name), type)}
    assert public == {name.split(",")[0] for name in checks.MODELS}


@pytest.mark.parametrize("name", checks.MODELS)
def test_config_round_trip(name):
    checks.check_config_round_trip(checks.MODELS[name])


@pytest.mark.parametrize("name", checks.MODELS)
def test_keras_file(name, tmp_path):
    checks.check_keras_file(checks.MODELS[name], tmp_path / "model.keras")


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", checks.MODELS)
def test_mixed_precision(name, policy):
    checks.check_mixed_precision(checks.MODELS[name], policy)


@pytest.mark.parametrize("name", checks.MODELS)
def test_a_gradient_reaches_each_weight(name):
    checks.check_gradients(checks.MODELS[name])
