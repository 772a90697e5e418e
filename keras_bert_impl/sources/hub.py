"""Models of the Hugging Face hub, with a time limit and a way on when it cannot be reached."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["cached_snapshot", "download_snapshot", "first_line", "hub_unreachable", "resolve_hub"]

logger = logging.getLogger(__name__)

REACH_SECONDS = 10.0
PATTERNS = [
    "config.json",
    "vocab.txt",
    "tokenizer*.json",
    "special_tokens_map.json",
    "*.safetensors",
    "*.safetensors.index.json",
]
_SOURCE = re.compile(r"hf:(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^@\s]+))?")


def resolve_hub(source: str) -> Path:
    """Give the local snapshot of ``hf:ORG/NAME`` or ``hf:ORG/NAME@REVISION``.

    Raises:
        ValueError: Not of that form.
        FileNotFoundError: The hub has no such model, or it cannot be reached (or
            ``HF_HUB_OFFLINE`` is set) and the model is not in the local cache.
    """
    match = _SOURCE.fullmatch(source)
    if match is None:
        raise ValueError(f"{source!r}: expected hf:ORG/NAME or hf:ORG/NAME@REVISION")
    name, revision = match["name"], match["revision"]
    reason = hub_unreachable(name, revision)
    if reason is None:
        logger.info("Fetching %s from the Hugging Face hub", name)
        folder = download_snapshot(name, revision)
    else:
        cached = cached_snapshot(name, revision)
        if cached is None:
            raise FileNotFoundError(
                f"cannot fetch {source}: {reason}, and it is not in the local Hugging Face cache. "
                "Fetch it on a machine with network access and give its folder instead"
            )
        logger.warning("%s: %s; using the cached copy %s", source, reason, cached)
        folder = cached
    if not any(folder.glob("*.safetensors")):
        logger.warning(
            "%s has no .safetensors weights; transformers with torch writes them: "
            "AutoModel.from_pretrained(NAME).save_pretrained(FOLDER)",
            source,
        )
    return folder


def hub_unreachable(name: str, revision: str | None) -> str | None:
    """Say why the hub cannot serve ``name`` now, or None if it can.

    Raises:
        FileNotFoundError: The hub answers that it has no such model or revision.
        ValueError: The hub's client refuses the name.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        HFValidationError,
        HTTPError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"

    def ask() -> None:
        HfApi().model_info(name, revision=revision, timeout=REACH_SECONDS)

    # snapshot_download retries an unreachable host for 23 s, so one question goes ahead of it.
    try:
        _within(REACH_SECONDS, ask)
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        at = f" at revision {revision}" if revision else ""
        raise FileNotFoundError(
            f"the Hugging Face hub has no model {name}{at} (or it is private: log in with "
            "`hf auth login`)"
        ) from error
    except HFValidationError as error:
        raise ValueError(f"hf:{name} is not a valid name of a model: {error}") from error
    except TimeoutError:
        return f"the Hugging Face hub did not answer within {REACH_SECONDS:g} s"
    except (HTTPError, OSError) as error:
        return f"the Hugging Face hub cannot be reached ({first_line(error)})"
    return None


def download_snapshot(name: str, revision: str | None) -> Path:
    """Download what is missing of a model's files. Returns the snapshot's folder.

    Raises:
        OSError: The download breaks off.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HTTPError

    try:
        folder = snapshot_download(
            name, revision=revision, allow_patterns=PATTERNS, etag_timeout=REACH_SECONDS
        )
    except HTTPError as error:
        raise ConnectionError(
            f"the download of {name} broke off ({first_line(error)}); another try goes on with it"
        ) from error
    return Path(folder)


def cached_snapshot(name: str, revision: str | None) -> Path | None:
    """Give the folder of a model in the local Hugging Face cache, without any network."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            name, revision=revision, allow_patterns=PATTERNS, local_files_only=True
        )
    except FileNotFoundError:
        return None
    return Path(folder)


def first_line(error: BaseException) -> str:
    """First line of an error's message, for a list of reasons."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _within(seconds: float, function: Callable[[], None]) -> None:
    """Run ``function`` in a thread and give it up with TimeoutError after ``seconds``.

    A socket's own time limit does not cover name resolution, which may hang for minutes.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:  # handed to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {seconds:g} s")
    if errors:
        raise errors[0]
