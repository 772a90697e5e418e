"""What a corpus holds, in numbers, gathered by workers and merged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from keras_bert_impl.data.corpus.documents import CUTS, SkipCounter

__all__ = ["CorpusReport"]

# 2 ** 17 entries of a dict of integers take about 15 MB.
_MOST_HASHES = 1 << 17
_ALL = 1 << 64
_COUNTS = ("documents", "one_sentence_documents", "sentences", "tokens", "unknown", "characters")


class CorpusReport:
    """Counts of documents, sentences, tokens, characters, repeated lines and [UNK].

    The duplicate-line rate is the share of sentences that were seen before: 1 - distinct / all.
    It is exact up to 131,072 distinct sentences. Beyond, it is an estimate from a sample of the
    distinct ones: those with the smallest 64-bit hashes (BLAKE2b), with all their repetitions, so
    that memory is bounded (15 MB) and the result does not depend on order or number of workers.

    Attributes:
        skipped: the `SkipCounter` of what was left out or cut; pass it as `on_skip`.

    >>> report = CorpusReport()
    >>> report.add_document(["One two.", "Three."], lengths=[3, 2], unknown=1)
    >>> report.to_dict()["tokens_per_sentence"]
    2.5
    """

    def __init__(self) -> None:
        self.documents = 0
        self.one_sentence_documents = 0
        self.sentences = 0
        self.tokens = 0
        self.unknown = 0
        self.characters = 0
        self.skipped = SkipCounter()
        self._hashes: dict[int, int] = {}
        self._below = _ALL

    def add_document(
        self, sentences: Sequence[str], lengths: Sequence[int] | None = None, unknown: int = 0
    ) -> None:
        """Counts a document.

        Args:
            sentences: its sentences; a document without any is not counted.
            lengths: number of tokens of each sentence; None: not tokenized.
            unknown: how many of the tokens are [UNK].
        """
        if not sentences:
            return
        self.documents += 1
        self.one_sentence_documents += len(sentences) == 1
        self.sentences += len(sentences)
        self.characters += sum(map(len, sentences))
        self.tokens += int(sum(lengths)) if lengths is not None else 0
        self.unknown += int(unknown)
        for sentence in sentences:
            digest = hashlib.blake2b(sentence.encode(), digest_size=8).digest()
            key = int.from_bytes(digest, "little")
            if key < self._below:
                self._hashes[key] = self._hashes.get(key, 0) + 1
        self._shrink()

    def merge(self, other: CorpusReport) -> None:
        """Adds what another report, of other documents, has counted."""
        self.documents += other.documents
        self.one_sentence_documents += other.one_sentence_documents
        self.sentences += other.sentences
        self.tokens += other.tokens
        self.unknown += other.unknown
        self.characters += other.characters
        self.skipped.merge(other.skipped)
        for key, count in other._hashes.items():
            self._hashes[key] = self._hashes.get(key, 0) + count
        self._keep_below(min(self._below, other._below))
        self._shrink()

    def to_state(self) -> dict:
        """All that `from_state` needs; JSON but for `hashes`, a dict of integers."""
        return {
            "counts": {name: getattr(self, name) for name in _COUNTS},
            "below": self._below,
            "skipped": dict(self.skipped.counts),
            "skipped_examples": self.skipped.examples,
            "hashes": self._hashes,
        }

    @classmethod
    def from_state(cls, state: dict) -> CorpusReport:
        """The report of which `to_state` told."""
        report = cls()
        for name in _COUNTS:
            setattr(report, name, state["counts"][name])
        report._hashes, report._below = dict(state["hashes"]), state["below"]
        report.skipped.counts.update(state["skipped"])
        report.skipped.examples.update(state["skipped_examples"])
        return report

    def _shrink(self) -> None:
        while len(self._hashes) > _MOST_HASHES:
            self._keep_below(self._below // 2)

    def _keep_below(self, limit: int) -> None:
        if limit < self._below or any(key >= limit for key in self._hashes):
            self._below = limit
            self._hashes = {key: count for key, count in self._hashes.items() if key < limit}

    @property
    def duplicate_line_rate(self) -> float:
        return 1 - len(self._hashes) / (sum(self._hashes.values()) or 1) if self._hashes else 0.0

    def to_dict(self) -> dict[str, object]:
        """The figures for a JSON file; rates and means are 0 where nothing was counted."""
        return {
            "documents": self.documents,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "characters": self.characters,
            "tokens_per_sentence": self.tokens / max(self.sentences, 1),
            "sentences_per_document": self.sentences / max(self.documents, 1),
            "one_sentence_documents": self.one_sentence_documents,
            "duplicate_line_rate": self.duplicate_line_rate,
            "duplicate_line_rate_is_exact": self._below == _ALL,
            "unknown_rate": self.unknown / max(self.tokens, 1),
            "skipped": self._reasons(cut=False),
            "cut": self._reasons(cut=True),
        }

    def _reasons(self, *, cut: bool) -> dict[str, dict[str, object]]:
        skipped = self.skipped
        return {
            reason: {"count": count, "examples": list(skipped.examples[reason])}
            for reason, count in sorted(skipped.counts.items())
            if (reason in CUTS) == cut
        }

    def lines(self) -> list[str]:
        """The report for a terminal, with advice where the figures ask for it."""
        figures = self.to_dict()
        about = "" if figures["duplicate_line_rate_is_exact"] else "about "
        lines = [
            f"documents            {self.documents:,}",
            f"sentences            {self.sentences:,} "
            f"({figures['sentences_per_document']:.1f} a document)",
        ]
        if self.tokens:
            lines += [
                f"tokens               {self.tokens:,} "
                f"({figures['tokens_per_sentence']:.1f} a sentence)",
                f"[UNK]                {figures['unknown_rate']:.2%} of the tokens",
            ]
        lines += [
            f"characters           {self.characters:,}",
            f"duplicate lines      {about}{self.duplicate_line_rate:.1%}",
        ]
        for title, key in (("skipped", "skipped"), ("cut", "cut")):
            for reason, found in figures[key].items():
                examples = ", ".join(found["examples"])
                lines.append(f"{title:<20} {found['count']:,}: {reason} (such as {examples})")
        return lines + [f"note: {note}" for note in self.notes()]

    def notes(self) -> list[str]:
        """What a user should know before training on this corpus, in sentences."""
        notes = []
        if self.documents == 1:
            notes.append(
                "the corpus is one document: a random next sentence cannot come from another one "
                "(are there blank lines between documents?)"
            )
        elif self.documents and self.one_sentence_documents > 0.5 * self.documents:
            notes.append(
                f"{self.one_sentence_documents:,} of {self.documents:,} documents have one "
                "sentence and no next one (is there a blank line behind every line?)"
            )
        if self.duplicate_line_rate > 0.1:
            notes.append(f"{self.duplicate_line_rate:.0%} of the lines are repetitions")
        if self.unknown > 0.05 * self.tokens:
            notes.append("more than 5 % of the tokens are [UNK]: does the vocabulary fit?")
        return notes
