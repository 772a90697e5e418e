"""What decides the bytes of pre-training shards, beside the corpus and the tokenizer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from keras_bert_impl.data.masking import Masking
from keras_bert_impl.data.pretraining import SENTENCE_TASKS
from keras_bert_impl.text.sentences import LANGUAGES

__all__ = ["FORMS", "ExampleSettings"]

FORMS = ("dynamic", "static")


@dataclass(frozen=True)
class ExampleSettings:
    """How a corpus becomes shards; the defaults are those of google-research/bert.

    Attributes:
        form: ``"dynamic"`` (masks are drawn in training) or ``"static"`` (Google's schema).
        max_seq_length: tokens of an example, special tokens counted.
        short_seq_prob: share of the documents whose examples are filled to a random length.
        masking: how pieces are masked; of the dynamic form it is the default of training.
        sentence_task: ``"nsp"``, ``"sop"`` or ``"none"``.
        dupe_factor: passes over the corpus, with other pairs and masks in each; None means 5 for
            static shards and 1 for dynamic ones. Held-out documents are passed once.
        seed: of all draws.
        language: of `sentences_of`.
        chinese_words: keep Chinese words together for masking of whole words (jieba).
        hold_out: share of the documents, chosen by a hash of their text, that go to ``eval``
            shards.
        gzip: pack the shards.
        chunk_bytes: text that becomes one shard.

    Raises:
        ValueError: a value out of its range.
    """

    form: str = "dynamic"
    max_seq_length: int = 128
    short_seq_prob: float = 0.1
    masking: Masking = field(default_factory=Masking)
    sentence_task: str = "nsp"
    dupe_factor: int | None = None
    seed: int = 12345
    language: str = "auto"
    chinese_words: bool = False
    hold_out: float = 0.0
    gzip: bool = False
    chunk_bytes: int = 4_000_000

    def __post_init__(self) -> None:
        for name, known in (
            ("form", FORMS),
            ("sentence_task", SENTENCE_TASKS),
            ("language", LANGUAGES),
        ):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        for name, least in (("max_seq_length", 5), ("chunk_bytes", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.passes < 1:
            raise ValueError(f"dupe_factor must be at least 1, got {self.dupe_factor}")
        for name in ("short_seq_prob", "hold_out"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)}")

    @property
    def passes(self) -> int:
        """Passes over the documents that are not held out."""
        if self.dupe_factor is None:
            return 5 if self.form == "static" else 1
        return self.dupe_factor

    @property
    def max_predictions(self) -> int:
        """Prediction slots of a static record: those of Google's script, used or not."""
        return self.masking.max_predictions or self.masking.slots(self.max_seq_length)

    def to_dict(self) -> dict[str, object]:
        """For JSON, with the number of passes in the place of None."""
        return {**dataclasses.asdict(self), "dupe_factor": self.passes}
