"""The commands of pre-training: vocabulary, shards, training, and what the model then knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from keras_bert_impl.cli.commands import app, jobs_and_display
from keras_bert_impl.cli.options import Dtype, Json, Verbose

__all__ = ["fill_mask", "pretrain", "pretrain_data", "vocab"]

_DISPLAY = ("pretraining_display", "PretrainingDisplay")

Corpus = Annotated[
    list[str],
    typer.Option(help="Files, folders or globs: text, JSON lines, WikiExtractor, MediaWiki XML."),
]
CorpusFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="auto, sentences or paragraphs (one a line), jsonl, wikiextractor, mediawiki.",
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="Processes.")]

_NOT_SETTINGS = {"as_json", "verbose", "resume", "output"}


@app.command()
def vocab(
    corpus: Corpus,
    output: Annotated[Path, typer.Option(help="vocab.txt to write.")],
    size: Annotated[int, typer.Option(help="Tokens, the reserved ones included.")] = 30522,
    cased: Annotated[
        bool, typer.Option("--cased/--uncased", help="Keep case and accents, or not.")
    ] = False,
    unused: Annotated[int, typer.Option(min=0, help="[unusedN] tokens for words to come.")] = 95,
    min_frequency: Annotated[int, typer.Option(min=1, help="Least count of a piece.")] = 2,
    format: CorpusFormat = "auto",
    workers: Workers = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Learn a WordPiece vocabulary from a corpus."""
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        with show.reading() as on_bytes:
            result = jobs.make_vocabulary(
                corpus,
                output,
                size=size,
                cased=cased,
                unused=unused,
                min_frequency=min_frequency,
                corpus_format=format,
                workers=workers,
                overwrite=force,
                on_progress=on_bytes,
            )
        show.result(result, show.learned, as_json)


@app.command(name="pretrain-data")
def pretrain_data(
    corpus: Corpus,
    vocab: Annotated[str, typer.Option(help="vocab.txt, or a folder with one.")],
    output: Annotated[str, typer.Option(help="Folder of shards to write, or to go on with.")],
    form: Annotated[
        str, typer.Option(help="dynamic (masks are drawn in training) or static (Google's).")
    ] = "dynamic",
    max_seq_length: Annotated[int, typer.Option(help="Tokens of an example.")] = 128,
    max_predictions: Annotated[int, typer.Option(help="Most masks of an example.")] = 20,
    masked_lm_prob: Annotated[float, typer.Option(help="Share of the tokens masked.")] = 0.15,
    short_seq_prob: Annotated[float, typer.Option(help="Share of short examples.")] = 0.1,
    whole_words: Annotated[
        bool, typer.Option("--whole-words", help="Mask whole words (Chinese ones by jieba).")
    ] = False,
    replace_per_word: Annotated[
        bool, typer.Option("--replace-per-word", help="Draw 80/10/10 a word, not a piece.")
    ] = False,
    ngram: Annotated[int, typer.Option(min=1, help="Mask spans of up to so many.")] = 1,
    nsp: Annotated[
        bool, typer.Option("--nsp/--no-nsp", help="With next sentences, or full sentences only.")
    ] = True,
    sop: Annotated[
        bool, typer.Option("--sop", help="Sentence order in the place of the next sentence.")
    ] = False,
    dupe_factor: Annotated[
        int | None, typer.Option(min=1, help="Passes; default: 5 static, 1 dynamic.")
    ] = None,
    hold_out: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the documents kept for evaluation.")
    ] = 0.0,
    language: Annotated[str, typer.Option(help="Of the sentences: auto, en or zh.")] = "auto",
    cased: Annotated[
        bool | None, typer.Option("--cased/--uncased", help="Default: as the vocabulary.")
    ] = None,
    gzip: Annotated[bool, typer.Option("--gzip", help="Pack the shards.")] = False,
    format: CorpusFormat = "auto",
    workers: Workers = 1,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 12345,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Make shards of pre-training examples from a corpus."""
    if sop and not nsp:
        raise typer.BadParameter("--sop and --no-nsp exclude each other")
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        masking = jobs.Masking(
            probability=masked_lm_prob,
            max_predictions=max_predictions,
            whole_words=whole_words,
            replace_per_word=replace_per_word,
            ngram=ngram,
        )
        settings = jobs.ExampleSettings(
            form=form,
            max_seq_length=max_seq_length,
            short_seq_prob=short_seq_prob,
            masking=masking,
            sentence_task="sop" if sop else "nsp" if nsp else "none",
            dupe_factor=dupe_factor,
            seed=seed,
            language=language,
            chinese_words=whole_words and language == "zh",
            hold_out=hold_out,
            gzip=gzip,
        )
        with show.generating() as on_progress:
            result = jobs.make_shards(
                corpus,
                vocab,
                output,
                settings,
                cased=cased,
                corpus_format=format,
                workers=workers,
                on_progress=on_progress,
            )
        show.result(result, show.shards, as_json)


@app.command()
def pretrain(
    output: Annotated[str, typer.Option(help="Run folder to write, or to go on with.")],
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
        str | None, typer.Option(help="vocab.txt or its folder, for shards that lack it.")
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
    with jobs_and_display(*_DISPLAY) as (jobs, show):
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
    with jobs_and_display(*_DISPLAY) as (jobs, show):
        result = jobs.fill_texts(model, texts, top_k=top_k)
        if as_json:
            typer.echo(json.dumps(result.to_dict(), ensure_ascii=False))
        else:
            show.filled(result)
