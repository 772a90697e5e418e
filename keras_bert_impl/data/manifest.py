"""What is noted of a folder of shards: while they are made, and in the manifest at the end."""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_impl.data.corpus import CorpusReport
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["FORMAT_VERSION", "manifest_of", "noted_settings"]

FORMAT_VERSION = 1


def noted_settings(settings: ExampleSettings, tokenizer: BertTokenizer, corpus_format: str) -> dict:
    """All that decides the bytes of the shards, but the corpus."""
    options = tokenizer.get_config()
    del options["tokens"]
    return {
        "format_version": FORMAT_VERSION,
        **settings.to_dict(),
        "corpus_format": corpus_format,
        "vocab_size": len(tokenizer.vocab),
        "vocab_sha256": tokenizer.vocab.sha256,
        "tokenizer": options,
    }


def manifest_of(
    settings: ExampleSettings,
    tokenizer: BertTokenizer,
    shards: Sequence[dict],
    report: CorpusReport,
) -> dict:
    """What training has to know of a folder of shards.

    Args:
        shards: ``file``, ``split`` and number of ``examples`` of each.
    """
    is_static = settings.form == "static"
    polarity = {
        "nsp": "is_random_next 1: the second segment comes from another document (as Google)",
        "sop": "is_random_next 1: the two segments are swapped",
        "none": "no sentence task: one segment",
    }
    noted = noted_settings(settings, tokenizer, "")
    del noted["corpus_format"]
    counts = dict.fromkeys(("train", "eval"), 0)
    for shard in shards:
        counts[shard["split"]] += shard["examples"]
    return {
        **noted,
        "schema": "google create_pretraining_data" if is_static else "unmasked packed pairs",
        "max_predictions": settings.max_predictions,
        "sentence_label": polarity[settings.sentence_task],
        "examples": counts,
        "shards": list(shards),
        "corpus": report.to_dict(),
    }
