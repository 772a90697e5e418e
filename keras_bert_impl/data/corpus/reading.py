"""From paths to documents to sentences."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from keras_bert_impl.data.corpus.documents import (
    CONTROL_ONLY,
    NO_PASSAGES,
    NO_TEXT,
    OnSkip,
    RawDocument,
    has_text,
)
from keras_bert_impl.data.corpus.files import Path, find_files, read_head
from keras_bert_impl.data.corpus.formats import FORMATS, detect_format
from keras_bert_impl.data.corpus.mediawiki import read_dump
from keras_bert_impl.data.corpus.plain import read_json_lines, read_plain, read_wikiextractor
from keras_bert_impl.text.sentences import split_sentences

__all__ = ["read_documents", "sentences_of"]

_logger = logging.getLogger(__name__)

_LONGEST_SENTENCE = 10_000
# Everything visible and common: lines with one of these need no closer look.
_VISIBLE = re.compile(r"[!-~À-ɏͰ-ҁ\u4e00-\u9fff]")


def read_documents(
    paths: Path | Sequence[Path], *, format: str = "auto", on_skip: OnSkip | None = None
) -> Iterator[RawDocument]:
    """Yields the documents of a corpus one by one, in a fixed order, whatever its size.

    Every file is looked at first, so that one that is missing, empty, binary or compressed in
    another way is reported before the work starts. One document is in memory at a time; one of
    more than 4 million characters is cut between lines, a line of more than 1 MB at a sentence end
    or space (of JSON lines those of more than 64 MB are left out); `on_skip` is told of each.

    Args:
        paths: files (plain, gzip or bzip2, told by their content), folders and globs; see
            `find_files`.
        format: of all the files; ``"auto"`` tells it for each (see `detect_format`).
            ``"sentences"``: one sentence a line, blank lines between documents;
            ``"paragraphs"``: one paragraph a line, blank lines between documents;
            ``"jsonl"``: an object a line with the paragraphs of a document as ``"text"``;
            ``"wikiextractor"``: its ``<doc ...>`` blocks or JSON lines;
            ``"mediawiki"``: a dump in XML, of which articles are taken.
        on_skip: called with source and reason for what is left out or cut, such as redirects; a
            `SkipCounter`, for instance. By default nothing is called.

    Raises:
        FileNotFoundError: a path does not exist, or a folder or glob has no text file.
        ValueError: `format` is not known; while iterating: a file is empty, not UTF-8 text or
            truncated, or its JSON or XML is broken. Messages start with the file, and its line.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    files = [(path, _format_of(path, format)) for path in find_files(paths)]
    if format == "auto":
        counts = Counter(found for _, found in files)
        told = ", ".join(f"{found}: {count}" for found, count in sorted(counts.items()))
        _logger.info("formats of the %d files: %s", len(files), told)
    return _documents(files, on_skip or _ignore)


def _format_of(path: str, format: str) -> str:
    head = read_head(path)
    if format != "auto":
        return format
    found = detect_format(head)
    _logger.debug("%s: format %s", path, found)
    return found


def _ignore(source: str, reason: str) -> None:
    pass


def _documents(files: list[tuple[str, str]], on_skip: OnSkip) -> Iterator[RawDocument]:
    for path, format in files:
        if format == "mediawiki":
            yield from read_dump(path, on_skip)
        elif format == "jsonl":
            yield from read_json_lines(path, on_skip)
        elif format == "wikiextractor":
            yield from read_wikiextractor(path, on_skip)
        else:
            yield from read_plain(path, format, on_skip)


def sentences_of(
    document: RawDocument, *, language: str = "auto", on_skip: OnSkip | None = None
) -> list[str]:
    """The sentences of a document, none empty; this is the costly part of reading.

    Lines of ``sentences`` are taken as they are, and split where they have more than 10,000
    characters; paragraphs are split by `split_sentences`; wikitext becomes passages first. What is
    still longer than 10,000 characters is cut at a space, else anywhere. Lines in which the
    tokenizer finds nothing (space and control characters) are dropped.

    Args:
        document: of `read_documents`.
        language: ``"auto"``, ``"en"`` or ``"zh"``; auto tells it for each paragraph.
        on_skip: called with source and reason where nothing is left.

    Raises:
        ValueError: `language` is another one.
    """
    if document.kind == "wikitext":
        # The parser takes a while to import, and most corpora do not need it.
        from keras_bert_impl.data.corpus.wikitext import passages

        lines = passages(document.text)
        reason = NO_PASSAGES
    else:
        lines = document.text.split("\n")
        reason = CONTROL_ONLY if document.text.strip() else NO_TEXT
    sentences = []
    for line in lines:
        if document.kind == "sentences" and len(line) <= _LONGEST_SENTENCE:
            found = [line.strip()]
        else:
            found = split_sentences(line, language=language)
        for sentence in found:
            if not _VISIBLE.search(sentence) and not has_text(sentence):
                continue
            if len(sentence) <= _LONGEST_SENTENCE:
                sentences.append(sentence)
            else:
                sentences += _cut(sentence)
    if not sentences and on_skip is not None:
        on_skip(document.source, reason)
    return sentences


def _cut(sentence: str) -> list[str]:
    """Parts of at most `_LONGEST_SENTENCE` characters, cut at a space where there is one."""
    parts = []
    start = 0
    while start < len(sentence):
        end = start + _LONGEST_SENTENCE
        if end < len(sentence):
            space = sentence.rfind(" ", start + 1, end)
            end = space if space > 0 else end
        part = sentence[start:end].strip()
        if part and has_text(part):
            parts.append(part)
        start = end
    return parts
