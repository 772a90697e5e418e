"""Sources: folders and hub names to local folders, without any network."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from keras_bert_impl.sources import cache_dir, resolve
from keras_bert_impl.sources import hub as hub_module
from tests.sources.conftest import FakeHub, fill


def test_resolve_gives_an_existing_folder_back(tmp_path):
    assert resolve(tmp_path) == tmp_path
    assert resolve(str(tmp_path)) == tmp_path


def test_resolve_expands_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bert").mkdir()
    assert resolve("~/bert") == tmp_path / "bert"


def test_resolve_takes_a_path_object_named_minilm_as_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "minilm").mkdir()
    assert resolve(Path("minilm")) == Path("minilm")


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("/no/such/place", FileNotFoundError, "^no such folder: /no/such/place$"),
        ("google/bert-tiny", FileNotFoundError, "write hf:google/bert-tiny"),
        (__file__, NotADirectoryError, "is a file: expected the folder that holds it"),
        ("", ValueError, "empty: expected a folder, hf:ORG/NAME or minilm"),
        ("hf:", ValueError, "expected hf:ORG/NAME or hf:ORG/NAME@REVISION"),
        ("hf:a/b/c", ValueError, "'hf:a/b/c': expected hf:ORG/NAME"),
        ("hf:a b", ValueError, "'hf:a b': expected hf:ORG/NAME"),
    ],
)
def test_resolve_says_what_is_wrong(source, error, message):
    with pytest.raises(error, match=message):
        resolve(source)


def test_cache_dir_follows_the_environment(monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", "/some/where")
    assert cache_dir() == Path("/some/where")
    monkeypatch.delenv("KERAS_BERT_CACHE")
    assert cache_dir() == Path.home() / ".cache" / "keras_bert_impl"


def http_error(kind: str) -> Exception:
    """An error of the hub's client, made without the HTTP response that it describes."""
    from huggingface_hub import errors

    error = getattr(errors, kind)
    return error.__new__(error)


def test_hub_model_is_downloaded_at_the_given_revision(tmp_path, monkeypatch):
    hub = FakeHub(monkeypatch, fill(tmp_path / "snapshot"))
    assert resolve("hf:org/name@v1") == tmp_path / "snapshot"
    assert hub.asked == [("info", "org/name", "v1"), ("download", "org/name", "v1")]


def test_hub_offline_uses_the_cache_and_asks_nothing(tmp_path, monkeypatch, caplog):
    hub = FakeHub(monkeypatch, fill(tmp_path / "snapshot"), cached=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert resolve("hf:org/name") == tmp_path / "snapshot"
    assert hub.asked == [("cached", "org/name", None)]
    assert "HF_HUB_OFFLINE is set; using the cached copy" in caplog.text


def test_hub_offline_without_cache_says_the_way_out(tmp_path, monkeypatch):
    FakeHub(monkeypatch, tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match=r"HF_HUB_OFFLINE is set.* give its folder"):
        resolve("hf:org/name")


def test_hub_without_network_says_so(tmp_path, monkeypatch):
    FakeHub(monkeypatch, tmp_path, answer=OSError("Name or service not known"))
    with pytest.raises(FileNotFoundError, match=r"cannot be reached \(Name or service not known"):
        resolve("hf:org/name")


@pytest.mark.parametrize("kind", ["RepositoryNotFoundError", "RevisionNotFoundError"])
def test_hub_without_the_model_says_so(tmp_path, monkeypatch, kind):
    hub = FakeHub(monkeypatch, tmp_path, answer=http_error(kind), cached=True)
    with pytest.raises(FileNotFoundError, match="has no model org/name at revision v2"):
        resolve("hf:org/name@v2")
    assert hub.asked == [("info", "org/name", "v2")]


def test_hub_that_hangs_is_given_up(tmp_path, monkeypatch):
    FakeHub(monkeypatch, tmp_path, answer=lambda: time.sleep(30))
    monkeypatch.setattr(hub_module, "REACH_SECONDS", 0.2)
    with pytest.raises(FileNotFoundError, match=r"did not answer within 0\.2 s"):
        resolve("hf:org/name")


def test_hub_model_without_safetensors_is_told(tmp_path, monkeypatch, caplog):
    FakeHub(monkeypatch, fill(tmp_path / "snapshot", {"config.json": b"{}"}))
    resolve("hf:org/name")
    assert "has no .safetensors weights" in caplog.text


def test_hub_download_that_breaks_off_is_an_os_error(tmp_path, monkeypatch):
    import huggingface_hub

    FakeHub(monkeypatch, tmp_path)

    def break_off(name, **options):
        raise http_error("HTTPError")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", break_off)
    with pytest.raises(ConnectionError, match="download of org/name broke off"):
        resolve("hf:org/name")
