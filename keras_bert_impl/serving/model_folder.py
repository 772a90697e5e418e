"""What lies beside the version folders: commands, examples and settings for those who serve.

TensorFlow Serving looks at children whose name is an integer only, so files are no obstacle.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.sources import atomic_write

if TYPE_CHECKING:
    from keras_bert_impl.serving.signatures import Signatures

__all__ = [
    "curl_line",
    "docker_line",
    "next_version",
    "versions",
    "write_model_folder",
]

IMAGE = "tensorflow/serving:2.20.0"

_BATCHING = """\
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
num_batch_threads { value: 2 }
max_enqueued_batches { value: 100 }
"""


def next_version(output: Path) -> int:
    """One more than the highest version in the folder of a model; 1 where there is none."""
    return max(versions(output), default=0) + 1


def versions(output: Path) -> list[int]:
    """Numbers of the version folders, as TensorFlow Serving reads them."""
    if not output.is_dir():
        return []
    return sorted(int(p.name) for p in output.iterdir() if re.fullmatch("[0-9]+", p.name))


def docker_line(output: str | os.PathLike[str]) -> str:
    """Command that serves the model folder `output` over REST on port 8501.

    >>> docker_line("saved_models/reviews")  # doctest: +ELLIPSIS
    'docker run --rm -p 8501:8501 --mount type=bind,source=$PWD/saved_models/reviews,target=...'
    """
    folder = Path(os.path.abspath(output))
    here = Path.cwd()
    inside = folder.is_relative_to(here)
    source = folder.relative_to(here).as_posix() if inside else folder.as_posix()
    source = f"$PWD/{_escape(source)}" if inside else _escape(source)
    return _docker(source, folder.name, quote=bool(re.search(r"[^\w./+-]", str(folder))))


def curl_line(output: str | os.PathLike[str], instances: Sequence[Any]) -> str:
    """Command that asks the server about instances: strings, or dicts of several inputs."""
    name = urllib.parse.quote(Path(os.path.abspath(output)).name)
    body = json.dumps({"instances": list(instances)}, ensure_ascii=False)
    return f"curl -d {shlex.quote(body)} http://localhost:8501/v1/models/{name}:predict"


def write_model_folder(output: Path, signatures: Signatures) -> None:
    """Write README.md, request.json, batching.txt, models.config, vocab.txt and labels.txt.

    Without labels there is no labels.txt.
    """
    name = output.name
    body = json.dumps({"instances": signatures.instances()}, indent=2, ensure_ascii=False)
    files = {
        "README.md": _readme(name, signatures),
        "request.json": f"{body}\n",
        "batching.txt": _BATCHING,
        "models.config": _models_config(name),
        "vocab.txt": signatures.tokenizer.vocab.to_bytes(),
    }
    if signatures.labels:
        files["labels.txt"] = "".join(f"{label}\n" for label in signatures.labels)
    for file, content in files.items():
        atomic_write(output / file, content)


def _docker(source: str, name: str, *, quote: bool) -> str:
    mount = f"type=bind,source={source},target=/models/{_escape(name)}"
    mount = f'"{mount}"' if quote else mount
    return f"docker run --rm -p 8501:8501 --mount {mount} -e MODEL_NAME={shlex.quote(name)} {IMAGE}"


def _escape(text: str) -> str:
    """For use between double quotes in a shell."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def _models_config(name: str) -> str:
    quoted = json.dumps(name, ensure_ascii=False)
    path = json.dumps(f"/models/{name}", ensure_ascii=False)
    return (
        "model_config_list {\n"
        f'  config {{ name: {quoted} base_path: {path} model_platform: "tensorflow" }}\n'
        "}\n"
    )


def _readme(name: str, signatures: Signatures) -> str:
    url = f"http://localhost:8501/v1/models/{urllib.parse.quote(name)}"
    labels, endpoints = signatures.labels, signatures.endpoints()
    shown = ", ".join(f"`{label}`" for label in labels[:20])
    rest = "" if len(labels) <= 20 else f" and {len(labels) - 20} more, see labels.txt"
    known = f" Labels: {shown}{rest}." if labels else ""
    rows = "\n".join(
        f"| `{name}` | {endpoint.inputs} | {endpoint.outputs} |"
        for name, endpoint in endpoints.items()
    )
    notes = "".join(f"\n{note}\n" for note in signatures.notes())
    return f"""# {name}

{signatures.title} as SavedModels, one numbered folder a version.{known}

## Serve

In this folder:

```
{_docker("$PWD", name, quote=True)}
curl -d @request.json {url}:predict
curl {url}
```

The last line tells whether the model is ready (`"state": "AVAILABLE"`). The server loads the
highest version, takes a new one within seconds, and replays the requests of
`assets.extra/tf_serving_warmup_requests` before it does. The graph holds only operations that
TensorFlow Serving has had since 2.12; it was written with TensorFlow 2.20, for 2.20.0.

With batching, add `--enable_batching --batching_parameters_file=/models/{name}/batching.txt`
and leave `pad_variable_length_inputs` unset. For several models start from `models.config`.

## Signatures

| name | inputs | outputs |
|---|---|---|
{rows}
{notes}
## Check

`python -m keras_bert_impl.serving.verify VERSION_FOLDER` compares a version with the answers
that Python computed when it was exported (`assets.extra/expected.json`).
"""
