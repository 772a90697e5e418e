from __future__ import annotations

import json
import shlex

import pytest
from google.protobuf import text_format

from keras_bert_impl.serving import model_folder
from keras_bert_impl.serving.kinds import signatures_of
from keras_bert_impl.tasks import TaskOptions
from tests.serving.tiny import LABELS, MAX_LENGTH, classifier, tokenizer

FILES = {
    "README.md",
    "batching.txt",
    "labels.txt",
    "models.config",
    "request.json",
    "vocab.txt",
}


@pytest.mark.parametrize(
    ("names", "version"),
    [([], 1), (["1", "3"], 4), (["9", "10"], 11), ([".4.ab.partial", "new", "2.old", "README"], 1)],
)
def test_next_version(tmp_path, names, version):
    for name in names:
        (tmp_path / name).mkdir()
    assert model_folder.next_version(tmp_path) == version


def test_next_version_of_a_new_folder(tmp_path):
    assert model_folder.next_version(tmp_path / "new") == 1


def test_docker_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_folder.docker_line("saved_models/reviews") == (
        "docker run --rm -p 8501:8501 "
        "--mount type=bind,source=$PWD/saved_models/reviews,target=/models/reviews "
        "-e MODEL_NAME=reviews tensorflow/serving:2.20.0"
    )


@pytest.mark.parametrize("name", ["a b", "c$d", 'e"f', "评论"])
def test_docker_line_of_any_name(tmp_path, name):
    words = shlex.split(model_folder.docker_line(tmp_path / name))
    mount = words[words.index("--mount") + 1].replace("\\$", "$")
    assert mount == f"type=bind,source={tmp_path / name},target=/models/{name}"
    assert words[words.index("-e") + 1] == f"MODEL_NAME={name}"


@pytest.mark.parametrize("instance", ['it\'s "good" 很', {"text": "a", "pair": "it's"}])
def test_curl_line(instance):
    words = shlex.split(model_folder.curl_line("models/reviews", [instance]))
    assert words[-1] == "http://localhost:8501/v1/models/reviews:predict"
    assert json.loads(words[2]) == {"instances": [instance]}


def signatures(pairs: bool):
    options = TaskOptions(max_length=MAX_LENGTH)
    return signatures_of(
        "classification", classifier(), tokenizer(), labels=LABELS, options=options, pairs=pairs
    )


@pytest.mark.parametrize("pairs", [False, True])
def test_what_lies_beside_the_versions(tmp_path, pairs):
    folder = tmp_path / "reviews"
    for _ in range(2):  # the next version writes them again
        model_folder.write_model_folder(folder, signatures(pairs))
    assert {path.name for path in folder.iterdir()} == FILES
    readme = (folder / "README.md").read_text("utf-8")
    assert "docker run --rm -p 8501:8501" in readme
    assert ":predict" in readme
    assert "`bad`, `mixed, on the whole`, `gut 👍`" in readme
    instances = json.loads((folder / "request.json").read_text("utf-8"))["instances"]
    assert all(
        (set(one) == {"text", "pair"}) if pairs else isinstance(one, str) for one in instances
    )
    assert (folder / "labels.txt").read_text("utf-8") == "".join(f"{label}\n" for label in LABELS)
    assert (folder / "vocab.txt").read_bytes() == tokenizer().vocab.to_bytes()


def test_models_config_is_what_the_server_reads(tmp_path):
    pb = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    model_folder.write_model_folder(tmp_path / "r 1", signatures(pairs=False))
    text = (tmp_path / "r 1" / "models.config").read_text("utf-8")
    (config,) = text_format.Parse(text, pb.ModelServerConfig()).model_config_list.config
    assert (config.name, config.base_path) == ("r 1", "/models/r 1")
    assert config.model_platform == "tensorflow"
