"""Files of records: both forms, random access, damage."""

from __future__ import annotations

import gzip
import hashlib
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.masking import Masking
from keras_bert_impl.data.pretraining_batches import evaluation_batches, pretraining_batches
from keras_bert_impl.data.shards import open_shards
from keras_bert_impl.text.vocab import Vocab

LENGTH, SLOTS = 16, 4
VOCAB = Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(35))])


def ints(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(v) for v in values]))


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def google_record(number, length=LENGTH, slots=SLOTS, v2_names=False):
    """An example as `create_pretraining_data.py` writes it; token 5 is the number."""
    real = 8 + number % 5
    ids = [2, 5 + number % 30, *range(5, real + 2), 3][:real]
    names = ("input_word_ids", "input_type_ids") if v2_names else ("input_ids", "segment_ids")
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                names[0]: ints(ids + [0] * (length - len(ids))),
                "input_mask": ints([1] * len(ids) + [0] * (length - len(ids))),
                names[1]: ints([0] * 5 + [1] * (len(ids) - 5) + [0] * (length - len(ids))),
                "masked_lm_positions": ints([1, 3] + [0] * (slots - 2)),
                "masked_lm_ids": ints([7, 8] + [0] * (slots - 2)),
                "masked_lm_weights": floats([1.0, 1.0] + [0.0] * (slots - 2)),
                "next_sentence_labels": ints([number % 2]),
            }
        )
    ).SerializeToString()


def dynamic_record(number):
    """[CLS] a [SEP] b [SEP]; the first token is the number."""
    ids = [2, 5 + number % 30, *range(6, 8 + number % 4), 3, 9, 3]
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "token_ids": ints(ids),
                "first_length": ints([len(ids) - 2]),
                "is_random_next": ints([number % 2]),
            }
        )
    ).SerializeToString()


def write(path, records, compression=""):
    with tf.io.TFRecordWriter(os.fspath(path), compression) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.fixture
def google_files(tmp_path):
    folder = tmp_path / "google"
    folder.mkdir()
    write(folder / "a.tfrecord", [google_record(n) for n in range(7)])
    write(folder / "b.tfrecord", [google_record(n) for n in range(7, 12)])
    return folder


@pytest.fixture
def dynamic_file(tmp_path):
    return write(tmp_path / "dynamic.tfrecord", [dynamic_record(n) for n in range(11)])


def numbers_of(batches, steps, form):
    """The numbers that records carry in their first token, under its mask where it has one."""
    found = []
    for inputs, targets, weights in batches.take(steps).as_numpy_iterator():
        tokens = inputs["token_ids"][:, 1].copy()
        if form == "dynamic_file":
            is_first = (inputs["masked_positions"] == 1) & (weights["masked_lm"] > 0)
            rows, slots = is_first.nonzero()
            tokens[rows] = targets["masked_lm"][rows, slots]
        found += (tokens - 5).tolist()
    return found


def test_records_by_number_over_several_files(google_files):
    shards = open_shards(google_files)
    assert (len(shards), shards.form) == (12, "static")
    assert (shards.max_seq_length, shards.max_predictions) == (LENGTH, SLOTS)
    assert shards.read(np.array([11, 0, 7])) == [google_record(n) for n in (11, 0, 7)]


def test_a_static_batch_is_what_google_wrote(google_files):
    inputs, targets, weights = next(
        evaluation_batches(open_shards(google_files), VOCAB, batch_size=12).as_numpy_iterator()
    )
    for number in range(12):
        example = tf.train.Example.FromString(google_record(number)).features.feature
        for name, key in (
            ("token_ids", "input_ids"),
            ("segment_ids", "segment_ids"),
            ("padding_mask", "input_mask"),
            ("masked_positions", "masked_lm_positions"),
        ):
            assert inputs[name].dtype == np.int32
            assert inputs[name][number].tolist() == list(example[key].int64_list.value)
        assert targets["masked_lm"][number].tolist() == [7, 8, 0, 0]
        assert weights["masked_lm"][number].tolist() == [1, 1, 0, 0]
        assert targets["next_sentence"][number] == number % 2
    assert weights["next_sentence"].tolist() == [1.0] * 12


@pytest.mark.parametrize("kind", ["gzip", "v2_names"])
def test_other_layouts_of_the_static_form(kind, tmp_path):
    records = [google_record(n, v2_names=kind == "v2_names") for n in range(5)]
    path = write(tmp_path / "x.tfrecord.gz", records, "GZIP" if kind == "gzip" else "")
    shards = open_shards(path)
    assert shards.read(np.arange(5)) == records
    assert numbers_of(evaluation_batches(shards, VOCAB, batch_size=5), 1, "google") == list(
        range(5)
    )
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith(".")) == [path.name]


@pytest.mark.parametrize("form", ["google_files", "dynamic_file"])
def test_each_epoch_has_every_record_once_in_an_order_of_its_own(form, request):
    shards = open_shards(request.getfixturevalue(form))
    count = len(shards)
    batches = pretraining_batches(shards, VOCAB, batch_size=4, seed=3)
    stream = numbers_of(batches, count, form)
    epochs = [stream[start : start + count] for start in range(0, 4 * count, count)]
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    other = numbers_of(pretraining_batches(shards, VOCAB, batch_size=4, seed=4), count, form)
    assert other != stream


@pytest.mark.parametrize("form", ["google_files", "dynamic_file"])
@pytest.mark.parametrize("world", [1, 2])
def test_the_stream_goes_on_at_any_step_and_divides_among_machines(form, world, request):
    shards = open_shards(request.getfixturevalue(form))
    options = {"batch_size": 6, "seed": 5}
    whole = list(pretraining_batches(shards, VOCAB, **options).take(9).as_numpy_iterator())
    for rank in range(world):
        rest = pretraining_batches(
            shards, VOCAB, **options, start_step=4, rank=rank, world=world
        ).take(5)
        for expected, found in zip(whole[4:], rest.as_numpy_iterator(), strict=True):
            tf.nest.map_structure(
                lambda a, b, rank=rank: np.testing.assert_array_equal(a[rank::world], b),
                expected,
                found,
            )


def test_dynamic_masks_are_new_in_each_epoch_and_shapes_static(dynamic_file):
    shards = open_shards(dynamic_file)
    batches = pretraining_batches(shards, VOCAB, batch_size=11, masking=Masking(max_predictions=2))
    inputs, targets, _ = batches.element_spec
    width = shards.max_seq_length
    assert inputs["token_ids"].shape.as_list() == [11, width]
    assert inputs["masked_positions"].shape == targets["masked_lm"].shape == [11, 2]
    masked = {}
    for inputs, targets, weights in batches.take(6).as_numpy_iterator():
        for row in range(11):
            slots = weights["masked_lm"][row] > 0
            positions, ids = inputs["masked_positions"][row], targets["masked_lm"][row]
            restored = inputs["token_ids"][row].copy()
            restored[positions[slots]] = ids[slots]
            number = int(restored[1] - 5)
            expected = tf.train.Example.FromString(dynamic_record(number)).features.feature
            expected = list(expected["token_ids"].int64_list.value)
            assert restored[: len(expected)].tolist() == expected
            assert inputs["padding_mask"][row].sum() == len(expected)
            assert inputs["segment_ids"][row].sum() == 2
            assert targets["next_sentence"][row] == number % 2
            masked.setdefault(number, set()).add(tuple(positions[slots]))
    assert sum(len(kinds) > 1 for kinds in masked.values()) >= 9


@pytest.mark.parametrize("form", ["google_files", "dynamic_file"])
def test_evaluation_scores_every_record_once(form, request):
    shards = open_shards(request.getfixturevalue(form))
    seen = []
    for inputs, _, weights in evaluation_batches(shards, VOCAB, batch_size=8).as_numpy_iterator():
        assert len(inputs["token_ids"]) == 8
        real = weights["next_sentence"] > 0
        assert not weights["masked_lm"][~real].any()
        seen += (inputs["token_ids"][real, 1]).tolist() if form == "google_files" else real.tolist()
    assert len([s for s in seen if s]) == len(shards)
    once, twice = (
        list(evaluation_batches(shards, VOCAB, batch_size=8).as_numpy_iterator()) for _ in range(2)
    )
    tf.nest.map_structure(np.testing.assert_array_equal, once, twice)


def test_the_index_is_made_once(google_files, monkeypatch):
    open_shards(google_files)
    monkeypatch.setattr(
        "keras_bert_impl.data.shard_index.build_index", lambda *args: pytest.fail("built again")
    )
    assert len(open_shards(google_files)) == 12


def test_a_folder_that_cannot_be_written_keeps_its_index_in_the_cache(
    google_files, monkeypatch, tmp_path
):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "file").touch()
    monkeypatch.setattr(
        "keras_bert_impl.data.shard_index._beside", lambda path: tmp_path / "file" / "index.npz"
    )
    assert len(open_shards(google_files)) == 12
    assert list((tmp_path / "cache" / "shards").iterdir())


def cut(content):
    return content[:-30]


def flip(content):
    return content[:700] + bytes([content[700] ^ 1]) + content[701:]


@pytest.mark.parametrize(
    ("damage", "where"), [(cut, "record 6"), (flip, r"record \d")], ids=["cut", "flipped"]
)
def test_damage_names_file_and_record(damage, where, google_files):
    file = google_files / "a.tfrecord"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=rf"a\.tfrecord: damaged or truncated at {where}"):
        open_shards(google_files)


def test_half_a_gzip_file(tmp_path):
    path = write(tmp_path / "x.tfrecord", [google_record(1)], "GZIP")
    path.write_bytes(gzip.compress(b"x" * 10_000)[:-12])
    with pytest.raises(ValueError, match=r"x\.tfrecord: the gzip file is damaged"):
        open_shards(path)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "holds no record"),
        ([b"no proto"], "record 0 is no tf.train.Example"),
        ([tf.train.Example().SerializeToString()], r"expected the keys of Google's .* got \[\]"),
        (
            [google_record(0), google_record(1), google_record(2, length=24)],
            "record 2 has seq_length 24, and record 0 has 16",
        ),
        (
            [google_record(0), google_record(1, slots=7)],
            "record 1 has predictions 7, and record 0 has 4",
        ),
    ],
)
def test_files_of_other_things(records, message, tmp_path):
    path = write(tmp_path / "x.tfrecord", records)
    with pytest.raises(ValueError, match=message):
        open_shards(path)


def test_files_that_differ(google_files):
    write(google_files / "c.tfrecord", [google_record(0, slots=6)])
    with pytest.raises(ValueError, match=r"c\.tfrecord: predictions is 6, and that of .*a\.tfr"):
        open_shards(google_files)


def test_what_training_expects_is_checked(google_files):
    shards = open_shards(google_files)
    shards.check(vocab=VOCAB, max_seq_length=LENGTH, max_predictions=SLOTS)
    with pytest.raises(ValueError, match=r"a\.tfrecord: its max_seq_length is 16, and 32 was"):
        shards.check(max_seq_length=32)
    with pytest.raises(ValueError, match=r"its max_predictions is 4, and 20 was asked for"):
        shards.check(max_predictions=20)
    small = Vocab(VOCAB.tokens[:12])
    with pytest.raises(ValueError, match=r"a\.tfrecord: record \d+ holds token id \d+, and the vo"):
        shards.check(vocab=small)


def test_no_such_shards(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither manifest.json nor \*.tfrecord"):
        open_shards(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_shards(tmp_path / "absent.tfrecord")


def test_a_manifest_of_a_newer_format(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"format_version": 9}))
    with pytest.raises(ValueError, match="format_version 9 is not known"):
        open_shards(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="not a manifest of this package"):
        open_shards(tmp_path)


GOOD = {"format_version": 1, "shards": [{"file": "a.tfrecord", "split": "train", "examples": 3}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shards": None}, r"manifest\.json: the manifest is damaged"),
        ({"shards": [{}]}, r"manifest\.json: the manifest is damaged: KeyError\('file'\)"),
        ({"shards": [3]}, r"manifest\.json: the manifest is damaged"),
        ({"max_seq_length": "x"}, r"manifest\.json: the manifest is damaged"),
        ({"masking": {"foo": 1}}, r"manifest\.json: the manifest is damaged.*foo"),
        ({"max_seq_length": 8}, r"a\.tfrecord: a record has 16 tokens.* says max_seq_length 8"),
        (
            {"shards": [{"file": "a.tfrecord", "split": "train", "examples": 4}]},
            r"a\.tfrecord: 3 records, and manifest\.json says 4: the file is truncated",
        ),
    ],
)
def test_a_manifest_that_does_not_fit_its_files(changes, message, tmp_path):
    write(tmp_path / "a.tfrecord", [google_record(n) for n in range(3)])
    (tmp_path / "manifest.json").write_text(json.dumps(GOOD))
    assert len(open_shards(tmp_path)) == 3
    (tmp_path / "manifest.json").write_text(json.dumps(GOOD | changes))
    with pytest.raises(ValueError, match=message):
        open_shards(tmp_path)


def test_masks_of_static_shards_cannot_be_drawn_again(google_files):
    with pytest.raises(ValueError, match="its masks are drawn already"):
        pretraining_batches(open_shards(google_files), VOCAB, batch_size=2, masking=Masking())


def test_another_vocabulary_of_the_same_size(tmp_path):
    write(tmp_path / "a.tfrecord", [google_record(0)])
    digest = hashlib.sha256(VOCAB.to_bytes()).hexdigest()
    manifest = {
        "format_version": 1,
        "vocab_size": len(VOCAB),
        "vocab_sha256": digest,
        "shards": [{"file": "a.tfrecord", "split": "train"}],
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    shards = open_shards(tmp_path, split="train")
    shards.check(vocab=VOCAB)
    other = Vocab([*VOCAB.tokens[:-1], "other"])
    with pytest.raises(ValueError, match="made with another vocabulary of 40 tokens"):
        shards.check(vocab=other)
    assert open_shards(tmp_path, split="eval") is None


@pytest.mark.parametrize("harm", ["removed", "cut short", "overwritten"])
def test_a_file_that_is_harmed_after_it_was_opened(harm, dynamic_file):
    shards = open_shards(dynamic_file)
    content = dynamic_file.read_bytes()
    if harm == "removed":
        dynamic_file.unlink()
    else:
        dynamic_file.write_bytes(content[:60] if harm == "cut short" else bytes(len(content)))
    with pytest.raises(OSError, match=f"{dynamic_file}: record 3 cannot be read: ") as said:
        shards.read(np.array([3]))
    assert shards.failure == str(said.value)
