"""What every model has: weights from a folder, and into one."""

from __future__ import annotations

import os
from typing import Self

import keras

__all__ = ["INPUTS", "Pretrained"]

INPUTS = ("token_ids", "segment_ids", "padding_mask")


class Pretrained:
    """Mix-in before `keras.Model`, for models whose constructor takes a config."""

    input_names = INPUTS
    input_axes = ("batch", "sequence")

    def get_config(self):
        frozen = list(_frozen(self))
        return {**super().get_config(), **({"frozen": frozen} if frozen else {})}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        frozen = config.pop("frozen", ())
        model = cls(**config)
        for path in frozen:
            layer = model
            for name in path.split("/"):
                layer = next(one for one in _parts(layer) if one.name == name)
            layer.trainable = False
        return model

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

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """As `keras.Model.export`, also of a model that was never called.

        Args:
            filepath, *args, **kwargs: as in Keras.
            input_signature: default: every input of the model, int32 of any size. For raw text in
                and labels out, see `keras_bert_impl.serving`.
        """
        if input_signature is None:
            spec = keras.InputSpec(dtype="int32", shape=(None,) * len(self.input_axes))
            input_signature = [dict.fromkeys(self.input_names, spec)]
        return super().export(filepath, *args, input_signature=input_signature, **kwargs)


def _parts(layer):
    return layer._flatten_layers(include_self=False, recursive=False)


def _frozen(layer, prefix: str = ""):
    """Paths of the outermost layers that are not trained, as names from the model on."""
    for part in _parts(layer):
        if not part.trainable:
            yield prefix + part.name
        else:
            yield from _frozen(part, f"{prefix}{part.name}/")
