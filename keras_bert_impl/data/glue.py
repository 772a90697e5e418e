"""Layouts of public sets of labelled texts: GLUE, XNLI, and Chinese ones (CLUE and others).

What a general reader cannot tell is written down here: which column is the text where there is no
header, the labels and their order, labels that stand for none, rows that are broken in the
published files, and the names of the files.

Sources: google-research/bert `run_classifier.py` (columns, order of the labels of MNLI, XNLI, MRPC
and CoLA); https://gluebenchmark.com; https://github.com/CLUEbenchmark/CLUE.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path

from keras_bert_impl.data.columns import Columns
from keras_bert_impl.data.readers import LabelledExamples, read_labelled
from keras_bert_impl.data.rows import file_format, read_rows, source_name

__all__ = ["TEXT_SETS", "TextSet", "columns_of_set", "find_files", "read_text_set"]

_logger = logging.getLogger(__name__)

NO_LABEL = "-"


@dataclass(frozen=True)
class TextSet:
    """How one set is written.

    Attributes:
        kind: ``classification`` or ``regression``.
        named: columns by name, for files with a header and JSON lines; the first that fit.
        numbered: columns by number, for files without a header.
        labels: in the order of the classes; None: those of the training file.
        metric: the score that is published for it.
        aliases: other spellings of labels.
        folder: what its folder is called.
        files: names for training, dev and test, without the extension.
        may_be_short: whether published files have rows that lack columns; they are left out.
    """

    kind: str
    named: tuple[Columns, ...] = ()
    numbered: Columns | None = None
    labels: tuple[str, ...] | None = None
    metric: str = "accuracy"
    aliases: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    files: tuple[tuple[str, ...], ...] = (("train",), ("dev",), ("test",))
    may_be_short: bool = False


_BINARY = ("0", "1")
_INFERENCE = ("contradiction", "entailment", "neutral")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ("sentence1", "sentence2")
_MNLI = TextSet(
    "classification",
    (Columns(*_SENTENCES, "gold_label"), Columns(*_SENTENCES, "label")),
    labels=_INFERENCE,
    folder="MNLI",
    files=(("train",), ("dev_matched", "dev"), ("test_matched", "test")),
)
_CLUE_PAIR = TextSet("classification", (Columns(*_SENTENCES, "label"),), Columns(0, 1, 2), _BINARY)

TEXT_SETS = {
    "cola": TextSet(
        "classification",
        (Columns("sentence", None, "label"),),
        Columns(3, None, 1),
        _BINARY,
        metric="mcc",
        folder="CoLA",
    ),
    "sst-2": TextSet(
        "classification",
        (Columns("sentence", None, "label"),),
        labels=_BINARY,
        folder="SST-2",
    ),
    "mrpc": TextSet(
        "classification",
        (Columns("#1 String", "#2 String", "Quality"),),
        labels=_BINARY,
        metric="f1-binary",
        folder="MRPC",
        files=(("train", "msr_paraphrase_train"), ("dev",), ("test", "msr_paraphrase_test")),
    ),
    "qqp": TextSet(
        "classification",
        (Columns("question1", "question2", "is_duplicate"),),
        labels=_BINARY,
        metric="f1-binary",
        folder="QQP",
        may_be_short=True,
    ),
    "mnli": _MNLI,
    "mnli-mm": replace(_MNLI, files=(("train",), ("dev_mismatched",), ("test_mismatched",))),
    "qnli": TextSet(
        "classification",
        (Columns("question", "sentence", "label"),),
        labels=_ENTAILMENT,
        folder="QNLI",
    ),
    "rte": TextSet(
        "classification", (Columns(*_SENTENCES, "label"),), labels=_ENTAILMENT, folder="RTE"
    ),
    "wnli": TextSet(
        "classification", (Columns(*_SENTENCES, "label"),), labels=_BINARY, folder="WNLI"
    ),
    # Is tested on with a model of MNLI.
    "ax": replace(
        _MNLI, folder="AX", metric="mcc", files=(("train",), ("dev",), ("diagnostic", "AX"))
    ),
    "sts-b": TextSet(
        "regression",
        (Columns(*_SENTENCES, "score"), Columns(*_SENTENCES, "label")),
        Columns(0, 1, 2),
        metric="pearson",
        folder="STS-B",
    ),
    "xnli": TextSet(
        "classification",
        (Columns("premise", "hypo", "label"), Columns(*_SENTENCES, "gold_label")),
        labels=_INFERENCE,
        aliases=(("contradictory", "contradiction"),),
        folder="XNLI",
        files=(("multinli.train.zh", "multinli.train.en", "train"), ("xnli.dev",), ("xnli.test",)),
    ),
    "chnsenticorp": TextSet(
        "classification",
        (Columns("text_a", None, "label"),),
        Columns(1, None, 0),
        _BINARY,
        folder="chnsenticorp",
    ),
    "lcqmc": replace(
        _CLUE_PAIR,
        named=(Columns("text_a", "text_b", "label"), *_CLUE_PAIR.named),
        folder="lcqmc",
    ),
    "bq": replace(
        _CLUE_PAIR,
        named=(Columns("text_a", "text_b", "label"), *_CLUE_PAIR.named),
        folder="bq_corpus",
    ),
    "afqmc": replace(_CLUE_PAIR, folder="afqmc"),
    "ocnli": replace(_CLUE_PAIR, numbered=None, labels=_INFERENCE, folder="ocnli"),
    "tnews": TextSet("classification", (Columns("sentence", None, "label"),), folder="tnews"),
    "iflytek": TextSet("classification", (Columns("sentence", None, "label"),), folder="iflytek"),
    "thucnews": TextSet(
        "classification",
        (Columns("text", None, "label"),),
        Columns(1, None, 0),
        folder="thucnews",
        files=(("train", "cnews.train"), ("dev", "cnews.val"), ("test", "cnews.test")),
    ),
}
_EXTENSIONS = (".tsv", ".json", ".jsonl", ".csv", ".txt")


def find_files(name: str, folder: str | os.PathLike) -> tuple[Path, Path]:
    """The training and dev file of a set.

    Args:
        name: a key of `TEXT_SETS`.
        folder: the set's folder, or the one above it.

    Raises:
        FileNotFoundError: one of them is not there; the message names what was looked for.
    """
    layout, folder = TEXT_SETS[name], Path(folder)
    found = []
    for names in layout.files[:2]:
        folders = [folder, folder / layout.folder, folder / name]
        wanted = [stem + extension for stem in names for extension in _EXTENSIONS]
        paths = (place / file for place in folders for file in wanted)
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise FileNotFoundError(
                f"{folder}: no file of {name}: expected one of {', '.join(wanted)}, there or in "
                f"{layout.folder}: give --train and --dev"
            )
        found.append(path)
    return found[0], found[1]


def read_text_set(
    path: str | os.PathLike, name: str, format: str | None = None
) -> LabelledExamples:
    """Reads a file of a set; test files without labels have none.

    Args:
        path: the file.
        name: a key of `TEXT_SETS`.
        format: as `read_labelled`.

    Returns:
        LabelledExamples, without rows that are labelled ``-`` (annotators did not agree).

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `read_labelled`; or the columns are not those of the set.
    """
    layout = TEXT_SETS[name]
    columns, header = columns_of_set(path, name, format)
    # A quote is an ordinary character in all of these but CSV files.
    format = file_format(path, format)
    examples = read_labelled(
        path,
        **columns._asdict(),
        format=format,
        header=header,
        skip_short=layout.may_be_short,
    )
    if examples.labels is None:
        return examples
    aliases = dict(layout.aliases)
    labels = [aliases.get(label, label) for label in examples.labels]
    return _without_unlabelled(replace(examples, labels=labels))


def columns_of_set(
    path: str | os.PathLike, name: str, format: str | None = None
) -> tuple[Columns, bool | None]:
    """The columns of a file of a set, and whether its first row is a header (None: JSON lines).

    Raises:
        FileNotFoundError, ValueError: as `read_text_set`.
    """
    layout, shown = TEXT_SETS[name], source_name(path)
    first = next(read_rows(path, format), None)
    if first is None:
        raise ValueError(f"{shown}: the file is empty")
    is_json = isinstance(first.fields, dict)
    names = [field.strip() for field in first.fields]
    for columns in layout.named:
        if {columns.text, columns.pair or columns.text} <= set(names):
            label = columns.label if columns.label in names else None
            return columns._replace(label=label), None if is_json else True
    numbers = layout.numbered
    if numbers is not None and not is_json and len(names) >= _width(numbers):
        return numbers, False
    wanted = [
        " and ".join(repr(column) for column in columns if column is not None)
        for columns in layout.named
    ]
    if numbers is not None:
        wanted.append(f"no header and {_width(numbers)} columns or more")
    raise ValueError(
        f"{shown}: not in the layout of {name}: expected columns {', or '.join(wanted)}; "
        f"got {', '.join(repr(field[:30]) for field in names)}: for another layout leave out "
        "--task, or name the columns"
    )


def _width(columns: Columns) -> int:
    """How many columns a file needs."""
    return max(number for number in columns if number is not None) + 1


def _without_unlabelled(examples: LabelledExamples) -> LabelledExamples:
    kept = [row for row, label in enumerate(examples.labels) if label != NO_LABEL]
    dropped = len(examples) - len(kept)
    if not dropped:
        return examples
    _logger.warning(
        "%s: %d of %d rows have the label %r, which means none, and are left out",
        examples.path, dropped, len(examples), NO_LABEL,
    )  # fmt: skip
    if not kept:
        raise ValueError(f"{examples.path}: no row has a label other than {NO_LABEL!r}")
    return examples.rows(kept)
