from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")

from keras_bert_impl.data.beam import generate_with_beam
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.masking import Masking
from keras_bert_impl.data.shards import open_shards
from tests.data.generated import digests, tokenizer, write_corpus

SETTINGS = ExampleSettings(
    form="static", max_seq_length=32, masking=Masking(max_predictions=6), dupe_factor=2
)


def test_bytes_do_not_depend_on_the_order_of_the_files(tmp_path):
    corpora = [write_corpus(tmp_path / f"{name}.txt", 20, seed=ord(name)) for name in "ab"]
    folders = [tmp_path / "once", tmp_path / "again"]
    for folder, files in zip(folders, (corpora, corpora[::-1]), strict=True):
        manifest = generate_with_beam(files, tokenizer(), folder, SETTINGS, shards=3)
    assert digests(folders[0]) == digests(folders[1])
    assert len(digests(folders[0])) == 3
    shards = open_shards(folders[0])
    assert len(shards) == manifest["examples"]["train"] > 50
    assert manifest["corpus"]["documents"] == 40
    shards.check(vocab=tokenizer().vocab, max_seq_length=32, max_predictions=6)
    with pytest.raises(FileExistsError, match="is not empty"):
        generate_with_beam(corpora, tokenizer(), folders[0], SETTINGS, shards=3)


def test_one_document(tmp_path):
    (tmp_path / "corpus.txt").write_text("the cat.\na dog.\nthe mat.\n")
    settings = dataclasses.replace(SETTINGS, form="dynamic")
    with pytest.raises(ValueError, match="at least two documents"):
        generate_with_beam(
            tmp_path / "corpus.txt", tokenizer(), tmp_path / "out", settings, shards=2
        )
