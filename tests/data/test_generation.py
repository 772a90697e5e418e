from __future__ import annotations

import dataclasses
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.chunks import chunks_of
from keras_bert_impl.data.corpus import read_documents
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.data.generation import generate
from keras_bert_impl.data.masking import Masking
from keras_bert_impl.data.pretraining_batches import evaluation_batches
from keras_bert_impl.data.records import write_records
from keras_bert_impl.data.shards import open_shards
from keras_bert_impl.data.workers import make_chunks
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab
from tests.conftest import REPO
from tests.data.generated import TOKENS, digests, examples_of, tokenizer, write_corpus

# Ten chunks or so of the small corpus.
SETTINGS = ExampleSettings(max_seq_length=32, chunk_bytes=3000, masking=Masking(max_predictions=6))
STATIC = dataclasses.replace(SETTINGS, form="static", dupe_factor=2)


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus.txt")


def test_bytes_do_not_depend_on_the_number_of_workers(corpus, tmp_path):
    settings = dataclasses.replace(STATIC, hold_out=0.2)
    found = []
    for workers in (1, 2, 3):
        generate(corpus, tokenizer(), tmp_path / str(workers), settings, workers=workers)
        found.append(digests(tmp_path / str(workers)))
        found[-1]["manifest"] = (tmp_path / str(workers) / "manifest.json").read_text()
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 10


def test_tf_models_official_reads_static_shards_as_we_do(corpus, tmp_path):
    loaders = pytest.importorskip("official.nlp.data.pretrain_dataloader")
    count = generate(corpus, tokenizer(), tmp_path / "out", STATIC).examples["train"]
    config = loaders.BertPretrainDataConfig(
        input_path=os.fspath(tmp_path / "out" / "*.tfrecord"),
        global_batch_size=8,
        is_training=False,
        seq_length=32,
        max_predictions_per_seq=6,
        drop_remainder=False,
    )
    theirs = loaders.BertPretrainDataLoader(config).load().unbatch().as_numpy_iterator()
    shards = open_shards(tmp_path / "out")
    ours = evaluation_batches(shards, tokenizer().vocab, batch_size=8).unbatch().take(count)
    renamed = [
        {
            "input_word_ids": features["token_ids"],
            "input_type_ids": features["segment_ids"],
            "input_mask": features["padding_mask"],
            "masked_lm_positions": features["masked_positions"],
            "masked_lm_ids": targets["masked_lm"],
            "masked_lm_weights": weights["masked_lm"],
            "next_sentence_labels": targets["next_sentence"][None],
        }
        for features, targets, weights in ours.as_numpy_iterator()
    ]
    assert count > 100
    assert sorted(map(content, renamed)) == sorted(map(content, theirs))


def content(example):
    return sorted((name, values.dtype.str, values.tolist()) for name, values in example.items())


def test_another_seed_gives_other_bytes(corpus, tmp_path):
    for seed in (1, 2):
        settings = dataclasses.replace(SETTINGS, seed=seed)
        generate(corpus, tokenizer(), tmp_path / str(seed), settings)
    assert digests(tmp_path / "1") != digests(tmp_path / "2")


@pytest.mark.parametrize("gzip", [False, True])
def test_static_shards_are_in_googles_schema(corpus, tmp_path, gzip):
    settings = dataclasses.replace(STATIC, gzip=gzip)
    result = generate(corpus, tokenizer(), tmp_path / "out", settings)
    files = sorted((tmp_path / "out").glob("*.tfrecord*"))
    # The parser of google-research/bert run_pretraining.py.
    spec = {
        "input_ids": tf.io.FixedLenFeature([32], tf.int64),
        "input_mask": tf.io.FixedLenFeature([32], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([32], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([6], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([6], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([6], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    records = tf.data.TFRecordDataset([str(file) for file in files], "GZIP" if gzip else "")
    parsed = [tf.io.parse_single_example(record, spec) for record in records]
    assert len(parsed) == result.examples["train"] > 100
    for example in parsed[:50]:
        ids, mask = example["input_ids"].numpy(), example["input_mask"].numpy()
        length = mask.sum()
        assert ids[0] == TOKENS.index("[CLS]")
        assert ids[length - 1] == TOKENS.index("[SEP]")
        assert not ids[length:].any()
        assert mask[:length].all()
        used = example["masked_lm_weights"].numpy() == 1
        positions = example["masked_lm_positions"].numpy()
        assert used.any()
        assert (np.diff(positions[used]) > 0).all()
        assert not positions[~used].any()
        assert (positions[used] < length).all()
    labels = [int(example["next_sentence_labels"][0]) for example in parsed]
    assert 0.3 < np.mean(labels) < 0.7


def test_dynamic_records_are_compact_and_unmasked(corpus, tmp_path):
    generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)
    for example in examples_of(tmp_path / "out/train-00000.tfrecord"):
        assert set(example) == {"token_ids", "first_length", "is_random_next"}
        ids, first = example["token_ids"], example["first_length"][0]
        assert len(ids) <= 32
        separators = [n for n, token in enumerate(ids) if token == TOKENS.index("[SEP]")]
        assert separators == [first - 1, len(ids) - 1]
        assert TOKENS.index("[MASK]") not in ids


def test_held_out_documents_are_in_no_training_example(tmp_path):
    words = [f"w{number}" for number in range(400)]
    vocab = BertTokenizer(Vocab([*TOKENS, *words]))
    lines = [f"{word} the cat.\n{word} a dog.\n{word} sat.\n" for word in words]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    settings = dataclasses.replace(SETTINGS, hold_out=0.25)
    result = generate(tmp_path / "corpus.txt", vocab, tmp_path / "out", settings)
    seen = {
        split: {
            token
            for file in (tmp_path / "out").glob(f"{split}-*.tfrecord")
            for example in examples_of(file)
            for token in example["token_ids"]
            if token >= len(TOKENS)
        }
        for split in ("train", "eval")
    }
    assert not seen["train"] & seen["eval"]
    assert 60 < len(seen["eval"]) < 140
    assert result.examples["eval"] == len(open_shards(tmp_path / "out", split="eval"))


def test_manifest_says_what_training_must_know(corpus, tmp_path):
    result = generate(corpus, tokenizer(), tmp_path / "out", STATIC)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest == result.manifest
    assert manifest["vocab_size"] == len(TOKENS)
    assert (manifest["max_seq_length"], manifest["max_predictions"]) == (32, 6)
    assert "another document" in manifest["sentence_label"]
    assert manifest["corpus"]["documents"] == 60
    assert manifest["corpus"]["tokens"] > 1000
    shards = open_shards(tmp_path / "out")
    assert len(shards) == sum(shard["examples"] for shard in manifest["shards"])
    shards.check(vocab=tokenizer().vocab, max_seq_length=32, max_predictions=6)
    assert not (tmp_path / "out/.progress").exists()
    assert BertTokenizer.from_pretrained(tmp_path / "out").vocab.tokens == tuple(TOKENS)


def test_a_finished_folder_is_neither_skipped_nor_overwritten(corpus, tmp_path):
    generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)
    with pytest.raises(FileExistsError, match="holds finished shards"):
        generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)


def test_a_folder_of_other_things_is_left_alone(corpus, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/train-00000.tfrecord").write_text("mine")
    with pytest.raises(FileExistsError, match="holds no unfinished shards"):
        generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)
    assert (tmp_path / "out/train-00000.tfrecord").read_text() == "mine"


class StoppedError(Exception):
    pass


def stop_after(chunks: int):
    def on_progress(progress):
        if progress.chunks >= chunks:
            raise StoppedError

    return on_progress


def begin(corpus, output, settings=SETTINGS, chunks=3):
    with pytest.raises(StoppedError):
        generate(corpus, tokenizer(), output, settings, on_progress=stop_after(chunks))


def test_going_on_makes_only_what_is_missing(corpus, tmp_path):
    generate(corpus, tokenizer(), tmp_path / "whole", SETTINGS)
    begin(corpus, tmp_path / "out")
    first = tmp_path / "out/train-00000.tfrecord"
    before = first.stat().st_mtime_ns
    result = generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)
    assert result.kept == 3
    assert result.made == len(digests(tmp_path / "whole")) - 3
    assert first.stat().st_mtime_ns == before
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
    manifests = [(tmp_path / name / "manifest.json").read_text() for name in ("out", "whole")]
    assert manifests[0] == manifests[1]


def test_other_settings_are_refused_and_named(corpus, tmp_path):
    begin(corpus, tmp_path / "out")
    other = dataclasses.replace(SETTINGS, seed=7, max_seq_length=64)
    with pytest.raises(ValueError, match="max_seq_length was 32 and is now 64; seed was 12345"):
        generate(corpus, tokenizer(), tmp_path / "out", other)


def test_another_corpus_is_refused(corpus, tmp_path):
    begin(corpus, tmp_path / "out")
    write_corpus(corpus, seed=1)
    with pytest.raises(ValueError, match=r"another corpus: chunk 0 \(.*corpus.txt:1 to "):
        generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)
    write_corpus(corpus, documents=4)
    with pytest.raises(ValueError, match="another corpus"):
        generate(corpus, tokenizer(), tmp_path / "out", SETTINGS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the cat.\na dog.\nthe mat.\n", "at least two documents.*--no-nsp"),
        ("the cat.\n\na dog.\n\nthe mat.\n", "one sentence each.*--no-nsp"),
        ("\x01\x02\n\n\x03\n", "the corpus has no text"),
    ],
    ids=["one document", "one sentence a document", "control characters"],
)
def test_degenerate_corpora(tmp_path, text, message):
    (tmp_path / "corpus.txt").write_text(text)
    source = tmp_path / "corpus.txt"
    with pytest.raises(ValueError, match=message):
        generate(source, tokenizer(), tmp_path / "out", SETTINGS, corpus_format="sentences")
    if "cat" in text:
        # The folder can be used for what the message points at.
        settings = dataclasses.replace(SETTINGS, sentence_task="none")
        result = generate(
            source, tokenizer(), tmp_path / "out", settings, corpus_format="sentences"
        )
        assert result.examples["train"] > 0
        example = examples_of(tmp_path / "out/train-00000.tfrecord")[0]
        assert set(example) == {"token_ids", "first_length"}


def test_vocabulary_without_mask(corpus, tmp_path):
    without = BertTokenizer(Vocab([token for token in TOKENS if token != "[MASK]"]))
    with pytest.raises(ValueError, match=r"has no \[MASK\]"):
        generate(corpus, without, tmp_path / "out", SETTINGS)
    assert not (tmp_path / "out").exists()


def test_bad_settings():
    for fields, message in (
        ({"form": "dense"}, "form must be one of dynamic, static, got 'dense'"),
        ({"hold_out": 1.5}, "hold_out must be from 0 to 1, got 1.5"),
        ({"dupe_factor": 0}, "dupe_factor must be at least 1, got 0"),
        ({"max_seq_length": 3}, "max_seq_length must be at least 5, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            ExampleSettings(**fields)


class Killed:
    """A maker whose process is killed, as the system does that has no memory left."""

    def make(self, chunk):
        if multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.5)


def test_a_killed_worker_is_named(corpus):
    one = next(chunks_of(read_documents(corpus), 3000))
    chunks = (dataclasses.replace(one, number=number) for number in itertools.count())
    with pytest.raises(
        ChildProcessError, match=r"killed by SIGKILL.*worked on chunk \d+ \(.*corpus.txt:1 to"
    ):
        for _ in make_chunks(Killed(), chunks, workers=2):
            pass
    assert not multiprocessing.active_children()


def test_disk_full_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "x; No space left on device")

    monkeypatch.setattr(tf.io.TFRecordWriter, "write", full)
    with pytest.raises(OSError, match=r"no disk space left to write .*shard.tfrecord"):
        write_records(tmp_path / "shard.tfrecord", [[b"record"]])
    assert not list(tmp_path.iterdir())


SCRIPT = """
import sys
from pathlib import Path
from keras_bert_impl.data.generation import generate
from tests.data.generated import tokenizer
from tests.data.test_generation import STATIC
if __name__ == "__main__":
    def progress(_):
        print("chunk", flush=True)
    workers = int(sys.argv[3])
    generate(sys.argv[1], tokenizer(), sys.argv[2], STATIC, workers=workers, on_progress=progress)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_and_gone_on_with(corpus, tmp_path, workers):
    generate(corpus, tokenizer(), tmp_path / "whole", STATIC)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(corpus), str(tmp_path / "out"), str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    rng = np.random.default_rng(workers)
    process = subprocess.Popen(command, cwd=REPO, env=environment, stdout=subprocess.PIPE)
    for _ in range(rng.integers(1, 4)):
        process.stdout.readline()
    time.sleep(rng.uniform(0, 0.02))
    process.kill()
    process.wait()
    result = generate(corpus, tokenizer(), tmp_path / "out", STATIC)
    assert result.kept >= 1
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
