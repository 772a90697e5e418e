"""Output is complete or absent, and errors say where and why."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from keras_bert_impl.sources import atomic_file, atomic_folder, atomic_write
from tests.sources.conftest import entries, fill


def test_atomic_folder_appears_complete_and_readable_by_others(tmp_path):
    target = tmp_path / "deep" / "run"
    with atomic_folder(target) as folder:
        (folder / "a").write_text("1")
        assert folder.parent == target.parent
        assert not target.exists()
    assert entries(target.parent) == ["run"]
    assert (target / "a").read_text() == "1"
    (tmp_path / "plain").mkdir()
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_atomic_folder_leaves_nothing_on_error(tmp_path, error):
    with pytest.raises(error), atomic_folder(tmp_path / "run") as folder:
        (folder / "a").write_text("1")
        raise error
    assert entries(tmp_path) == []


def test_atomic_folder_takes_an_empty_folder(tmp_path):
    (tmp_path / "run").mkdir()
    with atomic_folder(tmp_path / "run") as folder:
        (folder / "a").write_text("1")
    assert entries(tmp_path / "run") == ["a"]


def test_atomic_folder_keeps_a_finished_folder(tmp_path):
    fill(tmp_path / "run", {"old": b""})
    message = "output folder .*run is not empty: name another folder or remove it first"
    with pytest.raises(FileExistsError, match=message), atomic_folder(tmp_path / "run"):
        raise AssertionError("not reached")
    assert entries(tmp_path / "run") == ["old"]


def test_atomic_folder_does_not_overwrite_one_that_was_finished_meanwhile(tmp_path):
    with (
        pytest.raises(FileExistsError, match="not empty"),
        atomic_folder(tmp_path / "run") as folder,
    ):
        (folder / "mine").write_text("1")
        fill(tmp_path / "run", {"theirs": b""})
    assert entries(tmp_path) == ["run"]
    assert entries(tmp_path / "run") == ["theirs"]


def test_atomic_folder_replaces_only_when_told_and_only_on_success(tmp_path):
    fill(tmp_path / "run", {"old": b""})
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "run", replace=True):
        raise RuntimeError
    assert entries(tmp_path / "run") == ["old"]
    with atomic_folder(tmp_path / "run", replace=True) as folder:
        (folder / "new").write_text("1")
    assert entries(tmp_path) == ["run"]
    assert entries(tmp_path / "run") == ["new"]


def test_atomic_folder_where_a_file_is(tmp_path):
    (tmp_path / "run").write_text("text")
    in_place = pytest.raises(FileExistsError, match="a file of that name is in its place")
    with in_place, atomic_folder(tmp_path / "run", replace=True):
        raise AssertionError("not reached")
    above = pytest.raises(NotADirectoryError, match="run is a file, not a folder")
    with above, atomic_folder(tmp_path / "run" / "1"):
        raise AssertionError("not reached")
    with pytest.raises(NotADirectoryError, match="run is a file, not a folder"):
        atomic_write(tmp_path / "run" / "a.txt", "text")
    assert (tmp_path / "run").read_text() == "text"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_unwritable_parent_is_said(tmp_path, monkeypatch, number):
    # The permission bits do not bind root, who runs the tests in a container.
    def refuse(path, *args, **kwargs):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    message = f"no permission to write in {tmp_path}$"
    with pytest.raises(PermissionError, match=message), atomic_folder(tmp_path / "run"):
        raise AssertionError("not reached")
    with pytest.raises(PermissionError, match=message):
        atomic_write(tmp_path / "deep" / "a.txt", "text")


class ForeignError(Exception):
    """Like the error types of libraries that write in Rust or C++."""


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        ForeignError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_full_disk_is_said_and_leaves_nothing(tmp_path, monkeypatch, error):
    message = f"no disk space left to write {tmp_path / 'run'}"
    with pytest.raises(OSError, match=message) as caught, atomic_folder(tmp_path / "run") as folder:
        (folder / "half").write_text("1")
        raise error
    assert caught.value.errno == errno.ENOSPC
    assert entries(tmp_path) == []

    def fail(path, data):
        raise error

    (tmp_path / "run").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        with pytest.raises(OSError, match=message):
            atomic_write(tmp_path / "run", "new")
    assert entries(tmp_path) == ["run"]
    assert (tmp_path / "run").read_text() == "old"


@pytest.mark.parametrize("data", ["größe\r\n", b"\x00\xff"])
def test_atomic_write_writes_what_it_is_given(tmp_path, data):
    target = tmp_path / "deep" / "a.txt"
    atomic_write(target, "old")
    atomic_write(target, data)
    assert target.read_bytes() == (data if isinstance(data, bytes) else data.encode())
    assert entries(target.parent) == ["a.txt"]


def test_atomic_write_where_a_folder_is(tmp_path):
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        atomic_write(tmp_path, "text")


def test_atomic_file_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "new" / "a.txt"
    with atomic_file(target) as file:
        file.write(b"one\n")
        assert not target.exists()
        file.write(b"two\n")
    assert target.read_bytes() == b"one\ntwo\n"
    assert entries(target.parent) == ["a.txt"]


def test_atomic_file_leaves_the_old_one_on_an_interruption(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_file(target) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert entries(tmp_path) == ["a.txt"]
