"""Pre-trains on shards, with checkpoints from which a run goes on bit for bit."""

from __future__ import annotations

import os
import time

from keras_bert_impl.jobs.preparation import config_of_size
from keras_bert_impl.jobs.pretraining_inputs import check_remote
from keras_bert_impl.jobs.pretraining_progress import OnEvent, PretrainResult
from keras_bert_impl.jobs.pretraining_run import PretrainRun
from keras_bert_impl.jobs.pretraining_settings import PretrainSettings
from keras_bert_impl.jobs.progress import Stage
from keras_bert_impl.jobs.run_folder import check_same_run, read_record
from keras_bert_impl.training import strategies

__all__ = ["PretrainResult", "pretrain", "settings_to_resume"]


def settings_to_resume(output: str | os.PathLike, **changes) -> PretrainSettings:
    """The settings of the unfinished run in a folder, with changes.

    Raises:
        FileNotFoundError: there is no run.
        ValueError: it was written in a newer format, a change is out of range, or `size` or
            `init_checkpoint` begin with another model; the message lists what differs.
    """
    record = read_record(output)
    options, config = record["options"], record["model"]["config"]
    given = {name: value for name, value in changes.items() if value is not None}
    names = [name for name in ("size", "init_checkpoint") if name in given]
    before = {name: options[name] for name in names}
    after = {name: os.fspath(given[name]) for name in names}
    if before.get("size"):
        before["size"] = after["size"]
        before["config"] = config
        after["config"] = config_of_size(given["size"], config["vocab_size"])[0].to_dict()
    check_same_run(os.fspath(output), {"model": before}, {"model": after})
    return PretrainSettings(**{**options, **given, "output": output, "resume": True})


def pretrain(settings: PretrainSettings, on_event: OnEvent = lambda event: None) -> PretrainResult:
    """Checks everything, trains, evaluates, writes the run folder.

    While it runs, the folder holds `pretraining.json`, `checkpoints/`, `history.jsonl` and the
    logs for TensorBoard; `keras_bert.json` comes last and marks a finished run. SIGTERM and SIGINT
    end the run after the step, with a checkpoint.

    Args:
        settings: what to do.
        on_event: told of the parts, steps and windows of steps as they pass.

    Raises:
        FileExistsError: the folder holds a finished run, or an unfinished one without `resume`,
            or another process writes to it.
        FileNotFoundError, ValueError: shards, vocabulary, config or weights are missing, damaged
            or do not fit each other; the run to resume is another one; the loss is not finite.
        OSError: the disk is full, or a machine of the run went away.
    """
    began = time.monotonic()
    if settings.strategy == "tpu":
        check_remote(settings)
    strategy = strategies.make_strategy(settings.strategy)
    strategies.check_batch_size(strategy, settings.batch_size, settings.micro_batches)
    run = PretrainRun(settings, strategy)
    on_event(run.summary())
    with strategies.lost_machines_told(), run.writing():
        step = run.restore()
        if step:
            on_event(Stage(f"going on after step {step:,}"))
        run.train(step, on_event)
        on_event(Stage("writing the run"))
        return run.finish(round(time.monotonic() - began, 2))
