"""What pre-training reads and checks before it begins."""

from __future__ import annotations

import os

from keras_bert_impl import checkpoints
from keras_bert_impl.config import BertConfig
from keras_bert_impl.data.shards import Shards, open_shards
from keras_bert_impl.jobs.preparation import config_of_size, open_vocabulary
from keras_bert_impl.jobs.pretraining_settings import PretrainSettings
from keras_bert_impl.jobs.run_folder import read_record
from keras_bert_impl.sources.storage import is_remote
from keras_bert_impl.text.tokenizer import BertTokenizer

__all__ = ["PretrainInputs", "check_remote"]


class PretrainInputs:
    """Shards, vocabulary and config, checked against each other.

    Attributes:
        shards: to train on.
        eval_shards: to score on, or None.
        tokenizer: of the vocabulary.
        config: of the model.

    Raises:
        FileNotFoundError, ValueError: one is missing, damaged or does not fit the others.
    """

    def __init__(self, settings: PretrainSettings):
        self.shards, self.eval_shards = _open_data(settings)
        self.tokenizer = _tokenizer(settings, self.shards)
        self.config = self._config(settings)
        self.shards.check(
            vocab=self.tokenizer.vocab,
            max_seq_length=settings.max_seq_length,
            max_predictions=settings.max_predictions,
        )
        if self.eval_shards is not None:
            self.eval_shards.check(vocab=self.tokenizer.vocab)
        self._check_config()

    def _config(self, settings: PretrainSettings) -> BertConfig:
        if settings.resume:
            return BertConfig(**read_record(settings.output)["model"]["config"])
        if settings.init_checkpoint is not None:
            return checkpoints.open_checkpoint(settings.init_checkpoint).config
        return config_of_size(settings.size, len(self.tokenizer.vocab))[0]

    def _check_config(self) -> None:
        size = len(self.tokenizer.vocab)
        if size != self.config.vocab_size:
            raise ValueError(
                f"the vocabulary of {self.shards.path} has {size} tokens and the model's config "
                f"says vocab_size {self.config.vocab_size}"
            )
        for shards in filter(None, (self.shards, self.eval_shards)):
            length = shards.max_seq_length
            if length > self.config.max_position_embeddings:
                raise ValueError(
                    f"{shards.path}: max_seq_length {length} is more than the model's "
                    f"max_position_embeddings {self.config.max_position_embeddings}"
                )
            if shards.has_sentence_task != self.shards.has_sentence_task:
                which = (
                    ("without", "with") if self.shards.has_sentence_task else ("with", "without")
                )
                raise ValueError(
                    f"{shards.path}: these shards are {which[0]} sentence task, and those to train "
                    f"on, {self.shards.path}, {which[1]} it"
                )


def check_remote(settings: PretrainSettings) -> None:
    """Raises ValueError unless what a TPU is to read and write lies in a bucket."""
    for name in ("data", "output"):
        path = os.fspath(getattr(settings, name))
        if not is_remote(path):
            raise ValueError(
                f"strategy tpu: --{name} {path} is a local path: a TPU that is reached over the "
                "network reads and writes gs:// only, and the disk of a TPU VM goes with the VM"
            )


def _open_data(settings: PretrainSettings) -> tuple[Shards, Shards | None]:
    """The shards to train on, and those to score on."""
    train = open_shards(settings.data, split="train")
    if train is None:
        raise ValueError(f"{settings.data}: its manifest names no train shards")
    if settings.eval_data is None:
        return train, open_shards(settings.data, split="eval") if train.manifest else None
    return train, open_shards(settings.eval_data)


def _tokenizer(settings: PretrainSettings, shards: Shards) -> BertTokenizer:
    if settings.vocab is None and not shards.manifest:
        raise ValueError(f"{shards.path}: these shards come without vocabulary: give it (--vocab)")
    return open_vocabulary(settings.vocab or settings.data)
