"""The pages of a run: what they say, that texts are escaped, that they need no network."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from keras_bert_impl.jobs import report_page
from keras_bert_impl.jobs.report import write_pages

EVIL = '<script>alert("1")</script> & 北京'


class Page(HTMLParser):
    """Elements that are open at the end, and the texts of the cells."""

    def __init__(self, content: str):
        super().__init__()
        self.open, self.tags, self.cells, self.attributes = [], set(), [], set()
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in ("meta",):
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the toy run, with what people may have in their files."""
    folder = tmp_path / "run"
    shutil.copytree(trained.folder, folder)
    file = folder / "training.json"
    training = json.loads(file.read_text("utf-8"))
    training["labels"] = {EVIL: 40, "b": 8}
    training["dev_labels"] = {EVIL: 4, "b": 2}
    training["trials"] = [
        {"seed": 1, "best_epoch": 1, "score": 0.5, "collapsed": True},
        {"seed": 2, "best_epoch": 3, "score": 0.875, "collapsed": False},
    ]
    training["settings"]["output"] = f"runs/{EVIL}"
    file.write_text(json.dumps(training), "utf-8")
    metrics = {"dev": {"accuracy": 0.75, "examples": 4, "constant": False}}
    rows = {
        name: {"precision": 1.0, "recall": None, "f1": 0.5, "support": 2} for name in (EVIL, "b")
    }
    metrics["dev"] |= {"classes": rows, "confusion_matrix": [[7, 3], [0, 9]]}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    wrong = [("7", "a", "b", "0.600000", EVIL, ""), ("9", "a", "b", "0.900000", "second", "")]
    lines = [("line", "label", "prediction", "probability", "text", "pair"), *wrong]
    (folder / "errors.tsv").write_text("".join("\t".join(x) + "\n" for x in lines), "utf-8")
    return folder


def test_the_page_says_all_and_escapes_texts(run):
    write_pages(run)
    content = (run / "report.html").read_text("utf-8")
    page = Page(content)
    assert page.open == []
    assert "script" not in page.tags
    assert page.attributes.isdisjoint({"href", "src", "action", "onclick"})
    assert "http" not in content
    assert "url(" not in content
    for cells in (
        [EVIL, "40", "", "4", ""],
        ["accuracy", "0.7500"],
        [EVIL, "1.0000", "–", "0.5000", "2", ""],
        [EVIL, "7", "3"],
        ["b", "0", "9"],
        ["1", "0.5000", "1", "collapsed", "2", "0.8750", "3", "kept"],
        ["9", "a", "b", "0.900000", "second", "7", "a", "b", "0.600000", EVIL],
        ["learning rate", "0.003"],
    ):
        starts = range(len(page.cells))
        assert any(page.cells[i : i + len(cells)] == cells for i in starts), cells
    assert "2 of 2; all of them are in errors.tsv" in content
    assert "prefers-color-scheme: dark" in content


def test_a_finished_run_has_its_pages(trained):
    content = (trained.folder / "report.html").read_text("utf-8")
    assert content.count("<circle") == len(trained.result.history) * 5
    assert f"<b>{trained.result.score:.4f}</b>" in content
    assert (trained.folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_logs_hold_every_epoch(trained):
    tf = pytest.importorskip("tensorflow")
    (file,) = (trained.folder / "logs").iterdir()
    found: dict[str, list[float]] = {}
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(float(tf.make_ndarray(value.tensor)))
    wanted = [epoch.dev["accuracy"] for epoch in trained.result.history]
    assert found["dev/accuracy"] == pytest.approx(wanted)
    assert {"train/loss", "train/accuracy", "dev/loss", "dev/macro_f1"} <= set(found)


def test_many_labels_become_a_list_of_confusions():
    counts = [[0] * 30 for _ in range(30)]
    counts[3][4], counts[5][6] = 2, 1200
    cells = Page(report_page.confusions([str(i) for i in range(30)], counts)).cells
    assert cells == ["label", "prediction", "examples", "5", "6", "1,200", "3", "4", "2"]


@pytest.mark.parametrize(
    ("curve", "best"), [([0.5], 1), ([0.0, 0.0], 2), ([1e-9, 3.0, None, 4e5], 4), ([-2.0, -1.0], 1)]
)
def test_charts_hold_their_points(curve, best):
    drawing = report_page.line_chart("loss", {"train": curve, "<dev>": []}, best)
    places = [float(y) for y in re.findall(r'cy="([0-9.-]+)"', drawing)]
    assert len(places) == sum(value is not None for value in curve)
    assert all(14 <= y <= 216 for y in places)
    assert "&lt;dev&gt;" in drawing
    assert len(re.findall('class="axis"', drawing)) <= 8
    assert report_page.line_chart("loss", {"train": [None]}, 1) == ""
