"""How CMRC 2018 compares answers: Chinese by characters, the rest by words.

Source: `cmrc2018_evaluate.py` v6, and for words the rules of NLTK's `NLTKWordTokenizer`, which it
calls, so that NLTK itself is not needed.
"""

from __future__ import annotations

import re

__all__ = ["f1_by_characters", "segments", "without_punctuation"]

# Those of the script that are one character.
_MARKS = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_HAN = re.compile("[一-龥]")

# Pattern and replacement, in this order.
_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"([«“‘„]|[`]+)", r" \1 "),
        (r'^"', "``"),
        (r"(``)", r" \1 "),
        (r"([ \(\[{<])(\"|'{2})", r"\1 `` "),
        (r"(?i)(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"\1 "),
        (r'([^\.])(\.)([\]\)}>"\'»”’ ]*)\s*$', r"\1 \2 \3 "),
        (r"([:,])([^\d])", r" \1 \2"),
        (r"([:,])$", r" \1 "),
        (r"\.{2,}", r" \g<0> "),
        (r"[;@#$%&]", r" \g<0> "),
        (r"[\u2012-\u2015]", r" \g<0> "),
        (r'([^\.])(\.)([\]\)}>"\']*)\s*$', r"\1 \2\3 "),
        (r"[?!]", r" \g<0> "),
        (r"([^'])' ", r"\1 ' "),
        (r"[*]", r" \g<0> "),
        (r"[\]\[\(\)\{\}\<\>]", r" \g<0> "),
        (r"--", r" -- "),
    )
]
_ENDING_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"([»”’])", r" \1 "),
        (r"''", " '' "),
        (r'"', " '' "),
        (r"\s+", " "),
        (r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),
        (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
        (r"(?i)\b(can)(not)\b", r" \1 \2 "),
        (r"(?i)\b(d)('ye)\b", r" \1 \2 "),
        (r"(?i)\b(gim)(me)\b", r" \1 \2 "),
        (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
        (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
        (r"(?i)\b(lem)(me)\b", r" \1 \2 "),
        (r"(?i)\b(more)('n)\b", r" \1 \2 "),
        (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 "),
        (r"(?i) ('t)(is)\b", r" \1 \2 "),
        (r"(?i) ('t)(was)\b", r" \1 \2 "),
    )
]

_CONTRACTION = re.compile("cannot|gimme|gonna|gotta|lemme|wanna")


def without_punctuation(text: str) -> str:
    """Lower case without the script's punctuation marks."""
    return "".join(mark for mark in text.lower().strip() if mark not in _MARKS)


def segments(text: str) -> list[str]:
    """Chinese characters one by one and words of the rest, in lower case, without the marks."""
    parts = _HAN.sub(r"\n\g<0>\n", without_punctuation(text).replace("\n", " ")).split("\n")
    return [one for part in parts if part for one in _words(part)]


def f1_by_characters(gold: str, prediction: str) -> float:
    """F1 of the longest run of segments that both have in common; 0 where there is none."""
    gold_segments, found = segments(gold), segments(prediction)
    common = _longest_common_run(gold_segments, found)
    if common == 0:
        return 0
    precision, recall = common / len(found), common / len(gold_segments)
    return (2 * precision * recall) / (precision + recall)


def _words(text: str) -> list[str]:
    """NLTK's tokens, which have other signs for double quotes."""
    if text.isalnum() and not _CONTRACTION.search(text):
        return [text]  # as the rules would, but at once
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = f" {text} "
    for pattern, replacement in _ENDING_RULES:
        text = pattern.sub(replacement, text)
    return text.split()


def _longest_common_run(first: list[str], second: list[str]) -> int:
    longest, previous = 0, [0] * (len(second) + 1)
    for one in first:
        current = [0]
        for j, other in enumerate(second):
            current.append(previous[j] + 1 if one == other else 0)
        longest = max(longest, *current)
        previous = current
    return longest
