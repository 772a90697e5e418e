"""Title: From a labelled file to a SavedModel in Python.

Description: what `keras-bert finetune` and `keras-bert export` do, step by step with `model.fit`.

    python examples/finetune_and_export.py train.tsv dev.tsv saved_models/my_classifier
"""

from __future__ import annotations

import sys

import keras

import keras_bert_impl as kb
from keras_bert_impl.data.labels import discover_labels, encode_labels
from keras_bert_impl.serving.export import export_classifier

MAX_LENGTH = 64


def main(train_file: str, dev_file: str, output: str, weights: str = "minilm", epochs: int = 3):
    keras.utils.set_random_seed(0)
    train, dev = kb.read_labelled(train_file), kb.read_labelled(dev_file)
    labels = discover_labels(train)

    tokenizer = kb.BertTokenizer.from_pretrained(weights)
    train_batches, dev_batches = (
        kb.bucketed_batches(
            tokenizer,
            examples.texts,
            labels=encode_labels(examples, labels),
            max_length=MAX_LENGTH,
            shuffle=examples is train,
        )
        for examples in (train, dev)
    )

    model = kb.BertClassifier.from_pretrained(weights, num_classes=len(labels), labels=labels)
    steps = int(train_batches.cardinality()) * epochs
    model.compile(kb.AdamW(kb.WarmupLinearDecay(1e-4, total_steps=steps)))
    model.fit(train_batches, validation_data=dev_batches, epochs=epochs, verbose=2)

    print(export_classifier(model, tokenizer, labels, output, max_length=MAX_LENGTH).path)


if __name__ == "__main__":
    main(*sys.argv[1:])
