"""SavedModels for TensorFlow Serving: signatures, warm-up requests, the check in a fresh process.

Imports nothing, so that `python -m keras_bert_impl.serving.verify` needs TensorFlow alone.
"""
