"""One export of every kind of task: it answers as `run.predict` does, also to odd requests."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.data.tagged_json import split_words
from keras_bert_impl.jobs.exporting import export_run
from keras_bert_impl.serving.signatures import SERVING_DEFAULT
from tests.serving.runs import make_run, run_fresh

KINDS = {
    "regression": {},
    "multi-label": {},
    "multiple-choice": {},
    "token-classification": {},
    "question-answering": {"unanswerable": True, "null_threshold": 0.5, "n_best": 4},
}
TEXTS = [
    "A good film!",
    'The plots (is) thin, "bad"!',
    "中文很好看。",
    "Café 👍, the plot is thin. \u200b\0 好 e\u0301",
    "the plots is bad, 中文很好看 " * 6,
    "[SEP] [PAD] bad",
]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Kind -> its run and what the export gave."""
    folder = tmp_path_factory.mktemp("exports")
    runs = {kind: make_run(kind, **options) for kind, options in KINDS.items()}
    return {kind: (run, export_run(run, folder / kind)) for kind, run in runs.items()}


@pytest.fixture(scope="module", params=KINDS)
def exported(request, exports):
    return exports[request.param]


@pytest.fixture(scope="module")
def signatures(exported):
    loaded = tf.saved_model.load(str(exported[1].path))
    yield loaded.signatures
    del loaded


def ask(signatures, name=SERVING_DEFAULT, **inputs):
    answer = signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
    return {key: value.numpy() for key, value in answer.items()}


def text_of(array):
    return [value.decode() for value in array.tolist()]


def check_regression(run, signatures):
    answer = ask(signatures, text=TEXTS, pair=TEXTS[::-1])
    expected = [one.score for one in run.predict(TEXTS, TEXTS[::-1])]
    np.testing.assert_allclose(answer["score"], expected, atol=1e-5)


def check_multi_label(run, signatures):
    answer = ask(signatures, text=TEXTS)
    found = run.predict(TEXTS)
    assert len({one.labels for one in found}) > 1
    for row, one in enumerate(found):
        assert list(one.probabilities) == list(run.labels)
        np.testing.assert_allclose(
            answer["probabilities"][row], list(one.probabilities.values()), atol=1e-5
        )
        count = answer["label_count"][row]
        assert tuple(text_of(answer["labels"][row][:count])) == one.labels
        assert not answer["labels"][row][count:].any()


def check_multiple_choice(run, signatures):
    choices = [[TEXTS[row - 1], TEXTS[row - 2], TEXTS[row]] for row in range(len(TEXTS))]
    answer = ask(signatures, prompt=TEXTS, choices=choices)
    found = run.predict(TEXTS, choices)
    assert answer["choice"].tolist() == [one.choice for one in found]
    assert text_of(answer["choice_text"]) == [
        row[one.choice] for row, one in zip(choices, found, strict=True)
    ]
    np.testing.assert_allclose(answer["probabilities"], [one[2] for one in found], atol=1e-5)
    np.testing.assert_allclose(answer["score"], [one.probability for one in found], atol=1e-5)


def check_tagged(answer, found, offsets):
    for row, (one, places) in enumerate(zip(found, offsets, strict=True)):
        words, entities = (answer[name][row] for name in ("word_count", "entity_count"))
        assert text_of(answer["words"][row][:words]) == one.words
        assert text_of(answer["tags"][row][:words]) == one.tags
        np.testing.assert_allclose(answer["scores"][row][:words], one.probabilities, atol=1e-5)
        starts, ends = answer["starts"][row], answer["ends"][row]
        assert list(zip(starts[:words], ends[:words], strict=True)) == places
        names = ("types", "texts", "starts", "ends", "scores")
        columns = [answer[f"entity_{name}"][row] for name in names]
        kinds, texts = (text_of(column[:entities]) for column in columns[:2])
        assert kinds == [entity.type for entity in one.entities]
        assert texts == [entity.text for entity in one.entities]
        for column, name in zip(columns[2:], ("start", "end", "score"), strict=True):
            expected = [getattr(entity, name) for entity in one.entities]
            np.testing.assert_allclose(column[:entities], expected, atol=1e-5)
        assert not answer["words"][row][words:].any()
        assert not columns[1][entities:].any()


def check_token_classification(run, signatures):
    texts = [*TEXTS, "", " \u200b", "plain"]
    split = [split_words(text) for text in texts]
    found = run.predict(texts)
    assert sum(len(one.entities) for one in found) > 5
    check_tagged(ask(signatures, text=texts), found, [places for _, places in split])
    for row, text in enumerate(texts):
        check_tagged(ask(signatures, text=[text]), [found[row]], [split[row][1]])
    sentences = [["the plot", "is", "", "thin"], ["中文", "很", "好"] * 9, [], ["good"]]
    ends = [np.cumsum([len(word) + 1 for word in words]) - 1 for words in sentences]
    offsets = [
        [(end - len(word), end) for word, end in zip(words, part, strict=True)]
        for words, part in zip(sentences, ends, strict=True)
    ]
    for end in ("", "\n"):
        lines = ["\n".join(words) + (end if words else "") for words in sentences]
        answer = ask(signatures, "words", words=lines)
        check_tagged(answer, run.predict(sentences), offsets)


def check_question_answering(run, signatures):
    questions = ["good film", "the plot is thin a film!", "中文", "看", "\u200b", "bad"]
    answer = ask(signatures, question=questions, context=TEXTS)
    found = run.predict(questions, TEXTS)
    texts = text_of(answer["answer"])
    assert len(set(texts)) > 2
    assert texts == [one.text for one in found]
    assert answer["start"].tolist() == [one.start for one in found]
    assert answer["end"].tolist() == [one.end for one in found]
    np.testing.assert_allclose(answer["score"], [one.probability for one in found], atol=1e-5)
    np.testing.assert_allclose(answer["null_odds"], [one.null_odds for one in found], atol=1e-4)
    for one, context in zip(found, TEXTS, strict=True):
        assert context[one.start : one.end] == one.text
    nothing = ask(signatures, question=["", "good"], context=["", "\u200b"])
    assert nothing["answer"].tolist() == [b"", b""]
    assert nothing["score"].tolist() == [1.0, 1.0]


def test_answers_are_those_of_predict(exported, signatures):
    run, result = exported
    assert result.report.ok
    checks = {
        "regression": check_regression,
        "multi-label": check_multi_label,
        "multiple-choice": check_multiple_choice,
        "token-classification": check_token_classification,
        "question-answering": check_question_answering,
    }
    checks[run.task.name](run, signatures)


def test_the_examples_are_requests(exported, signatures):
    """The body that the README and the display of the export show."""
    _, result = exported
    body = json.loads((result.path.parent / "request.json").read_text("utf-8"))["instances"]
    assert json.dumps(body[0], ensure_ascii=False) in result.curl
    (first, *_) = signatures[SERVING_DEFAULT].structured_input_signature[1]
    rows = body if isinstance(body[0], dict) else [{first: one} for one in body]
    inputs = {name: [row[name] for row in rows] for name in rows[0]}
    for value in ask(signatures, **inputs).values():
        assert len(value) == 2
        # What the server cannot write as JSON: half floats, scalars, ragged and empty rows.
        assert value.dtype in (np.float32, np.int32, object)
        assert value.size
    readme = (result.path.parent / "README.md").read_text("utf-8")
    for name in ask(signatures, **inputs):
        assert f"`{name}`" in readme
    has_labels = bool(exported[0].labels)
    assert (result.path.parent / "labels.txt").exists() == has_labels


# Requests of any shape, which `Session.run` would refuse; a server does not.
ASK = """
import json, sys
import numpy as np
import tensorflow as tf, tensorflow_text
from tensorflow.core.protobuf.config_pb2 import CallableOptions

def answers_of(session, info):
    inputs, outputs = sorted(info.inputs.items()), sorted(info.outputs.items())
    ranks = [len(one.tensor_shape.dim) for _, one in inputs]
    call = session._make_callable_from_options(CallableOptions(
        feed=[one.name for _, one in inputs], fetch=[one.name for _, one in outputs]))

    def run(shapes, value):
        try:
            found = call(*(np.full(shape, value, object) for shape in shapes))
        except tf.errors.InvalidArgumentError as error:
            return error.message
        return {key: len(value) for (key, _), value in zip(outputs, found)}

    def ask(value):
        return run([[1] * rank for rank in ranks], value)

    return {
        "scalar": run([[]] * len(ranks), b"a"),
        "rank 3": run([[1, 1, 1]] * len(ranks), b"a"),
        "empty batch": run([[0, 2][:rank] for rank in ranks], b"a"),
        "rows differ": run([[1 + k, 1][:rank] for k, rank in enumerate(ranks)], b"a"),
        "empty string": ask(b""), "NUL": ask(b"\\0a\\0"), "lines": ask(b"\\n\\n"),
        "invalid UTF-8": ask(b"\\xff\\xfea\\xc3"), "long word": ask(b"a" * 100_000),
        "long text": ask(b"good film " * 2_000), "long Chinese": ask("\\u597d".encode() * 5_000),
        "after all": ask(b"a good film!"),
    }

answers = {}
for folder in sys.argv[1:]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def
        answers[folder] = {
            name: answers_of(session, info) for name, info in signatures.items()
            if {one.dtype for one in info.inputs.values()} == {tf.string.as_datatype_enum}
        }
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(exports):
    return run_fresh(ASK, *(result.path for _, result in exports.values()))


def test_odd_requests(exported, answers):
    run, result = exported
    found = answers[str(result.path)]
    assert set(found) == set(result.report.signatures) - {"ids"}
    several = run.task.name in ("regression", "multiple-choice", "question-answering")
    for of_signature in found.values():
        assert "is not compatible" in of_signature.pop("scalar")
        assert "is not compatible" in of_signature.pop("rank 3")
        differ = of_signature.pop("rows differ")
        assert "must have as many rows" in differ if several else isinstance(differ, dict)
        assert set(of_signature.pop("empty batch").values()) == {0}
        for name, answer in of_signature.items():
            assert isinstance(answer, dict), (name, answer)
            assert set(answer.values()) == {1}, name
