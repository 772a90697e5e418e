"""The one base class of every model; `compile`, `fit`, `evaluate` and `predict` are Keras'."""

import keras

if keras.backend.backend() == "tensorflow":
    from keras_bert_impl.trainer.tensorflow import Trainer
else:
    from keras_bert_impl.trainer.jax import Trainer

__all__ = ["Trainer"]
