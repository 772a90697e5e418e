"""Windows over contexts: Google's features, answer positions, offsets, messages."""

from __future__ import annotations

import json

import numpy as np
import pytest

from keras_bert_impl.data.document_windows import encode_questions, encode_training_questions
from keras_bert_impl.data.question_files import read_questions
from keras_bert_impl.data.questions import Answer, Question, QuestionSet
from keras_bert_impl.text.tokenizer import BertTokenizer
from keras_bert_impl.text.vocab import Vocab

WORDS = "who a b c d e f ( ) - . 18 ##95 ##43 japan ##ese 北 京 天".split()
TOKENIZER = BertTokenizer(Vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]))
SHORT = {"max_length": 10, "max_query_length": 2, "doc_stride": 2}


def ids_of(windows, row: int) -> list[int]:
    start = windows.rows.starts[row]
    return windows.rows.token_ids[start : start + windows.rows.lengths[row]].tolist()


def answered(context: str, text: str, start: int | None = None) -> QuestionSet:
    start = context.index(text) if start is None else start
    return QuestionSet([context], [Question("q", "who", 0, (Answer(text, start),))])


def answer_tokens(windows, row: int = 0) -> list[str]:
    start, end = (int(windows.targets[name][row]) for name in ("start", "end"))
    return [TOKENIZER.vocab.id_to_token(i) for i in ids_of(windows, row)[start : end + 1]]


def test_windows_are_those_of_google(shared, minilm):
    golden = json.loads((shared / "reference/google_squad_features.json").read_text())
    found = read_questions(shared / "data/qa_xquad/xquad.en.json")
    by_id = {question.id: question for question in found.questions}
    chosen = [by_id[example["qas_id"]] for example in golden["examples"]]
    windows = encode_training_questions(
        BertTokenizer.from_pretrained(minilm),
        QuestionSet(found.contexts, chosen),
        max_length=128,
        doc_stride=48,
        max_query_length=32,
    )
    assert len(windows) == len(golden["features"])
    flags = np.split(windows.is_max_context, np.cumsum(windows.piece_counts)[:-1])
    for row, feature in enumerate(golden["features"]):
        assert ids_of(windows, row) == feature["input_ids"][: feature["n_input"]]
        assert windows.question_of[row] == feature["example_index"]
        assert windows.targets["start"][row] == feature["start_position"]
        assert windows.targets["end"][row] == feature["end_position"]
        before = windows.rows.first_lengths[row]
        expected = feature["token_is_max_context"]
        assert {str(before + i): bool(flag) for i, flag in enumerate(flags[row])} == expected
        segments = [0] * before + [1] * (windows.rows.lengths[row] - before)
        assert segments == feature["segment_ids"][: feature["n_input"]]


def test_windows_and_their_offsets():
    context = "a b\u00a0c \u200bd\te \U0001f600 f a b"
    windows = encode_questions(TOKENIZER, QuestionSet.of(["who who who"], [context]), **SHORT)
    assert windows.rows.first_lengths.tolist() == [4, 4, 4]
    assert windows.piece_counts.tolist() == [5, 5, 5]
    pieces = windows.pieces
    found = [context[a:b] for a, b in zip(pieces.starts, pieces.ends, strict=True)]
    assert found == ["a", "b", "c", "d", "e", "\U0001f600", "f", "a", "b"]
    assert (windows.first_pieces - pieces.splits[0]).tolist() == [0, 2, 4]
    tokens = [TOKENIZER.vocab.id_to_token(i) for i in ids_of(windows, 1)]
    assert tokens == ["[CLS]", "who", "who", "[SEP]", "c", "d", "e", "[UNK]", "f", "[SEP]"]


def test_each_piece_has_one_window_of_most_context():
    contexts = ["a b c d e f " * repeats for repeats in (1, 2, 5)] + ["\u200b"]
    questions = QuestionSet.of(["who", "who a b", "a", "b"], contexts)
    windows = encode_questions(TOKENIZER, questions, **SHORT)
    assert set(windows.question_of.tolist()) == {0, 1, 2, 3}
    best, ends = [], np.cumsum(windows.piece_counts)
    for row, end in enumerate(ends):
        count = int(windows.piece_counts[row])
        flags = windows.is_max_context[end - count : end]
        best += (windows.first_pieces[row] + np.arange(count))[flags].tolist()
    assert sorted(best) == list(range(len(windows.pieces.ids)))


@pytest.mark.parametrize(
    ("context", "text", "expected"),
    [
        ("a (1895-1843).", "1895", ["18", "##95"]),
        ("a (1895-1843).", "1843", ["18", "##43"]),
        ("a japanese b", "japan", ["japan"]),
        ("a japanese b", "apan", ["japan", "##ese"]),
        ("a b c", " b ", ["b"]),
        ("天天北京天", "京天", ["京", "天"]),
        ("天天北京天", "北", ["北"]),
    ],
)
def test_answers_are_projected_to_pieces(context, text, expected):
    windows = encode_training_questions(TOKENIZER, answered(context, text))
    assert answer_tokens(windows) == expected


def test_a_later_chinese_occurrence_is_kept():
    windows = encode_training_questions(TOKENIZER, answered("天北京天", "天", 3))
    assert windows.targets["start"].tolist() == [windows.rows.first_lengths[0] + 3]


def test_windows_without_the_answer_point_at_cls():
    context = "a b c d e f a b c"
    windows = encode_training_questions(TOKENIZER, answered(context, "b c"), **SHORT)
    spans = list(zip(*(windows.targets[name].tolist() for name in ("start", "end")), strict=True))
    assert spans == [(4, 5), (0, 0), (0, 0)]
    impossible = QuestionSet([context], [Question("q", "who", 0, (), True)])
    windows = encode_training_questions(TOKENIZER, impossible, **SHORT)
    assert not windows.targets["start"].any()
    assert not windows.targets["end"].any()


def test_long_questions_are_cut(caplog):
    windows = encode_questions(TOKENIZER, QuestionSet.of(["who a b"], ["c"]), **SHORT)
    tokens = [TOKENIZER.vocab.id_to_token(i) for i in ids_of(windows, 0)]
    assert tokens == ["[CLS]", "who", "a", "[SEP]", "c", "[SEP]"]
    assert "1 of 1 questions are longer than max_query_length=2" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 67}, r"max_query_length=64 .* no room .*max_length=67.* more than 67"),
        ({"max_length": 192}, r"doc_stride=128 must be less than the 125 tokens of context"),
        ({"doc_stride": 0}, "must be at least 1, got 64 and 0"),
    ],
)
def test_messages(options, message):
    with pytest.raises(ValueError, match=message):
        encode_questions(None, QuestionSet.of(["who"], ["a"]), **options)
