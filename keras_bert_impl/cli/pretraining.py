"""The commands of pre-training: vocabulary, shards, training, and what the model then knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from keras_bert_impl.cli.commands import app, jobs_and_display
from keras_bert_impl.cli.options import Dtype, Json, Verbose

__all__ = ["fill_mask", "pretrain"]


@contextlib.contextmanager
def _jobs_and_display() -> Iterator[tuple]:
    with jobs_and_display() as (jobs, _):
        from keras_bert_impl.cli.pretraining_display import PretrainingDisplay

        yield jobs, PretrainingDisplay()


_NOT_SETTINGS = {"as_json", "verbose", "resume", "output"}


@app.command()
def pretrain(
    output: Annotated[Path, typer.Option(help="Run folder to write, or to go on with.")],
    data: Annotated[
        str | None, typer.Option(help="Folder of shards, or files in Google's TFRecord schema.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="tiny ... large or a config file: random weights.")
    ] = None,
    init_checkpoint: Annotated[
        str | None, typer.Option(help="Weights to start from, at step 0; their config is taken.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the unfinished run in --output.")
    ] = False,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Resume although settings or data differ.")
    ] = False,
    vocab: Annotated[
        Path | None, typer.Option(help="vocab.txt or its folder, for shards that lack it.")
    ] = None,
    eval_data: Annotated[
        str | None, typer.Option(help="Shards to score on; default: those held out in --data.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Of the whole run; default: 100,000.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step; default: 32.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Its peak; default: 1e-4.")] = None,
    warmup_steps: Annotated[
        int | None, typer.Option(help="Default: 10,000, at most a tenth of the steps.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="adamw (default) or lamb.")] = None,
    max_seq_length: Annotated[
        int | None, typer.Option(help="What the shards must have; default: what they have.")
    ] = None,
    max_predictions: Annotated[int | None, typer.Option(help="Likewise.")] = None,
    micro_batches: Annotated[
        int | None, typer.Option(help="Parts of a batch, one after the other, for one step.")
    ] = None,
    steps_per_execution: Annotated[
        int | None, typer.Option(help="Steps without going back to Python.")
    ] = None,
    save_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints and evaluations; default: 1,000.")
    ] = None,
    keep: Annotated[int | None, typer.Option(help="Checkpoints that stay; default: 3.")] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Default: by device.")] = None,
    strategy: Annotated[
        str | None, typer.Option(help="none (default), mirrored, multi_worker or tpu.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, dropout, order, masks.")] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Pre-train on shards: masked language model and next sentence."""
    values = {name: value for name, value in locals().items() if name not in _NOT_SETTINGS}
    given = {name: value for name, value in values.items() if value is not None}
    if dtype is not None:
        given["dtype"] = dtype.value
    with _jobs_and_display() as (jobs, show):
        if resume:
            settings = jobs.settings_to_resume(output, **given)
        elif data is None:
            raise typer.BadParameter("--data is needed, unless a run is resumed")
        else:
            settings = jobs.PretrainSettings(output=output, **given)
        with show.pretraining() as on_event:
            result = jobs.pretrain(settings, on_event)
        show.result(result, show.pretrained, as_json)


@app.command(name="fill-mask")
def fill_mask(
    texts: Annotated[list[str], typer.Argument(help="Texts with one [MASK] or more.")],
    model: Annotated[str, typer.Option(help="Run folder that pretrain wrote.")],
    top_k: Annotated[int, typer.Option(min=1, help="Candidates a mask.")] = 5,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say the most likely tokens for each [MASK]."""
    with _jobs_and_display() as (jobs, show):
        show.result(jobs.fill_texts(model, texts, top_k=top_k), show.filled, as_json)
