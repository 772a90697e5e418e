"""Outputs of a model for many rows, computed in batches of about equal length.

Shapes: N rows.
"""

from __future__ import annotations

import numpy as np

from keras_bert_impl.data.batches import as_one_batch, sorted_row_batches
from keras_bert_impl.data.encoding import EncodedTexts

__all__ = ["row_outputs"]


def row_outputs(
    model, rows: EncodedTexts, batch_size: int, choices: int | None = None
) -> np.ndarray:
    """The output of each row, or of each group of `choices` rows: float32 [N, ...]."""
    if len(rows) // (choices or 1) <= batch_size:
        return np.asarray(model.predict_on_batch(as_one_batch(rows, choices)))
    batches, restore = sorted_row_batches(rows, batch_size=batch_size, choices=choices)
    return model.predict(batches, verbose=0)[restore]
