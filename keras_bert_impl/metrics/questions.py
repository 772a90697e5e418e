"""Exact match and F1 of answers, equal to the official scripts to the last digit.

Sources: SQuAD `evaluate-v1.1.py` and `evaluate-v2.0.py` (XQuAD uses the first), MLQA
`mlqa_evaluation_v1.py`, CMRC 2018 `cmrc2018_evaluate.py`. Scores are in percent, as there.
"""

from __future__ import annotations

import functools
import logging
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from keras_bert_impl.metrics.chinese_answers import f1_by_characters, without_punctuation

__all__ = ["cmrc_scores", "mlqa_scores", "squad_scores", "squad_v2_scores"]

_logger = logging.getLogger(__name__)

_PUNCTUATION = frozenset(string.punctuation)
_ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}
_LANGUAGES = (*_ARTICLES, "hi", "zh")
_HAN = re.compile("[一-龥]")


def squad_scores(
    answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> dict[str, float]:
    """SQuAD 1.1 and XQuAD: means over all questions of the best score over the gold answers.

    Args:
        answers: id -> gold answers, at least one.
        predictions: id -> answer. A question without one counts 0, and is counted in a warning.

    Returns:
        `exact_match` and `f1` in percent.

    Raises:
        ValueError: no questions, or a question without a gold answer (so for every function
            here but `squad_v2_scores`).
    """
    return _means(answers, predictions, _normalize, str.split)


def mlqa_scores(
    answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str], language: str
) -> dict[str, float]:
    """MLQA: as `squad_scores`, with the articles of a language and the punctuation of Unicode.

    Chinese is compared by characters, other scripts in the same answer by words.

    Args:
        answers, predictions: as `squad_scores`.
        language: of the context: en, es, vi, de, ar, hi or zh.

    Raises:
        ValueError: an unknown language.
    """
    if language not in _LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(_LANGUAGES)}, got {language!r}")
    normalize = functools.partial(_normalize_mlqa, language=language)
    return _means(answers, predictions, normalize, str.split)


def cmrc_scores(
    answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> dict[str, float]:
    """CMRC 2018: F1 by the longest common run of Chinese characters and other words.

    Args:
        answers, predictions: as `squad_scores`.

    Returns:
        `exact_match`, `f1` and their `average` in percent.
    """
    _check(answers, predictions)
    exact = f1 = 0
    for number, golds in answers.items():
        if number not in predictions:
            continue
        text = predictions[number]
        exact += int(any(without_punctuation(gold) == without_punctuation(text) for gold in golds))
        f1 += max(f1_by_characters(gold, text) for gold in golds)
    exact, f1 = 100.0 * exact / len(answers), 100.0 * f1 / len(answers)
    return {"exact_match": exact, "f1": f1, "average": (exact + f1) * 0.5}


def squad_v2_scores(
    answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, float]:
    """SQuAD 2.0: as `squad_scores`, "" being right where there is no gold answer.

    Args:
        answers: id -> gold answers; none where the question has no answer.
        predictions: id -> answer, "" for "no answer".
        null_odds: id -> how likely there is no answer (any scale), e.g. `SpanAnswer.null_odds`.
        threshold: answers whose odds are above it count as "". Default: none are.

    Returns:
        `exact`, `f1`, `total`; the same after `HasAns_` and `NoAns_` where there are such
        questions; and with `null_odds` the best scores that a threshold gives, `best_exact` and
        `best_f1`, and the thresholds, `best_exact_thresh` and `best_f1_thresh`.

    Raises:
        ValueError: a threshold without odds, or no odds for a prediction.
    """
    if threshold is not None and null_odds is None:
        raise ValueError("a threshold needs null_odds")
    _check(answers, predictions, need_gold=False)
    raw_exact, raw_f1 = {}, {}
    for number, golds in answers.items():
        if number not in predictions:
            continue
        text = predictions[number]
        golds = [gold for gold in golds if _normalize(gold)] or [""]
        raw_exact[number] = max(int(_normalize(gold) == _normalize(text)) for gold in golds)
        raw_f1[number] = max(_f1_or_both_empty(gold, text) for gold in golds)
    if null_odds is not None and (missing := set(raw_exact) - set(null_odds)):
        raise ValueError(f"null_odds: none for {len(missing)} predictions, e.g. {min(missing)!r}")
    has_answer = {number: bool(golds) for number, golds in answers.items()}
    exact, f1 = raw_exact, raw_f1
    if threshold is not None:
        exact, f1 = (
            {
                number: float(not has_answer[number]) if null_odds[number] > threshold else score
                for number, score in scores.items()
            }
            for scores in (raw_exact, raw_f1)
        )
    result = _summary(exact, f1, list(exact), "")
    for prefix, kind in (("HasAns_", True), ("NoAns_", False)):
        chosen = [number for number, has in has_answer.items() if has is kind]
        if chosen:
            result |= _summary(exact, f1, chosen, prefix)
    if null_odds is not None:
        for name, scores in (("exact", raw_exact), ("f1", raw_f1)):
            best = _best_threshold(scores, predictions, null_odds, has_answer)
            result[f"best_{name}"], result[f"best_{name}_thresh"] = best
    return result


def _summary(exact, f1, chosen: list[str], prefix: str) -> dict[str, float]:
    total = len(chosen)
    return {
        f"{prefix}exact": 100.0 * sum(exact.get(number, 0) for number in chosen) / total,
        f"{prefix}f1": 100.0 * sum(f1.get(number, 0) for number in chosen) / total,
        f"{prefix}total": total,
    }


def _best_threshold(scores, predictions, null_odds, has_answer) -> tuple[float, float]:
    """The best mean score when the answers of the questions with the least odds are given."""
    current = best = sum(not has for has in has_answer.values())
    threshold = 0.0
    for number in sorted(null_odds, key=null_odds.get):
        if number not in scores:
            continue
        if has_answer[number]:
            current += scores[number]
        elif predictions[number]:
            current -= 1
        if current > best:
            best, threshold = current, null_odds[number]
    return 100.0 * best / len(scores), threshold


def _check(answers, predictions, need_gold: bool = True) -> None:
    if not answers:
        raise ValueError("answers: expected at least one question, got none")
    bare = [number for number, golds in answers.items() if not golds] if need_gold else []
    if bare:
        raise ValueError(f"answers: {len(bare)} questions have no gold answer, e.g. {bare[0]!r}")
    missing = [number for number in answers if number not in predictions]
    if missing:
        _logger.warning(
            "%d of %d questions have no prediction and count 0, e.g. %s",
            len(missing),
            len(answers),
            missing[0],
        )


def _means(answers, predictions, normalize: Callable, split: Callable) -> dict[str, float]:
    _check(answers, predictions)
    exact = f1 = 0
    for number, golds in answers.items():
        if number not in predictions:
            continue
        text = normalize(predictions[number])
        golds = [normalize(gold) for gold in golds]
        exact += int(text in golds)
        f1 += max(_f1(split(gold), split(text)) for gold in golds)
    return {"exact_match": 100.0 * exact / len(answers), "f1": 100.0 * f1 / len(answers)}


def _f1(gold: list[str], prediction: list[str]) -> float:
    common = sum((Counter(prediction) & Counter(gold)).values())
    if common == 0:
        return 0
    precision, recall = common / len(prediction), common / len(gold)
    return (2 * precision * recall) / (precision + recall)


def _f1_or_both_empty(gold: str, prediction: str) -> float:
    gold, prediction = _normalize(gold).split(), _normalize(prediction).split()
    return _f1(gold, prediction) if gold and prediction else int(gold == prediction)


def _normalize(text: str) -> str:
    """Lower case without punctuation, articles and extra white space."""
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(re.sub(_ARTICLES["en"], " ", text).split())


@functools.cache
def _all_punctuation() -> frozenset[str]:
    marks = (chr(code) for code in range(sys.maxunicode))
    return _PUNCTUATION | {mark for mark in marks if unicodedata.category(mark)[0] == "P"}


def _normalize_mlqa(text: str, language: str) -> str:
    text = "".join(mark for mark in text.lower() if mark not in _all_punctuation())
    if language in _ARTICLES:
        text = re.sub(_ARTICLES[language], " ", text)
    if language == "zh":
        text = _HAN.sub(r" \g<0> ", text)
    return " ".join(text.split())
