"""What the readers of corpora yield, and how they say what they left out."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

__all__ = [
    "CUTS",
    "LARGEST_DOCUMENT",
    "OnSkip",
    "RawDocument",
    "SkipCounter",
    "has_text",
    "in_parts",
]

LARGEST_DOCUMENT = 4_000_000

REDIRECT = "redirect"
OTHER_NAMESPACE = "not an article (other namespace)"
NOT_WIKITEXT = "page that is not wikitext"
NO_TEXT = "no text"
NO_PASSAGES = "no text passages (only lists, tables, templates ...)"
CONTROL_ONLY = "control characters only"
LONG_JSON_LINE = "JSON line of more than 64 MB"
CUT_DOCUMENT = "document of more than 4 million characters, cut into several"
CUT_LINE = "line of more than 1 MB, cut into several"
CUTS = frozenset({CUT_DOCUMENT, CUT_LINE})
_EXAMPLES = 3

OnSkip = Callable[[str, str], None]


class RawDocument(NamedTuple):
    """A document as it stands in its file.

    Attributes:
        source: ``path:line`` of its start, or ``path: title``; for messages.
        kind: what `text` is: ``"sentences"`` (one a line), ``"paragraphs"`` (one a line) or
            ``"wikitext"``.
        text: at most about `LARGEST_DOCUMENT` characters.
    """

    source: str
    kind: str
    text: str


class SkipCounter:
    """Counts what was left out or cut, by reason, and keeps the first sources of each.

    An instance is an `on_skip` callback: ``read_documents(paths, on_skip=counter)``.

    >>> counter = SkipCounter()
    >>> counter("wiki.xml: Foo", "redirect")
    >>> counter.counts["redirect"], counter.examples["redirect"]
    (1, ['wiki.xml: Foo'])
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}

    def __call__(self, source: str, reason: str) -> None:
        self.counts[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(source)

    def merge(self, other: SkipCounter) -> None:
        self.counts.update(other.counts)
        for reason, sources in other.examples.items():
            self.examples[reason] = (self.examples.get(reason, []) + sources)[:_EXAMPLES]


def has_text(line: str) -> bool:
    """Whether the tokenizer finds anything in a line: not only space and control characters.

    It deletes U+FFFD and the categories Cc and Cf, as google-research/bert `tokenization.py` does.
    """
    for character in line:
        if character.isalnum():
            return True
        if character.isspace() or character == "\ufffd":
            continue
        if unicodedata.category(character) not in ("Cc", "Cf"):
            return True
    return False


def in_parts(
    lines: Iterable[tuple[int, str]], name: str, kind: str, on_skip: OnSkip
) -> Iterator[RawDocument]:
    """Documents of at most `LARGEST_DOCUMENT` characters from the lines of one, cut between lines.

    Args:
        lines: number and text of each line of the document, without their ends, lazily; a line
            longer than that is a document of its own.
        name: the file.
        kind: of `RawDocument`.
        on_skip: told of a document that had to be cut.
    """
    start, part, length = 0, [], 0
    cut = False
    for number, line in lines:
        if part and length + len(line) > LARGEST_DOCUMENT:
            if not cut:
                on_skip(f"{name}:{start}", CUT_DOCUMENT)
                cut = True
            yield RawDocument(f"{name}:{start}", kind, "\n".join(part))
            part, length = [], 0
        if not part:
            start = number
        part.append(line)
        length += len(line) + 1
    if part:
        yield RawDocument(f"{name}:{start}", kind, "\n".join(part))
