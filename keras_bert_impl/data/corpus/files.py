"""Finds the files of a corpus and reads their lines: gzip, bzip2, UTF-8, bounded memory."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import logging
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from keras_bert_impl.data.corpus.documents import CUT_LINE, OnSkip
from keras_bert_impl.sources import storage

__all__ = ["Line", "Path", "find_files", "read_head", "read_lines", "reading"]

_logger = logging.getLogger(__name__)

Path = str | os.PathLike
LONGEST_LINE = 1_000_000
_HEAD = 1 << 18
_TEXT_ENDINGS = (".txt", ".text", ".raw", ".tokens", ".json", ".jsonl", ".ndjson", ".xml")
_DUMP_PART = re.compile(r"\.xml-[\w-]+$")
_NOT_CORPUS = re.compile(r"(readme|licen[cs]e|copying|notice|authors|changes|makefile)", re.I)
_FOREIGN = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"7z\xbc\xaf": "a 7z archive",
    b"%PDF-": "a PDF file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_STOPS = b"|".join(stop.encode() for stop in "。！？；…")
_CLOSERS = b"|".join(closer.encode() for closer in "”’」』）")
_SENTENCE_END = re.compile(rb"[.!?][\"')\]]*\s+|(?:" + _STOPS + rb")+(?:" + _CLOSERS + rb")*")
_TAIL = 50_000


class Line(NamedTuple):
    """A line without its end. `number` counts from 1; parts of a cut line share it."""

    number: int
    text: str


def find_files(paths: Path | Sequence[Path]) -> list[str]:
    """The files that paths, folders and globs stand for: each once, in a fixed order.

    Folders are searched to the bottom for names that end in ``.txt .text .raw .tokens .json .jsonl
    .ndjson .xml`` (or as parts of dumps do, ``.xml-p1p41242``), with ``.gz`` or ``.bz2`` after it,
    and for names without ending, as WikiExtractor writes them; README and the like, and names that
    begin with a dot or underscore, are left out. A path with a scheme (``gs://``) is listed by
    `tf.io.gfile`.

    Raises:
        FileNotFoundError: a path does not exist, or a folder or glob has no such file.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise FileNotFoundError("no corpus given: expected files, folders or globs")
    found: dict[str, None] = {}
    for path in map(os.fspath, given):
        for file in _files_of(path):
            if file in found:
                _logger.warning("%s is given twice: read once", file)
            found[file] = None
    return list(found)


def _files_of(path: str) -> list[str]:
    if storage.is_remote(path):
        with storage.failures_told(path):
            return _remote_files(path)
    if os.path.isdir(path):
        tree = ((folder, names) for folder, _, names in os.walk(path, followlinks=True))
        return _of_corpus(path, [os.path.join(folder, n) for folder, names in tree for n in names])
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        raise FileNotFoundError(f"{path}: no such file or folder")
    files = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    if not files:
        raise FileNotFoundError(f"{path}: no file matches")
    return files


def _remote_files(path: str) -> list[str]:
    import tensorflow as tf

    if glob.has_magic(path):
        files = sorted(tf.io.gfile.glob(path))
        if not files:
            raise FileNotFoundError(f"{path}: no file matches")
        return files
    if tf.io.gfile.isdir(path):
        tree = ((folder, names) for folder, _, names in tf.io.gfile.walk(path))
        return _of_corpus(path, [os.path.join(folder, n) for folder, names in tree for n in names])
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"{path}: no such file or folder")
    return [path]


def _of_corpus(folder: str, files: list[str]) -> list[str]:
    kept = sorted(file for file in files if _is_text_name(os.path.basename(file)))
    left = sorted(set(files) - set(kept))
    if not kept:
        raise FileNotFoundError(
            f"{folder}: no text file in this folder (names of texts end in "
            f"{' '.join(_TEXT_ENDINGS)}, then perhaps .gz or .bz2; {len(left)} other files)"
        )
    if left:
        _logger.warning(
            "%s: left out %d files that have no name of a text: %s%s",
            folder, len(left), ", ".join(left[:5]), " ..." if len(left) > 5 else "",
        )  # fmt: skip
    return kept


def _is_text_name(name: str) -> bool:
    if name.startswith((".", "_")) or _NOT_CORPUS.match(name):
        return False
    stem = re.sub(r"\.(gz|bz2)$", "", name.lower())
    return stem.endswith(_TEXT_ENDINGS) or "." not in stem or bool(_DUMP_PART.search(stem))


@contextmanager
def reading(path: str) -> Iterator[BinaryIO]:
    """Opens a file of a corpus; what goes wrong with its compression is a `ValueError`."""
    with storage.open_binary(path) as raw:
        start = raw.peek(16)[:16]
        foreign = next((kind for magic, kind in _FOREIGN.items() if start.startswith(magic)), None)
        if foreign is not None:
            raise ValueError(f"{path}: {foreign}: expected UTF-8 text, plain or in gzip or bzip2")
        if not start:
            raise ValueError(f"{path}: the file is empty")
        stream = raw
        if start.startswith(b"\x1f\x8b"):
            stream = io.BufferedReader(gzip.GzipFile(fileobj=raw))
        elif start.startswith(b"BZh") and start[4:10] == b"1AY&SY":
            stream = io.BufferedReader(bz2.BZ2File(raw))
        elif path.lower().endswith((".gz", ".bz2")):
            raise ValueError(f"{path}: the file is not compressed as its name says")
        try:
            yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: cannot be decompressed: {error}") from None
        except OSError as error:
            if stream is raw or error.errno is not None:
                raise
            raise ValueError(f"{path}: cannot be decompressed: {error}") from None


def read_head(path: str) -> str:
    """The first 256 kB of a file, from which its format is told; its last line may be cut.

    Raises:
        ValueError: the file is empty or binary, or not UTF-8 there.
    """
    with reading(path) as stream:
        head = stream.read(_HEAD)
    if not head:
        raise ValueError(f"{path}: the file is empty")
    if len(head) == _HEAD:
        head = head[: _character_start(head)]
    lines = read_lines(io.BytesIO(head), path, lambda source, reason: None)
    return "\n".join(line.text for line in lines)


def read_lines(stream: BinaryIO, name: str, on_skip: OnSkip) -> Iterator[Line]:
    r"""Yields the lines of a UTF-8 file without byte order mark and line ends (``\n``, ``\r\n``).

    A line of more than `LONGEST_LINE` bytes comes in parts, cut behind the end of a sentence, else
    at a space, else anywhere between two characters; `on_skip` is told of it. Other separators
    (U+2028, form feed) are characters like any other.

    Args:
        stream: the bytes.
        name: the file, for messages.
        on_skip: told of a line that had to be cut.

    Raises:
        ValueError: bytes that are not UTF-8, or a NUL; with line and place in the file.
    """
    offset = number = 0
    while raw := stream.readline(LONGEST_LINE):
        number += 1
        parts = (raw,)
        if len(raw) == LONGEST_LINE and raw[-1:] != b"\n" and stream.peek(1):
            on_skip(f"{name}:{number}", CUT_LINE)
            parts = _parts_of_line(raw, stream)
        for part in parts:
            text = _decoded(part, name, number, offset)
            if offset == 0:
                text = text.removeprefix("\ufeff")
            offset += len(part)
            yield Line(number, text.removesuffix("\n").removesuffix("\r"))


def _decoded(raw: bytes, name: str, number: int, offset: int) -> str:
    if b"\0" in raw:
        raise ValueError(
            f"{name}:{number}: NUL at byte {offset + raw.index(0) + 1} of the file: expected text, "
            "got binary data"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}:{number}: not UTF-8: byte 0x{raw[error.start]:02x} at byte "
            f"{offset + error.start + 1} of the file; save the file as UTF-8"
        ) from None


def _parts_of_line(raw: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """The parts of a long line, of which `raw` is the beginning."""
    while raw[-1:] != b"\n" and (more := stream.readline(LONGEST_LINE)):
        place = _place_to_cut(raw)
        yield raw[:place]
        raw = raw[place:] + more
    yield raw


def _place_to_cut(raw: bytes) -> int:
    tail = max(0, len(raw) - _TAIL)
    ends = [match.end() for match in _SENTENCE_END.finditer(raw, tail)]
    space = raw.rfind(b" ", tail) + 1
    return ends[-1] if ends else space or _character_start(raw)


def _character_start(raw: bytes) -> int:
    """Where the last character begins, which may be incomplete."""
    place = len(raw) - 1
    while place > len(raw) - 4 and raw[place] & 0xC0 == 0x80:
        place -= 1
    return place
