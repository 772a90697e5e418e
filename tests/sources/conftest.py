"""A stand-in for the hub and small files, shared by the tests of sources."""

from __future__ import annotations

from pathlib import Path

SMALL = {"config.json": b"{}", "vocab.txt": b"[PAD]\n", "model.safetensors": b"weights"}


def fill(folder: Path, files: dict[str, bytes] = SMALL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class FakeHub:
    """Stands for the hub's client: answers, remembers what was asked."""

    def __init__(self, monkeypatch, folder: Path, *, answer=None, cached: bool = False) -> None:
        import huggingface_hub

        self.asked: list[tuple] = []

        def model_info(api, name, *, revision, timeout):
            self.asked.append(("info", name, revision))
            if callable(answer):
                answer()
            elif answer is not None:
                raise answer

        def snapshot_download(name, *, revision, allow_patterns, local_files_only=False, **_):
            self.asked.append(("cached" if local_files_only else "download", name, revision))
            if local_files_only and not cached:
                raise FileNotFoundError("not in the cache")
            return str(folder)

        monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
