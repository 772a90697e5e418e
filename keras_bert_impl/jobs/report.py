"""What people look at after fine-tuning: `report.html`, `curves.png`, logs for TensorBoard.

All is made from the files of the run folder, so it can be made again.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.store import WEIGHTS_FILE
from keras_bert_impl.jobs.finetuning_records import ERRORS_FILE, HISTORY_FILE, METRICS_FILE
from keras_bert_impl.jobs.report_page import (
    bars,
    confusions,
    figure,
    line_chart,
    matrix,
    page,
    section,
    table,
    tiles,
)
from keras_bert_impl.jobs.run_file import RUN_FILE
from keras_bert_impl.sources import atomic_file, atomic_write
from keras_bert_impl.tasks import find_task

__all__ = ["write_pages"]

REPORT_FILE = "report.html"
CURVES_FILE = "curves.png"
LOGS_FOLDER = "logs"

_MOST_MISTAKES = 30
# Columns in which nothing says something.
_ANSWERS = ("answers", "prediction")
_MOST_LABELS = 40
_LARGEST_MATRIX = 20
_NOT_SCORES = {"examples", "constant", "negative_mse"}


@dataclass(frozen=True)
class _Run:
    """The files of a run folder."""

    training: dict
    dev: dict
    epochs: list[dict]
    errors: list[list[str]]
    size: int

    @classmethod
    def read(cls, folder: Path) -> _Run:
        errors = folder / ERRORS_FILE
        lines = errors.read_text("utf-8").split("\n")[:-1] if errors.is_file() else []
        return cls(
            training=json.loads((folder / RUN_FILE).read_text("utf-8")),
            dev=json.loads((folder / METRICS_FILE).read_text("utf-8"))["dev"],
            epochs=json.loads((folder / HISTORY_FILE).read_text("utf-8"))["epochs"],
            errors=[line.split("\t") for line in lines],
            size=(folder / WEIGHTS_FILE).stat().st_size,
        )

    @property
    def curves(self) -> dict[str, dict[str, list[float | None]]]:
        """Title of a chart -> name of a curve -> its value after each epoch."""
        shown = find_task(self.training["task"])[0].shown
        losses = {
            "train": [epoch["loss"] for epoch in self.epochs],
            "dev": [epoch["dev_loss"] for epoch in self.epochs],
        }
        names = [name for name in shown if any(name in epoch["dev"] for epoch in self.epochs)]
        scores = {shown[n]: [epoch["dev"].get(n) for epoch in self.epochs] for n in names}
        charts = {"loss": losses, "score on the dev file": scores}
        return {
            title: {name: values for name, values in chart.items() if any(map(_is_number, values))}
            for title, chart in charts.items()
        }


def write_pages(folder: Path) -> None:
    """Writes a page that needs no network, a picture of the curves, and logs for TensorBoard.

    Raises:
        FileNotFoundError: a file of the run is missing.
    """
    run = _Run.read(folder)
    _write_report(folder, run)
    _write_curves(folder, run)
    _write_logs(folder, run)


def _write_report(folder: Path, run: _Run) -> None:
    training, dev = run.training, run.dev
    scores = {n: v for n, v in dev.items() if _is_number(v) and n not in _NOT_SCORES}
    shown = find_task(training["task"])[0].shown
    named = {shown.get(n, n.replace("_", " ")): figure(v) for n, v in scores.items()}
    best = training["best_epoch"]
    parts = [
        tiles(
            {training["metric"]: figure(training["score"])},
            {
                **{"dev examples": f"{dev['examples']:,}", "best epoch": str(best)},
                "time": _duration(training["seconds"]),
                "weights": f"{run.size / 2**20:,.0f} MB",
            },
        ),
        section("Scores on the dev file", table(["score", "value"], list(named.items()))),
        section(
            "Training", *(line_chart(title, chart, best) for title, chart in run.curves.items())
        ),
        _trials(training),
        section("Data", _data(training)),
        _classes(dev),
        _mistakes(run.errors),
        section("Settings", table(["setting", "value"], _settings(training))),
    ]
    settings = training["settings"]
    subtitle = f"{training['task']} · {settings['weights']} · {settings['train']}"
    atomic_write(folder / REPORT_FILE, page(Path(settings["output"]).name, subtitle, parts))


def _is_number(value) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _trials(training: dict) -> str:
    trials = training["trials"]
    if len(trials) < 2:
        return ""
    kept = max(range(len(trials)), key=lambda i: trials[i]["score"])
    rows = [
        (
            str(trial["seed"]),
            figure(trial["score"]),
            str(trial["best_epoch"]),
            ", ".join(["kept"] * (i == kept) + ["collapsed"] * trial["collapsed"]),
        )
        for i, trial in enumerate(trials)
    ]
    return section("Trials", table(["seed", training["metric"], "best epoch", ""], rows))


def _data(training: dict) -> str:
    train, dev = training["labels"], training["dev_labels"]
    labels = list(train)[:_MOST_LABELS]
    more = len(train) - len(labels)
    note = f"and {more} labels more" if more else ""
    return bars(labels, {"train": train, "dev": dev}, note)


def _classes(dev: dict) -> str:
    classes = dev.get("classes")
    if not classes:
        return ""
    columns = ["precision", "recall", "f1", "auc"]
    columns = [name for name in columns if any(name in row for row in classes.values())]
    rows = [
        (label, *(figure(row[name]) for name in columns), f"{row['support']:,}")
        for label, row in classes.items()
    ]
    shares = [row.get("f1") or 0.0 for row in classes.values()]
    parts = [section("Labels", table(["label", *columns, "examples"], rows, shares))]
    counts = dev.get("confusion_matrix")
    if counts and len(counts) <= _LARGEST_MATRIX:
        parts.append(section("Confusion matrix", matrix(list(classes), counts)))
    elif counts:
        parts.append(section("Most frequent confusions", confusions(list(classes), counts)))
    return "".join(parts)


def _mistakes(errors: list[list[str]]) -> str:
    if not errors:
        return ""
    header, *rows = errors
    total, title = len(rows), "Mistakes"
    if "probability" in header:
        place, title = header.index("probability"), "Most confident mistakes"
        rows.sort(key=lambda row: -float(row[place]))
    keep = [i for i in range(len(header)) if any(row[i] for row in rows) or header[i] in _ANSWERS]
    shown = [
        [row[i] or ("(no answer)" if header[i] in _ANSWERS else "") for i in keep]
        for row in rows[:_MOST_MISTAKES]
    ]
    note = f"{min(total, _MOST_MISTAKES)} of {total:,}; all of them are in {ERRORS_FILE}"
    return section(title, table([header[i] for i in keep], shown, note=note))


def _settings(training: dict) -> list[tuple[str, str]]:
    values = {**training["settings"], **training["settings"]["inputs"]}
    del values["inputs"]
    values |= {f"version of {name}": v for name, v in training["versions"].items()}
    return [(name.replace("_", " "), str(v)) for name, v in values.items() if v is not None]


def _write_curves(folder: Path, run: _Run) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    picture = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(picture)
    for axes, (title, chart) in zip(picture.subplots(1, 2), run.curves.items(), strict=True):
        for name, values in chart.items():
            axes.plot(range(1, len(values) + 1), values, marker="o", label=name)
        axes.axvline(run.training["best_epoch"], color="gray", linestyle=":", label="best epoch")
        axes.set_title(title)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    with atomic_file(folder / CURVES_FILE) as stream:
        picture.savefig(stream, format="png", dpi=120)


def _write_logs(folder: Path, run: _Run) -> None:
    import tensorflow as tf

    with tf.summary.create_file_writer(str(folder / LOGS_FOLDER)).as_default():
        for epoch in run.epochs:
            values = {"train/loss": epoch["loss"], "dev/loss": epoch["dev_loss"]}
            values |= {f"train/{name}": value for name, value in epoch["train"].items()}
            values |= {f"dev/{name}": value for name, value in epoch["dev"].items()}
            for name, value in values.items():
                if _is_number(value):
                    tf.summary.scalar(name, value, step=epoch["epoch"])
