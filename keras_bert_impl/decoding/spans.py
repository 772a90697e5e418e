"""Start and end logits of windows to answers, as Google's `run_squad.py` (write_predictions).

Which spans are candidates, their order, the n-best list, the null score and the threshold are
Google's. The text of an answer is `context[start:end]`, by the offsets of its pieces, where Google
looks for the words of the prediction in the normalised context (get_final_text) and returns whole
words, joined by single spaces, where it does not find them: with `[UNK]`, white space other than
a single space, and characters that lower-casing makes longer.

Shapes: Q questions, W windows, S sequence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl.data.batches import sorted_row_batches
from keras_bert_impl.data.document_windows import DocumentWindows
from keras_bert_impl.sources import atomic_write

__all__ = ["SpanAnswer", "SpanCandidate", "decode_spans", "predict_logits", "write_answers"]

_CHUNK = 1024  # windows, to bound the memory
_WIDTH = 32  # predict pads to a multiple of it, so that few shapes are compiled


class SpanCandidate(NamedTuple):
    """One line of an n-best list: `context[start:end] == text`; "" is "no answer"."""

    text: str
    start: int
    end: int
    probability: float
    start_logit: float
    end_logit: float


class SpanAnswer(NamedTuple):
    """The answer to a question.

    Attributes:
        id: of the question.
        text: `context[start:end]`; "" where there is no answer.
        start, end: offsets into the raw context; 0 and 0 where there is no answer.
        probability: of `text` among the candidates.
        candidates: the n-best list, best first.
        null_odds: score of "no answer" minus that of the best answer; None unless asked for.
    """

    id: str
    text: str
    start: int
    end: int
    probability: float
    candidates: tuple[SpanCandidate, ...]
    null_odds: float | None = None


def predict_logits(
    model, windows: DocumentWindows, *, batch_size: int = 32
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end logits of all windows, float32 [W, longest] each.

    Args:
        model: a `BertSpanPredictor`, or whatever gives a dict of `start` and `end` logits.
        windows: W windows; computed in order of their lengths.
        batch_size: windows a batch.
    """
    batches, restore = sorted_row_batches(windows.rows, batch_size=batch_size)
    shape = (len(windows), int(windows.rows.lengths.max()))
    logits = {name: np.full(shape, -1e9, np.float32) for name in ("start", "end")}
    done = 0
    for features in batches.as_numpy_iterator():
        rows, width = features["token_ids"].shape
        columns = min(width + -width % _WIDTH, shape[1])
        # The last of several batches is filled up, so that it has the shape of the others.
        room = ((0, batch_size - rows if done else 0), (0, columns - width))
        outputs = model.predict_on_batch({k: np.pad(x, room) for k, x in features.items()})
        for name, values in logits.items():
            values[done : done + rows, :width] = outputs[name][:rows, :width]
        done += rows
    return logits["start"][restore], logits["end"][restore]


def decode_spans(
    windows: DocumentWindows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    *,
    n_best: int = 20,
    max_answer_length: int = 30,
    unanswerable: bool = False,
    null_threshold: float = 0.0,
) -> list[SpanAnswer]:
    """One answer a question, in the order of the questions.

    A span is a candidate where its start and its end are each among the `n_best` best of the
    window, both are pieces of the context, the start is not before a window with more context,
    the end is not before the start, and it has at most `max_answer_length` pieces. Equal texts
    count once.

    Args:
        windows: W windows of Q questions.
        start_logits, end_logits: float [W, S].
        n_best: length of the n-best list. BERT: 20.
        max_answer_length: in pieces. BERT: 30.
        unanswerable: whether "no answer", the logits of [CLS], competes (SQuAD 2.0).
        null_threshold: "no answer" wins where `null_odds` is above it.

    Returns:
        Q answers. Where no span is a candidate the text is "" (Google's is "empty" without
        `unanswerable`, and crashes with it); `null_odds` is then the score of "no answer".

    Raises:
        ValueError: the logits do not have one row a window, or fewer columns than the longest;
            `n_best` or `max_answer_length` is below 1.
    """
    wanted = f"[{len(windows)}, at least {windows.rows.lengths.max()}]"
    for name, logits in (("start_logits", start_logits), ("end_logits", end_logits)):
        if len(logits) != len(windows) or logits.shape[1] < windows.rows.lengths.max():
            raise ValueError(f"{name}: expected the shape {wanted}, got {list(logits.shape)}")
    if min(n_best, max_answer_length) < 1:
        raise ValueError(
            f"n_best and max_answer_length must be at least 1, got {n_best} and {max_answer_length}"
        )
    found = _candidates(windows, start_logits, end_logits, n_best, max_answer_length)
    null = start_logits[:, 0].astype(np.float64) + end_logits[:, 0]
    firsts = np.searchsorted(windows.question_of, np.arange(len(windows.questions) + 1))
    answers = []
    for i, question in enumerate(windows.questions.questions):
        none = None
        if unanswerable:
            row = firsts[i] + int(np.argmin(null[firsts[i] : firsts[i + 1]]))
            none = (float(start_logits[row, 0]), float(end_logits[row, 0]))
        context = windows.questions.contexts[question.context]
        best = _n_best(found.of(i), context, none, n_best)
        answers.append(_answer(question.id, best, none, null_threshold))
    return answers


class _Found(NamedTuple):
    """Candidates of all questions, best first within each."""

    columns: tuple[list, ...]  # starts, ends, start_logits, end_logits
    splits: list[int]

    def of(self, question: int) -> Iterator[tuple[int, int, float, float]]:
        part = slice(self.splits[question], self.splits[question + 1])
        return zip(*(column[part] for column in self.columns), strict=True)


def _candidates(
    windows: DocumentWindows, start_logits, end_logits, n_best: int, max_answer_length: int
) -> _Found:
    chunks = [
        _of_chunk(windows, slice(first, first + _CHUNK), start_logits, end_logits, n_best)
        for first in range(0, len(windows), _CHUNK)
    ]
    row, first, last, scores, end_scores = (np.concatenate(x) for x in zip(*chunks, strict=True))
    fits = last - first < max_answer_length
    row, first, last, scores, end_scores = (x[fits] for x in (row, first, last, scores, end_scores))
    question_of = windows.question_of[row]
    # Stable: equal scores stay in the order of windows and ranks, as Google's sort leaves them.
    order = np.lexsort((-(scores + end_scores), question_of))
    place = (windows.first_pieces - windows.rows.first_lengths)[row]
    columns = (
        windows.pieces.starts[place + first],
        windows.pieces.ends[place + last],
        scores,
        end_scores,
    )
    splits = np.searchsorted(question_of[order], np.arange(len(windows.questions) + 1))
    return _Found(tuple(column[order].tolist() for column in columns), splits.tolist())


def _of_chunk(windows: DocumentWindows, chunk: slice, start_logits, end_logits, n_best: int):
    """Window, first and last position and both logits of the candidates, in Google's order."""
    before = windows.rows.first_lengths[chunk, None]
    counts = windows.piece_counts[chunk, None]
    splits = (np.cumsum(windows.piece_counts) - windows.piece_counts)[chunk, None]
    starts, ends = (np.asarray(logits[chunk], np.float64) for logits in (start_logits, end_logits))
    first, last = (np.argsort(-x, axis=1, kind="stable")[:, :n_best] for x in (starts, ends))
    in_context = [(before <= x) & (x < before + counts) for x in (first, last)]
    piece = np.where(in_context[0], splits + first - before, 0)
    is_max = np.append(windows.is_max_context, False)[piece] & in_context[0]
    valid = is_max[:, :, None] & in_context[1][:, None, :] & (first[:, :, None] <= last[:, None])
    row, i, j = np.nonzero(valid)
    first, last = first[row, i], last[row, j]
    return row + chunk.start, first, last, starts[row, first], ends[row, last]


def _n_best(found: Iterator, context: str, none, n_best: int) -> list[tuple]:
    """Different texts with offsets and logits, best first; "" for "no answer" where asked for."""
    best, seen = [], set()
    pending = none
    for start, end, start_logit, end_logit in found:
        if pending is not None and sum(pending) > start_logit + end_logit and len(best) < n_best:
            best.append(("", 0, 0, *pending))
            pending = None
        if len(best) >= n_best:
            break
        text = context[start:end]
        if text not in seen:
            seen.add(text)
            best.append((text, start, end, start_logit, end_logit))
    if pending is not None:
        best.append(("", 0, 0, *pending))
    return best or [("", 0, 0, 0.0, 0.0)]


def _answer(number: str, best: list[tuple], none, null_threshold: float) -> SpanAnswer:
    scores = np.array([start_logit + end_logit for *_, start_logit, end_logit in best])
    weights = np.exp(scores - scores.max())
    probabilities = (weights / weights.sum()).tolist()
    candidates = tuple(
        SpanCandidate(text, start, end, probability, start_logit, end_logit)
        for (text, start, end, start_logit, end_logit), probability in zip(
            best, probabilities, strict=True
        )
    )
    if none is None:
        chosen, odds = candidates[0], None
    else:
        empty = next(candidate for candidate in candidates if not candidate.text)
        chosen, odds = empty, sum(none)
        answer = next((candidate for candidate in candidates if candidate.text), None)
        if answer is not None:
            odds = odds - answer.start_logit - answer.end_logit
            chosen = empty if odds > null_threshold else answer
    text, start, end, probability = chosen[:4]
    return SpanAnswer(number, text, start, end, probability, candidates, odds)


def write_answers(answers: Sequence[SpanAnswer], folder: str | os.PathLike) -> None:
    """Writes answers to the files of Google's `run_squad.py`.

    `predictions.json` (id -> text), which the official scripts score, `nbest_predictions.json`,
    and `null_odds.json` where the answers have odds. The n-best entries have Google's `text`,
    `probability`, `start_logit` and `end_logit`, and the offsets `start` and `end`.
    """
    files = {
        "predictions.json": {answer.id: answer.text for answer in answers},
        "nbest_predictions.json": {
            answer.id: [candidate._asdict() for candidate in answer.candidates]
            for answer in answers
        },
    }
    if answers and answers[0].null_odds is not None:
        files["null_odds.json"] = {answer.id: answer.null_odds for answer in answers}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        atomic_write(folder / name, json.dumps(content, indent=4, ensure_ascii=False) + "\n")
