"""What every model has: weights from a folder, and into one."""

from __future__ import annotations

import os
from typing import Self

__all__ = ["Pretrained"]


class Pretrained:
    """Mix-in before `keras.Model`, for models whose constructor takes a config."""

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)

    @classmethod
    def from_pretrained(cls, source: str | os.PathLike, **kwargs) -> Self:
        """A model with the weights of a folder, `hf:ORG/NAME` or `minilm`.

        A head that the folder lacks is newly initialised, which is logged.

        Args:
            source: as `keras_bert_impl.sources.resolve`.
            **kwargs: other arguments of the class than `config`, and those of `keras.Model`.

        Raises:
            FileNotFoundError, ValueError: as `checkpoints.open_checkpoint` and its `load_into`.
        """
        from keras_bert_impl import checkpoints

        checkpoint = checkpoints.open_checkpoint(source)
        model = cls(checkpoint.config, **kwargs)
        checkpoint.load_into(model)
        return model

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Writes config, labels and weights; `from_pretrained` of the folder gives them back.

        Raises:
            FileExistsError: the folder holds a finished run.
        """
        from keras_bert_impl import checkpoints

        checkpoints.save_run(self, folder)
