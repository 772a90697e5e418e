"""Articles of a MediaWiki XML dump, as a stream."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from keras_bert_impl.data.corpus.documents import (
    NO_TEXT,
    NOT_WIKITEXT,
    OTHER_NAMESPACE,
    REDIRECT,
    OnSkip,
    RawDocument,
    in_parts,
)
from keras_bert_impl.data.corpus.files import reading

__all__ = ["read_dump"]

_REDIRECT = re.compile(
    r"\s*#\s*(?:redirect|重定向|weiterleitung|redirection|redirección|перенаправление|転送|넘겨주기"
    r"|doorverwijzing|rinvia|patrz|ohjaus|redirecionamento|تحويل)\s*:?\s*\[\[",
    re.I,
)


def read_dump(path: str, on_skip: OnSkip) -> Iterator[RawDocument]:
    """Yields the articles of a dump (pages-articles or with all revisions) as wikitext.

    Pages of namespace 0 (all where the dump names none) that are no redirect and whose model is
    wikitext; of several revisions the latest (by timestamp, else the last). One page is in memory
    at a time. Source: https://www.mediawiki.org/xml/export-0.11.xsd.

    Raises:
        ValueError: broken XML, with file and line; not a dump; not one page.
    """
    pages = 0
    with reading(path) as stream:
        try:
            for page in _pages(stream, path):
                pages += 1
                yield from _article(page, path, on_skip)
        except ET.ParseError as error:
            line, column = error.position
            fault = str(error).split(": line")[0]
            raise ValueError(f"{path}:{line}: broken XML at column {column + 1}: {fault}") from None
    if not pages:
        raise ValueError(f"{path}: expected a MediaWiki dump, found no <page> in it")


class _Page:
    """What is known of a page so far."""

    def __init__(self) -> None:
        self.title = "?"
        self.namespace = "0"
        self.redirect = False
        self.model = "wikitext"
        self.text: str | None = None
        self.timestamp = ""

    def add_revision(self, revision: ET.Element) -> None:
        parts = {_name(child.tag): child.text or "" for child in revision}
        timestamp = parts.get("timestamp", "")
        if timestamp >= self.timestamp:
            self.timestamp = timestamp
            self.text = parts.get("text", "")
            self.model = parts.get("model", "wikitext")


def _name(tag: str) -> str:
    return tag.rpartition("}")[2]


def _pages(stream, path: str) -> Iterator[_Page]:
    page = _Page()
    root = None
    for event, element in ET.iterparse(stream, events=("start", "end")):
        name = _name(element.tag)
        if event == "start":
            if root is None:
                if name != "mediawiki":
                    raise ValueError(f"{path}: expected a MediaWiki dump, got <{name}>")
                root = element
            elif name == "page":
                page = _Page()
            continue
        if name == "title":
            page.title = element.text or "?"
        elif name == "ns":
            page.namespace = (element.text or "0").strip()
        elif name == "redirect":
            page.redirect = True
        elif name == "revision":
            page.add_revision(element)
            element.clear()
        elif name == "page":
            yield page
            root.clear()


def _article(page: _Page, path: str, on_skip: OnSkip) -> Iterator[RawDocument]:
    source = f"{path}: {page.title}"
    text = page.text or ""
    if page.namespace != "0":
        on_skip(source, OTHER_NAMESPACE)
    elif page.redirect or _REDIRECT.match(text):
        on_skip(source, REDIRECT)
    elif page.model != "wikitext":
        on_skip(source, NOT_WIKITEXT)
    elif not text.strip():
        on_skip(source, NO_TEXT)
    else:
        lines = ((0, line) for line in text.split("\n"))
        for part in in_parts(lines, path, "wikitext", on_skip):
            yield part._replace(source=source)
