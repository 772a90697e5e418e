"""Types of the options that several commands share."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from keras_bert_impl.cli.process import be_verbose

__all__ = [
    "Adversarial",
    "Dtype",
    "Format",
    "Header",
    "InputFormat",
    "Json",
    "LabelColumn",
    "MicroBatches",
    "Model",
    "OutputFormat",
    "PairColumn",
    "RDrop",
    "Seed",
    "TextColumn",
    "Verbose",
    "Weights",
]


class Dtype(enum.StrEnum):
    """Precisions of training."""

    FLOAT32 = "float32"
    BFLOAT16 = "mixed_bfloat16"
    FLOAT16 = "mixed_float16"


class InputFormat(enum.StrEnum):
    """Formats of input files."""

    TSV = "tsv"
    CSV = "csv"
    JSONL = "jsonl"
    TEXT = "text"


class OutputFormat(enum.StrEnum):
    """Formats of predictions."""

    TSV = "tsv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Model = Annotated[str, typer.Option(help="Run folder that finetune wrote.")]
Weights = Annotated[str, typer.Option(help="A folder, hf:ORG/NAME or minilm.")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column of the text: a name, or a number from 0.")
]
PairColumn = Annotated[str | None, typer.Option(help="Column of the second text of a pair.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column of the label.")]
Format = Annotated[
    InputFormat | None,
    typer.Option(
        "--format",
        help="Format of the input; default: from its extension. text, to tag: a sentence a line.",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether line 1 is a header; default: found out."),
]
MicroBatches = Annotated[
    int, typer.Option(min=1, help="Parts of a batch, one after the other, for one step.")
]
RDrop = Annotated[
    float, typer.Option(min=0, help="R-Drop: weight of how far two passes are apart, e.g. 0.5.")
]
Adversarial = Annotated[
    float, typer.Option(min=0, help="Adversarial training: length of the perturbation, e.g. 1.")
]
Seed = Annotated[int, typer.Option(help="Of new weights, dropout and order.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", callback=be_verbose, help="Show logs, and tracebacks of errors.", is_eager=True
    ),
]
