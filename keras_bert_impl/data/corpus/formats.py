"""Tells the format of a file of a corpus from its beginning."""

from __future__ import annotations

import json
import re

from keras_bert_impl.text.sentences import split_sentences

__all__ = ["FORMATS", "detect_format"]

FORMATS = ("auto", "sentences", "paragraphs", "jsonl", "wikiextractor", "mediawiki")

_LINES = 1000
# Files of one sentence a line, split by others, differ from our splitter in a few lines of a
# hundred; in books and articles half of the paragraphs and more have several sentences.
_PARAGRAPH_SHARE = 0.25
_XML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<mediawiki\b", re.S)


def detect_format(head: str) -> str:
    r"""The format of a text file from its beginning.

    In this order: a ``<mediawiki`` element is a MediaWiki dump; ``<doc `` is WikiExtractor's
    output; a first line that is a JSON object (or the beginning of one longer than `head`) is JSON
    lines, WikiExtractor's too. Other text is one paragraph a line where a quarter or more of the
    first 1,000 lines that are not blank hold several sentences, else one sentence a line.

    >>> detect_format("It was late.\nNobody came.\n"), detect_format("It was late. Nobody came.")
    ('sentences', 'paragraphs')
    """
    if _XML.match(head):
        return "mediawiki"
    lines = [line for line in head.split("\n") if line.strip()][:_LINES]
    if not lines:
        return "sentences"
    first = lines[0].lstrip()
    if first.startswith("<doc "):
        return "wikiextractor"
    if first.startswith("{") and (len(lines) == 1 or _is_object(first)):
        return "jsonl"
    several = sum(len(split_sentences(line)) > 1 for line in lines)
    return "paragraphs" if several >= _PARAGRAPH_SHARE * len(lines) else "sentences"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
