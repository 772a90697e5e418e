"""Paths that may be local or not, on TensorFlow's file system in memory."""

from __future__ import annotations

import io
import re

import pytest

from keras_bert_impl.sources import resolve, storage

tf = pytest.importorskip("tensorflow")


@pytest.fixture(params=["local", "remote"])
def folder(request, tmp_path):
    if request.param == "local":
        return str(tmp_path / "folder")
    return f"ram://{tmp_path.name}/folder"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))


def test_files_local_or_not(folder):
    file = storage.join(folder, "notes.txt")
    assert not storage.exists(file)
    assert storage.names(folder) == []
    storage.write_text(file, "one")
    assert storage.stamp(file)[0] == 3
    storage.write_text(file, "zwei ü")
    assert storage.read_text(file) == "zwei ü"
    assert storage.is_folder(folder)
    assert not storage.is_folder(file)
    storage.write_text(storage.join(folder, ".notes.txt.01234567.partial"), "half")
    storage.remove_partial(folder)
    assert storage.names(folder) == ["notes.txt"]
    storage.remove(file)
    assert not storage.exists(file)


def test_a_filled_folder_gets_its_mark_last(folder, monkeypatch):
    copied = []
    copy = tf.io.gfile.copy

    def noted(source, target, **options):
        copied.append(target.rpartition("/")[2])
        copy(source, target, **options)

    monkeypatch.setattr(tf.io.gfile, "copy", noted)
    for content in ("old", "new"):
        with storage.filled(folder, last="mark") as local:
            local.mkdir(exist_ok=True)
            for name in ("mark", "weights", "a"):
                (local / name).write_text(content)
            (local / "logs").mkdir(exist_ok=True)
            (local / "logs" / "events").write_text(content)
    assert copied == (["a", "events", "weights", "mark"] * 2 if storage.is_remote(folder) else [])
    for name in ("weights", "logs/events"):
        assert storage.read_text(storage.join(folder, name)) == "new"


def test_what_is_fetched_of_a_model(tmp_path):
    folder = f"ram://{tmp_path.name}/model"
    for name in ("vocab.txt", "model.weights.h5", "a.tfrecord", ".lock", "checkpoints/x"):
        storage.write_text(f"{folder}/{name}", name)
    fetched = resolve(folder)
    assert {path.name for path in fetched.iterdir()} == {"vocab.txt", "model.weights.h5"}
    assert storage.fetch(f"{folder}/vocab.txt").read_text() == "vocab.txt"
    storage.write_text(f"{folder}/vocab.txt", "another one")
    assert (resolve(folder) / "vocab.txt").read_text() == "another one"
    with pytest.raises(FileNotFoundError, match=f"no such file or folder: {folder}x"):
        resolve(f"{folder}x")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ("NotFoundError", FileNotFoundError, "no such file, folder or bucket (told so)"),
        ("PermissionDeniedError", PermissionError, "access denied (told so)"),
        ("UnauthenticatedError", PermissionError, "access denied (told so)"),
        ("FailedPreconditionError", OSError, "cannot be reached (told so)"),
    ],
)
def test_what_goes_wrong_names_the_path(error, kind, message, monkeypatch):
    def fail(*_):
        raise getattr(tf.errors, error)(None, None, "told\n\tso")

    monkeypatch.setattr(tf.io.gfile, "exists", fail)
    with pytest.raises(kind, match=re.escape(f"gs://bucket/run: {message}")):
        storage.exists("gs://bucket/run")


def test_a_file_system_that_is_not_known():
    with pytest.raises(ValueError, match=r"odd://x/y: TensorFlow knows no such .* gs://"):
        storage.exists("odd://x/y")


def test_an_absent_file():
    with pytest.raises(FileNotFoundError, match="ram://absent/x: no such file"):
        storage.read_text("ram://absent/x")


def test_large_files_come_whole(tmp_path):
    content = b"".join(number.to_bytes(4, "little") for number in range(700_000))
    path = f"ram://{tmp_path.name}/large"
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(content)
    with storage.open_binary(path) as file:
        assert file.peek(2)[:2] == content[:2]
        assert file.read() == content
    assert isinstance(file, io.BufferedReader)
