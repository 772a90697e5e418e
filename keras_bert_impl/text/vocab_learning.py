"""Learns a WordPiece vocabulary from word counts, with tensorflow_text's learner.

The order is: special tokens, ``[unusedN]``, single characters (alone, then behind ``##``), longer
pieces by falling frequency.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping

from keras_bert_impl.text.vocab import CLS, MASK, PAD, SEP, UNK, Vocab
from keras_bert_impl.text.word_counts import is_mark

__all__ = ["SPECIAL_TOKENS", "learn_vocab"]

SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
_LONGEST_PIECE = 50
_MOST_WORDS = 200_000
# The learner's result is cut to size, so it may be larger by this share.
_SLACK = 0.1


def learn_vocab(
    word_counts: Mapping[str, int],
    size: int,
    *,
    lowercase: bool = True,
    unused: int = 95,
    min_frequency: int = 2,
) -> Vocab:
    """Learns a vocabulary of exactly `size` tokens.

    Characters that occur at least `min_frequency` times are in it, letters also as ``##`` pieces;
    Chinese characters and punctuation only stand alone. ASCII letters, digits and punctuation are
    always in it. The result depends on the counts alone, not on their order.

    Args:
        word_counts: of `count_words`.
        size: number of tokens.
        lowercase: as the words were counted; leaves out the capitals of ASCII.
        unused: tokens ``[unused0]`` ... for words to come; with the five special tokens, 95 of
            them make 100 reserved ids.
        min_frequency: least count of a character or piece.

    Raises:
        ValueError: the characters alone need more than `size`, or the words give fewer tokens;
            the smallest or largest possible size is named.
    """
    reserved = [*SPECIAL_TOKENS, *(f"[unused{number}]" for number in range(unused))]
    words = sorted(word_counts.items(), key=lambda item: (-item[1], item[0]))
    characters: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            characters[character] += count
    frequent = {char for char, count in characters.items() if count >= min_frequency}
    frequent |= set(string.digits + string.punctuation + string.ascii_lowercase)
    if not lowercase:
        frequent |= set(string.ascii_uppercase)
    letters = {char for char in frequent if not is_mark(char)}
    alphabet = [*sorted(frequent), *(f"##{char}" for char in sorted(letters))]
    room = size - len(reserved) - len(alphabet)
    if room < 0:
        raise ValueError(
            f"a vocabulary of {size} tokens has no room for the {len(reserved)} reserved ones and "
            f"the {len(alphabet)} characters of this corpus (with their ## forms): ask for at "
            f"least {len(reserved) + len(alphabet)}, or a higher min_frequency"
        )
    usable = [
        (word, count)
        for word, count in words
        if len(word) <= _LONGEST_PIECE and letters.issuperset(word)
    ]
    pieces = _pieces(usable[:_MOST_WORDS], room, min_frequency, set(alphabet))
    if len(pieces) < room:
        reachable = len(reserved) + len(alphabet) + len(pieces)
        raise ValueError(
            f"the corpus is too small for a vocabulary of {size} tokens: its {len(words)} distinct "
            f"words give at most {reachable} with min_frequency {min_frequency}"
        )
    return Vocab([*reserved, *alphabet, *pieces[:room]], origin="learned vocabulary")


def _pieces(
    words: list[tuple[str, int]], room: int, min_frequency: int, alphabet: set[str]
) -> list[str]:
    """Pieces of several characters by falling frequency: at least `room` where there are."""
    if not words or not room:
        return []
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    params = learner.Params(
        upper_thresh=None,
        lower_thresh=None,
        num_iterations=4,
        max_input_tokens=-1,
        max_token_length=_LONGEST_PIECE,
        max_unique_chars=-1,
        vocab_size=-1,
        slack_ratio=-1,
        include_joiner_token=True,
        joiner="##",
        reserved_tokens=[],
    )

    def learn(threshold: int) -> list[str]:
        found = learner.learn_with_thresh(words, threshold, params)
        return [piece for piece in found if piece not in alphabet]

    low, high = min_frequency, words[0][1] + 1
    threshold = max(words[min(room, len(words)) - 1][1], low)
    best: list[str] = []
    while True:
        pieces = learn(threshold)
        if len(pieces) >= room:
            best, low = pieces, threshold
            if len(pieces) <= room * (1 + _SLACK):
                break
        elif threshold == min_frequency:
            return best or pieces
        else:
            high = threshold
        if high - low <= 1 and best:
            break
        threshold = _between(low, high) if best or high - low > 1 else low
    return best


def _between(low: int, high: int) -> int:
    """A threshold between two, near their geometric mean: counts fall as 1 / rank."""
    return min(max(round((low * high) ** 0.5), low + 1), high - 1) if high - low > 1 else low
