"""Outputs of a model for many rows, computed in batches of about equal length.

Shapes: N rows, T tokens of all rows.
"""

from __future__ import annotations

import numpy as np

from keras_bert_impl.data.batches import as_one_batch, sorted_row_batches
from keras_bert_impl.data.encoding import EncodedTexts

__all__ = ["row_outputs", "token_outputs"]


def row_outputs(
    model, rows: EncodedTexts, batch_size: int, choices: int | None = None
) -> np.ndarray:
    """The output of each row, or of each group of `choices` rows: float32 [N, ...]."""
    if len(rows) // (choices or 1) <= batch_size:
        return np.asarray(model.predict_on_batch(as_one_batch(rows, choices)))
    batches, restore = sorted_row_batches(rows, batch_size=batch_size, choices=choices)
    return model.predict(batches, verbose=0)[restore]


def token_outputs(model, rows: EncodedTexts, batch_size: int) -> np.ndarray | dict:
    """The outputs of each token, float32 [T, ...], aligned with ``rows.token_ids``.

    A model with a dict of outputs gives a dict.
    """
    order = np.argsort(-rows.lengths, kind="stable")
    batches, _ = sorted_row_batches(rows, batch_size=batch_size)
    found, first = {}, 0
    for features in batches:
        outputs = model.predict_on_batch(features)
        outputs = outputs if isinstance(outputs, dict) else {"": outputs}
        chosen = order[first : first + batch_size]
        first += batch_size
        real = features["padding_mask"].numpy().astype(bool)
        # Rows lie one behind the other: a row's tokens are a range.
        places = (rows.starts[chosen, None] + np.arange(real.shape[1]))[real]
        for name, values in outputs.items():
            values = np.asarray(values)
            if name not in found:
                shape = (len(rows.token_ids), *values.shape[2:])
                found[name] = np.empty(shape, values.dtype)
            found[name][places] = values[real]
    return found[""] if set(found) == {""} else found
