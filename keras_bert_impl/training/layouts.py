"""How Keras' JAX backend spreads the weights of our models over devices."""

from __future__ import annotations

import keras

__all__ = ["layout_map"]


def layout_map(
    mesh: keras.distribution.DeviceMesh, model_axis: str = "model"
) -> keras.distribution.LayoutMap:
    """The layout of every large weight of our models, for `keras.distribution.ModelParallel`.

    Attention is cut by heads and the feed-forward part by its inner width, so that a block needs
    one sum over the devices in each (Shoeybi et al. 2019, section 3). Embeddings are cut by their
    width: BERT's vocabulary of 30522 does not divide by 4. All else is on every device. The
    optimizer's moments lie as their weights.

    Args:
        mesh: with an axis for the batch and one for the weights.
        model_axis: name of the latter; its size divides the heads and `intermediate_size`.

    Returns:
        What `keras.distribution.ModelParallel(layout_map=...)` takes. Models are made after
        `keras.distribution.set_distribution`.
    """
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[r".*embeddings/(token|segment|position)/embeddings"] = (None, model_axis)
    layouts[r".*attention/(query|key|value)/kernel"] = (None, model_axis)
    layouts[r".*attention/(query|key|value)/bias"] = (model_axis,)
    layouts[r".*attention/projection/kernel"] = (model_axis, None)
    layouts[r".*intermediate/kernel"] = (None, model_axis)
    layouts[r".*intermediate/bias"] = (model_axis,)
    layouts[r".*/output_projection/kernel"] = (model_axis, None)
    return layouts
