from __future__ import annotations

import io
import logging

import numpy as np
import pytest

from keras_bert_impl.data.labels import (
    class_weight_table,
    discover_labels,
    encode_labels,
    encode_scores,
)
from keras_bert_impl.data.readers import read_labelled


def examples(*labels: str):
    rows = "".join(f"text {number}\t{label}\n" for number, label in enumerate(labels))
    return read_labelled(io.BytesIO(b"text\tlabel\n" + rows.encode()))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["10", "9", "-1", "9"], ["-1", "9", "10"]),
        (["b", "a", "B", "10", "9"], ["10", "9", "B", "a", "b"]),
        (["not_entailment", "entailment"], ["entailment", "not_entailment"]),
        (["差", "好"], ["好", "差"]),
    ],
)
def test_order_of_labels(labels, expected):
    assert discover_labels(examples(*labels)) == expected
    assert discover_labels(examples(*reversed(labels))) == expected


def test_one_label_only_is_named():
    with pytest.raises(ValueError, match=r"all 3 examples have the label 'pos'.*at least two"):
        discover_labels(examples("pos", "pos", "pos"))


def test_no_labels():
    with pytest.raises(ValueError, match="no labels: column 'label' is empty in all 2 rows"):
        discover_labels(examples("", ""))
    unlabelled = read_labelled(io.BytesIO(b"index\tsentence\n0\ta\n"))
    for function in (discover_labels, encode_scores, lambda read: encode_labels(read, ["a"])):
        with pytest.raises(ValueError, match=r"'index', 'sentence'\): give label= \(--label-col"):
            function(unlabelled)


def test_many_labels_are_doubted(caplog):
    with caplog.at_level(logging.WARNING):
        assert len(discover_labels(examples(*(f"{n / 10}" for n in range(50))))) == 50
    assert "50 different labels in 50 examples" in caplog.text


def test_encoding():
    ids = encode_labels(examples("b", "a", "b"), ["a", "b"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [1, 0, 1]


def test_unknown_label_names_line_and_known_ones():
    with pytest.raises(ValueError, match=r"<stream>:3: unknown label 'c'; known labels: 'a', 'b'$"):
        encode_labels(examples("b", "c"), ["a", "b"])
    with pytest.raises(ValueError, match=r"'19' and 5 more$"):
        encode_labels(examples("b"), [str(number) for number in range(25)])


def test_scores():
    scores = encode_scores(examples("5.000", "0", "1e-1"))
    assert scores.dtype == np.float32
    assert scores.tolist() == [5, 0, np.float32(0.1)]
    for bad in ("high", "nan", "inf"):
        with pytest.raises(
            ValueError, match=f"<stream>:3: expected a number as label, got '{bad}'"
        ):
            encode_scores(examples("1", bad))


def test_balanced_class_weights_agree_with_scikit_learn():
    from sklearn.utils.class_weight import compute_sample_weight

    labels = np.array([0, 0, 0, 2, 2, 4])
    table = class_weight_table(labels, "balanced")
    np.testing.assert_allclose(table[labels], compute_sample_weight("balanced", labels), rtol=1e-6)
    assert table[labels].mean() == pytest.approx(1)


def test_class_weights_by_dict():
    assert class_weight_table(np.array([0, 1, 2]), {1: 2.5, 7: 3}).tolist() == [1, 2.5, 1]
    with pytest.raises(ValueError, match=r"\"balanced\" or a dict .* got 'equal'"):
        class_weight_table(np.array([0, 1]), "equal")
    with pytest.raises(ValueError, match="expected a class index as key, got 'pos'"):
        class_weight_table(np.array([0, 1]), {"pos": 1})
    with pytest.raises(ValueError, match="weight >= 0 for class 1, got -1"):
        class_weight_table(np.array([0, 1]), {1: -1})
