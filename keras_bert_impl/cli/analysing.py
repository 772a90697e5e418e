"""The commands that look at texts with a model: vectors, similarity, next sentence, attention."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from keras_bert_impl.cli.commands import app, jobs_and_display
from keras_bert_impl.cli.options import Format, Header, Json, PairColumn, TextColumn, Verbose

__all__ = ["attention", "features", "next_sentence", "similarity"]


class Layers(enum.StrEnum):
    """Rows of table 7 of the paper."""

    EMBEDDINGS = "embeddings"
    SECOND_TO_LAST = "second-to-last"
    LAST = "last"
    SUM_LAST_4 = "sum-last-4"
    CONCAT_LAST_4 = "concat-last-4"
    SUM_ALL = "sum-all"


class Unit(enum.StrEnum):
    """What has a vector."""

    TOKEN = "token"
    WORD = "word"


class Pooling(enum.StrEnum):
    """Vectors of tokens to one of a sentence."""

    MEAN = "mean"
    CLS = "cls"
    MAX = "max"


Encoder = Annotated[str, typer.Option(help="A folder, hf:ORG/NAME or minilm.")]
Input = Annotated[
    str | None, typer.Option("--input", help="A file of texts or pairs, in place of arguments.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]

_DISPLAY = ("analysing_display", "AnalysisDisplay")


def _one_of(texts: list[str] | None, input: str | None) -> None:
    if bool(texts) == (input is not None):
        raise typer.BadParameter("expected texts as arguments, or --input FILE")


@app.command()
def features(
    output: Annotated[Path, typer.Option(help="File to write: .npz or .jsonl.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts.")] = None,
    model: Encoder = "minilm",
    input: Input = None,
    layers: Annotated[Layers, typer.Option(help="Which layers make the vector.")] = Layers.LAST,
    per: Annotated[
        Unit, typer.Option(help="A vector a token, or a word (that of its first piece).")
    ] = Unit.TOKEN,
    max_length: Annotated[
        int | None, typer.Option(min=2, help="Tokens of a text; default: what the model takes.")
    ] = None,
    text_column: TextColumn = None,
    format: Format = None,
    header: Header = None,
    force: Force = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write contextual vectors of each token or word."""
    _one_of(texts, input)
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        if input is not None:
            options = jobs.InputOptions(text_column, None, None, format, header)
            texts = jobs.read_texts(input, options)
        result = jobs.write_features(
            model,
            texts,
            output,
            layers=layers.value,
            per=per.value,
            max_length=max_length,
            overwrite=force,
        )
        show.result(result, show.features, as_json)


@app.command()
def similarity(
    texts: Annotated[list[str] | None, typer.Argument(help="Two texts or more.")] = None,
    model: Encoder = "minilm",
    input: Input = None,
    pooling: Annotated[
        Pooling, typer.Option(help="How the tokens become one vector.")
    ] = Pooling.MEAN,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    format: Format = None,
    header: Header = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say how alike texts are: the cosine of their vectors."""
    _one_of(texts, input)
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        if input is None:
            result = jobs.compare_texts(model, texts, pooling=pooling.value)
            show.result(result, show.similarities, as_json)
            return
        options = jobs.InputOptions(text_column, pair_column, None, format, header)
        pairs = jobs.read_pairs(input, options)
        result = jobs.compare_pairs(model, *pairs, pooling=pooling.value)
        show.result(result, show.scores, as_json)


@app.command(name="next-sentence")
def next_sentence(
    model: Annotated[str, typer.Option(help="A model with a next-sentence head.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Two texts.")] = None,
    input: Input = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    format: Format = None,
    header: Header = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say how likely the second text goes on where the first one ends."""
    _one_of(texts, input)
    if texts and len(texts) != 2:
        raise typer.BadParameter(f"expected two texts, got {len(texts)}")
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        if input is None:
            firsts, seconds = [texts[0]], [texts[1]]
        else:
            options = jobs.InputOptions(text_column, pair_column, None, format, header)
            firsts, seconds = jobs.read_pairs(input, options)
        result = jobs.next_sentences(model, firsts, seconds)
        show.result(result, show.scores, as_json)


@app.command()
def attention(
    text: Annotated[str, typer.Argument(help="A text.")],
    pair: Annotated[str | None, typer.Option(help="A second text.")] = None,
    model: Encoder = "minilm",
    output: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("attention.html"),
    png: Annotated[Path | None, typer.Option(help="Heatmap to write as well.")] = None,
    layer: Annotated[
        int | None, typer.Option(min=1, help="Shown at first; default: the last.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(min=1, help="Shown at first; default: the mean of all.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write a page that shows what each token attends to."""
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        result = jobs.view_attention(
            model,
            text,
            output,
            pair=pair,
            heatmap=png,
            layer=layer,
            head=head,
            overwrite=force,
        )
        show.result(result, show.attention, as_json)
