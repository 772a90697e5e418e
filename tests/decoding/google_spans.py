"""Google's `run_squad.py` write_predictions in plain loops, to compare with."""

from __future__ import annotations

import numpy as np

from keras_bert_impl.data.document_windows import DocumentWindows


def n_best_of(
    windows: DocumentWindows, starts, ends, n_best: int, max_answer_length: int, negative: bool
) -> list[list[tuple[str, float, float]]]:
    """The n-best list of each question: text, start and end logit."""
    flags = np.split(windows.is_max_context, np.cumsum(windows.piece_counts)[:-1])
    lists = []
    for number, question in enumerate(windows.questions.questions):
        context = windows.questions.contexts[question.context]
        found, null = [], None
        for row in np.flatnonzero(windows.question_of == number).tolist():
            if null is None or starts[row][0] + ends[row][0] < sum(null):
                null = (starts[row][0], ends[row][0])
            before, count = int(windows.rows.first_lengths[row]), int(windows.piece_counts[row])
            for i in best_indexes(starts[row], n_best):
                for j in best_indexes(ends[row], n_best):
                    inside = before <= i <= j < before + count
                    if not inside or not flags[row][i - before] or j - i >= max_answer_length:
                        continue
                    piece = int(windows.first_pieces[row]) - before
                    span = slice(windows.pieces.starts[piece + i], windows.pieces.ends[piece + j])
                    found.append((context[span], starts[row][i], ends[row][j]))
        if negative:
            found.append(("", *null))
        found.sort(key=lambda entry: entry[1] + entry[2], reverse=True)
        best = {}
        for text, start, end in found:
            if len(best) < n_best:
                best.setdefault(text, (start, end))
        if negative:
            best.setdefault("", null)
        lists.append([(text, *logits) for text, logits in best.items()])
    return lists


def best_indexes(logits: list[float], n_best: int) -> list[int]:
    return sorted(range(len(logits)), key=lambda i: logits[i], reverse=True)[:n_best]
