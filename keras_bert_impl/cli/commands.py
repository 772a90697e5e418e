"""The commands: each parses its options, calls a job, shows what it gives.

Keras and TensorFlow are imported by the commands, so that ``--help`` is there at once.
Results go to standard output; progress, warnings and errors to standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import keras_bert_impl
from keras_bert_impl.cli.options import (
    Adversarial,
    Dtype,
    Format,
    Header,
    Json,
    LabelColumn,
    MicroBatches,
    Model,
    OutputFormat,
    PairColumn,
    RDrop,
    Seed,
    TextColumn,
    Verbose,
    Weights,
)
from keras_bert_impl.cli.process import Commands, end_as_interrupted, set_up

__all__ = ["app", "jobs_and_display", "main"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Entry point of the command."""
    end_as_interrupted()
    app(prog_name="keras-bert")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keras-bert {keras_bert_impl.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """BERT for Keras: from raw text to a served classifier."""


@contextlib.contextmanager
def jobs_and_display(module: str = "display", name: str = "Display") -> Iterator[tuple]:
    """Imports what a command needs, quietly; yields the jobs and what shows them."""
    set_up()
    from keras_bert_impl import jobs

    displays = importlib.import_module(f"keras_bert_impl.cli.{module}")
    yield jobs, getattr(displays, name)()


@app.command()
def quickstart(
    weights: Weights = "minilm",
    output: Annotated[Path, typer.Option(help="Folder of the SavedModel's versions.")] = Path(
        "saved_models/quickstart"
    ),
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the sentences.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Go the whole way once: fine-tune on shipped sentences, export, ask the export."""
    with jobs_and_display() as (jobs, show):
        options = {} if epochs is None else {"epochs": epochs}
        with show.training() as on_event:
            result = jobs.quickstart(weights, output, seed=seed, on_event=on_event, **options)
        show.result(result, show.quickstart, as_json)


@app.command()
def finetune(
    output: Annotated[str, typer.Option(help="Run folder to write.")],
    train: Annotated[str | None, typer.Option(help="Labelled file to train on.")] = None,
    dev: Annotated[str | None, typer.Option(help="Labelled file to choose the best on.")] = None,
    task: Annotated[
        str,
        typer.Option(
            help="classification, regression, multi-label, multiple-choice, token-classification, "
            "question-answering, or a set of data: cola, sst-2, mrpc, qqp, sts-b, mnli, qnli, rte, "
            "wnli, ax, xnli, chnsenticorp, lcqmc, bq, afqmc, ocnli, tnews, squad, cmrc, swag ..."
        ),
    ] = "classification",
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the set's files, for --train and --dev.")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="A folder, hf:ORG/NAME, minilm, or none (random weights).")
    ] = "minilm",
    size: Annotated[
        str | None, typer.Option(help="With --weights none: tiny ... large, or a config file.")
    ] = None,
    vocab: Annotated[
        Path | None, typer.Option(help="vocab.txt, in place of that of the weights.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    learning_rate: Annotated[float, typer.Option(help="Its peak.")] = 5e-5,
    max_length: Annotated[
        int | None, typer.Option(help="Longest row in tokens; default: 128, for questions 384.")
    ] = None,
    warmup: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the steps that warm up.")
    ] = 0.1,
    seed: Seed = 0,
    class_weights: Annotated[
        str | None, typer.Option(help="balanced, or JSON: weights by label.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many epochs without a better score.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What is best on the dev file: accuracy, f1 (macro), mcc, f1-binary; pearson, "
            "spearman, mse; micro-f1, auc, exact. Default: as the task or set is published."
        ),
    ] = None,
    num_trials: Annotated[
        int, typer.Option(min=1, help="Train so often, with other seeds; keep the best.")
    ] = 1,
    doc_stride: Annotated[int, typer.Option(min=1, help="Questions: from window to window.")] = 128,
    max_query_length: Annotated[int, typer.Option(min=1, help="Tokens of a question.")] = 64,
    max_answer_length: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 30,
    layer_decay: Annotated[
        float, typer.Option(help="Learning rate of a layer over that of the one above.")
    ] = 1.0,
    freeze_layers: Annotated[
        int, typer.Option(min=-1, help="Layers from below that stay; -1: the whole encoder.")
    ] = 0,
    ema: Annotated[
        float | None, typer.Option(help="Keep a moving average of the weights, e.g. 0.999.")
    ] = None,
    lora_rank: Annotated[
        int | None, typer.Option(min=1, help="Train low-rank changes of the encoder only.")
    ] = None,
    micro_batches: MicroBatches = 1,
    r_drop: RDrop = 0.0,
    adversarial: Adversarial = 0.0,
    dtype: Annotated[Dtype, typer.Option(help="Precision of training.")] = Dtype.FLOAT32,
    strategy: Annotated[
        str, typer.Option(help="none, mirrored, multi_worker or tpu: several devices.")
    ] = "none",
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    header: Header = None,
    cased: Annotated[
        bool | None,
        typer.Option("--cased/--uncased", help="Default: as the tokenizer of the weights."),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fine-tune a model for a task: classes, scores, labels, choices, answers."""
    values = {name: value for name, value in locals().items() if name not in _NOT_SETTINGS}
    values["dtype"] = dtype.value
    values["class_weights"] = _parse_class_weights(class_weights)
    with jobs_and_display() as (jobs, show):
        inputs = jobs.InputOptions(text_column, pair_column, label_column, format, header)
        settings = jobs.FinetuneSettings(inputs=inputs, **values)
        with show.training() as on_event:
            result = jobs.finetune(settings, on_event)
        show.result(result, show.finetune, as_json)


_NOT_SETTINGS = {
    *("text_column", "pair_column", "label_column", "format", "header"),
    *("as_json", "verbose"),
}


def _parse_class_weights(text: str | None) -> str | dict[str, float] | None:
    if text is None or text == "balanced":
        return text
    with contextlib.suppress(json.JSONDecodeError):
        weights = json.loads(text)
        if isinstance(weights, dict) and all(type(w) in (int, float) for w in weights.values()):
            return weights
    raise typer.BadParameter(
        f'--class-weights: expected balanced or JSON such as {{"spam": 2.5, "ham": 1}}, got {text}'
    )


@app.command()
def evaluate(
    model: Model,
    data: Annotated[str, typer.Option(help="Labelled file.")],
    errors: Annotated[
        Path | None, typer.Option(help="TSV file to write what is predicted wrongly to.")
    ] = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    header: Header = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Score a run on a labelled file, for classes with a report and a confusion matrix."""
    with jobs_and_display() as (jobs, show):
        inputs = jobs.InputOptions(text_column, pair_column, label_column, format, header)
        result = jobs.evaluate(model, data, inputs, errors=errors)
        show.result(result, show.evaluation, as_json)


@app.command()
def predict(
    model: Model,
    input: Annotated[str, typer.Option("--input", help="A file; - is standard input.")] = "-",
    output: Annotated[str, typer.Option(help="A file; - is standard output.")] = "-",
    output_format: Annotated[
        OutputFormat | None,
        typer.Option(help="Default: from the extension of the output, else tsv."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file.")] = False,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    format: Format = None,
    header: Header = None,
    verbose: Verbose = False,
) -> None:
    """Predict a label, score, choice or answer for each row, in the order of the rows."""
    with jobs_and_display() as (jobs, show):
        source = sys.stdin.buffer if input == "-" else input
        target = sys.stdout.buffer if output == "-" else output
        with show.counting() as on_rows:
            jobs.predict_rows(
                model,
                source,
                target,
                jobs.InputOptions(text_column, pair_column, None, format, header),
                output_format=output_format,
                overwrite=force,
                on_rows=on_rows,
            )


@app.command()
def export(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder of the versions; default: saved_models/ and the run's name."),
    ] = None,
    version: Annotated[
        int | None, typer.Option(min=1, help="Number of the version; default: the next one.")
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write a SavedModel that takes text, and verify it in a fresh process."""
    with jobs_and_display() as (jobs, show):
        show.result(jobs.export_run(model, output, version=version), show.export, as_json)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A SavedModel that export wrote.")],
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare a SavedModel with the answers that its model gave when it was exported."""
    with jobs_and_display() as (jobs, show):
        report = jobs.verify_export(folder)
        show.result(report, show.verification, as_json)
        if not report.ok:
            raise typer.Exit(1)
