"""Logits to answers: plain TensorFlow operations, the same in predict and in a SavedModel."""
