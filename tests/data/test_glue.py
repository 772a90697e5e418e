"""Files in the layouts of public sets."""

from __future__ import annotations

import json

import pytest

from keras_bert_impl.data.glue import TEXT_SETS, find_files, read_text_set

HEAD = "index\tpromptID\tpairID\tgenre\ts1p\ts2p\ts1\ts2\tsentence1\tsentence2"
CASES = {
    "cola": ("gj04\t1\t\tA b.\nx\t0\t*\tC d.\n", ["A b.", "C d."], None, ["1", "0"]),
    "sst-2": ("sentence\tlabel\na b\t1\nc\t0\n", ["a b", "c"], None, ["1", "0"]),
    "mrpc": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\tsay "a\tb\n',
        ['say "a'],
        ["b"],
        ["1"],
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta\tb\t0\n4\t5\t6\tc\n",
        ["a"],
        ["b"],
        ["0"],
    ),
    "mnli": (f"{HEAD}\tlabel1\tgold_label\n" + "0\t" * 8 + "a\tb\tx\tneutral\n", ["a"], ["b"],
             ["neutral"]),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\ta\tb\tentailment\n", ["a"], ["b"],
             ["entailment"]),
    "ax": ("index\tsentence1\tsentence2\n0\ta\tb\n", ["a"], ["b"], None),
    "sts-b": ("index\tsentence1\tsentence2\tscore\n0\ta\tb\t2.5\n", ["a"], ["b"], ["2.5"]),
    "xnli": ("premise\thypo\tlabel\na\tb\tcontradictory\n", ["a"], ["b"], ["contradiction"]),
    "chnsenticorp": ("label\ttext_a\n1\t很好\n", ["很好"], None, ["1"]),
    "lcqmc": ("好\t坏\t0\n", ["好"], ["坏"], ["0"]),
    "thucnews": ("体育\t球\n", ["球"], None, ["体育"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_layouts(name, tmp_path):
    content, texts, pairs, labels = CASES[name]
    path = tmp_path / "train.tsv"
    path.write_text(content, encoding="utf-8")
    examples = read_text_set(path, name)
    assert (examples.texts, examples.pairs, examples.labels) == (texts, pairs, labels)


def test_test_files_have_no_labels(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("index\tsentence\n0\ta b\n")
    assert read_text_set(path, "cola").labels is None
    assert read_text_set(path, "sst-2").texts == ["a b"]


def test_a_label_that_means_none_is_left_out(tmp_path, caplog):
    path = tmp_path / "dev.json"
    rows = [{"sentence1": "a", "sentence2": "b", "label": label} for label in ("neutral", "-")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_text_set(path, "ocnli").labels == ["neutral"]
    assert "1 of 2 rows have the label '-', which means none, and are left out" in caplog.text


def test_another_layout_is_refused(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("a\tb\n1\t2\n")
    with pytest.raises(ValueError, match=r"train.tsv: not in the layout of rte: expected columns"):
        read_text_set(path, "rte")


def test_files_of_a_folder(tmp_path):
    (tmp_path / "CoLA").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no file of cola: expected one of train.tsv"):
        find_files("cola", tmp_path)
    for name in ("train", "dev"):
        (tmp_path / "CoLA" / f"{name}.tsv").write_text("")
    assert [path.name for path in find_files("cola", tmp_path)] == ["train.tsv", "dev.tsv"]


def test_the_order_of_labels_is_the_published_one():
    assert TEXT_SETS["mnli"].labels == ("contradiction", "entailment", "neutral")
    assert TEXT_SETS["rte"].labels == ("entailment", "not_entailment")
