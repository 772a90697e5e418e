"""The process around a command: errors, logs, signals, TensorFlow's own noise."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["Commands", "be_verbose", "end_as_interrupted", "set_up"]

_state = {"verbose": False, "signal": signal.SIGINT}


class Commands(TyperGroup):
    """Turns the errors that a user can mend into one plain message and exit code 1.

    An interruption exits with 128 + its signal, as shells and service managers expect.
    """

    def main(self, *args, **kwargs) -> Any:
        _state.update(verbose=False, signal=signal.SIGINT)
        return super().main(*args, **kwargs)

    def invoke(self, ctx) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Who reads the output has gone; Python would fail once more as it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (ValueError, OSError) as error:
            if _state["verbose"]:
                traceback.print_exc()
            else:
                typer.echo(f"keras-bert: error: {_message(error)}", err=True)
        except KeyboardInterrupt:
            typer.echo("keras-bert: interrupted", err=True)
            raise typer.Exit(128 + _state["signal"]) from None
        raise typer.Exit(1)


def _message(error: ValueError | OSError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


def be_verbose(wanted: bool) -> bool:
    """Callback of the option; works before and after the name of the command."""
    if wanted:
        _state["verbose"] = True
    return wanted


def end_as_interrupted() -> None:
    """Lets SIGTERM end the process as Ctrl-C does, so that temporary folders are removed."""

    def interrupt(number, frame):
        _state["signal"] = number
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGTERM, interrupt)


def set_up() -> None:
    """Imports TensorFlow, without its noise unless that is wanted; says where logs go."""
    if not _state["verbose"]:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
    # So that the process that checks an export finds room on the GPU.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    import tensorflow as tf

    tf.get_logger().setLevel("INFO" if _state["verbose"] else "ERROR")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name, level in (("keras_bert_impl", "WARNING"), ("keras_bert_impl.sources", "INFO")):
        logging.getLogger(name).setLevel("INFO" if _state["verbose"] else level)
    logging.getLogger("keras_bert_impl").handlers[:] = [handler]
