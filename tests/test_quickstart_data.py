"""The sentences that ship for the quickstart: format, balance, no near-duplicates, no templates."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, pairwise

import pytest

from tests.conftest import REPO

FOLDER = REPO / "keras_bert_impl" / "quickstart"
ROWS_PER_LABEL = {"train": 72, "dev": 12, "test": 24}
LABELS = {"food", "health", "home", "technology", "travel"}

Row = tuple[str, str]


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Row]]:
    result = {}
    for name in ROWS_PER_LABEL:
        lines = (FOLDER / f"{name}.tsv").read_bytes().decode("utf-8").split("\n")
        assert lines[0] == "text\tlabel"
        assert lines[-1] == "", "the file ends with a line feed"
        result[name] = [tuple(line.split("\t")) for line in lines[1:-1]]
    return result


@pytest.fixture(scope="module")
def sentences(splits: dict[str, list[Row]]) -> list[tuple[str, str]]:
    """(split, sentence) for every row."""
    return [(name, row[0]) for name, rows in splits.items() for row in rows]


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def character_grams(text: str) -> frozenset[str]:
    joined = " ".join(words(text))
    return frozenset(joined[i : i + 5] for i in range(len(joined) - 4))


@pytest.mark.parametrize("name", ROWS_PER_LABEL)
def test_rows_are_well_formed_and_balanced(splits, name):
    rows = splits[name]
    assert all(len(row) == 2 for row in rows)
    assert Counter(label for _, label in rows) == dict.fromkeys(LABELS, ROWS_PER_LABEL[name])
    for text, _ in rows:
        assert text == text.strip(), text
        assert not set('"\r') & set(text), text
        assert text[-1] in ".?!", text
        assert 4 <= len(text.split()) <= 35, text


def test_no_sentence_appears_twice(sentences):
    counts = Counter(" ".join(words(text)) for _, text in sentences)
    assert [text for text, count in counts.items() if count > 1] == []


def test_no_near_duplicates(sentences):
    grams = [(name, text, character_grams(text)) for name, text in sentences]
    too_close = []
    for (name_a, a, grams_a), (name_b, b, grams_b) in combinations(grams, 2):
        similarity = len(grams_a & grams_b) / len(grams_a | grams_b)
        if similarity > (0.6 if name_a == name_b else 0.3):
            too_close.append((round(similarity, 2), a, b))
    assert too_close == []


def test_no_templates(sentences):
    openings = Counter(tuple(words(text)[:5]) for _, text in sentences)
    assert [opening for opening, count in openings.items() if count > 3] == []
    four_grams = Counter()
    for _, text in sentences:
        tokens = words(text)
        four_grams.update({tuple(tokens[i : i + 4]) for i in range(len(tokens) - 3)})
    assert [gram for gram, count in four_grams.items() if count > 5] == []
    repeated = sum(count for count in four_grams.values() if count > 1)
    assert repeated / sum(four_grams.values()) < 0.03


def test_file_order_says_nothing_about_the_label(splits):
    for rows in splits.values():
        labels = [label for _, label in rows]
        same_as_next = sum(a == b for a, b in pairwise(labels))
        assert same_as_next / len(labels) < 0.35


def test_readme_states_the_row_counts(splits):
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name, rows in splits.items():
        assert f"| `{name}.tsv` | {len(rows)} | {ROWS_PER_LABEL[name]} |" in readme
