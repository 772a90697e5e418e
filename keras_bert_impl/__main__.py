"""``python -m keras_bert_impl`` is the command ``keras-bert``."""

from __future__ import annotations

from keras_bert_impl.cli import main

main()
