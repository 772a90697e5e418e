"""The one base class of every model; `compile`, `fit`, `evaluate` and `predict` are Keras'."""

import keras

if keras.backend.backend() == "tensorflow":
    from keras_bert_impl.trainer.tensorflow import Trainer
    from keras_bert_impl.trainer.tensorflow_optimizer import ClipAfterReduction
else:
    from keras_bert_impl.trainer.jax import ClipAfterReduction, Trainer

__all__ = ["ClipAfterReduction", "Trainer"]
