"""google-research/bert ``create_pretraining_data.py`` in plain Python: the oracle of our examples.

The draws come in Google's order, so ``random.Random(seed)`` gives Google's instances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keras_bert_impl.data.documents import TokenizedDocuments, starts_of


class Instance(NamedTuple):
    tokens: list
    first_length: int
    is_random_next: bool
    positions: list[int]
    labels: list


def create_instances(documents, vocab_words, rng, *, dupe_factor, mask=True, **options):
    """`documents` as lists of sentences, which are lists of tokens (str); shuffled in place."""
    rng.shuffle(documents)
    instances = []
    for _ in range(dupe_factor):
        for number in range(len(documents)):
            for a, b, is_random in pack_document(documents, number, rng, **options["packing"]):
                tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
                predictions = mask_tokens(tokens, vocab_words, rng, **options["masking"])
                instances.append(Instance(predictions[0], len(a) + 2, is_random, *predictions[1:]))
    rng.shuffle(instances)
    return instances


def draw_other_document(documents, number, rng):
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != number:
            break
    return other


def pack_document(
    documents,
    number,
    rng,
    *,
    max_seq_length=128,
    short_seq_prob=0.1,
    draw_other_document=draw_other_document,
):
    document = documents[number]
    longest = max_seq_length - 3
    target = longest
    if rng.random() < short_seq_prob:
        target = rng.randint(2, longest)
    chunk, length, i = [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a = [token for sentence in chunk[:a_end] for token in sentence]
            b = []
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random:
                wanted = target - len(a)
                other = documents[draw_other_document(documents, number, rng)]
                for sentence in other[rng.randint(0, len(other) - 1) :]:
                    b.extend(sentence)
                    if len(b) >= wanted:
                        break
                i -= len(chunk) - a_end
            else:
                b = [token for sentence in chunk[a_end:] for token in sentence]
            truncate(a, b, longest, rng)
            yield a, b, is_random
            chunk, length = [], 0
        i += 1


def truncate(a, b, longest, rng):
    while len(a) + len(b) > longest:
        longer = a if len(a) > len(b) else b
        del longer[0 if rng.random() < 0.5 else -1]


def mask_tokens(
    tokens, vocab_words, rng, *, probability=0.15, max_predictions=20, whole_words=False
):
    candidates = []
    for place, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole_words and candidates and token.startswith("##"):
            candidates[-1].append(place)
        else:
            candidates.append([place])
    rng.shuffle(candidates)
    wanted = min(max_predictions, max(1, round(len(tokens) * probability)))
    masked, output = [], list(tokens)
    for places in candidates:
        if len(masked) >= wanted:
            break
        if len(masked) + len(places) > wanted:
            continue
        for place in places:
            if rng.random() < 0.8:
                output[place] = "[MASK]"
            elif rng.random() >= 0.5:
                output[place] = vocab_words[rng.randint(0, len(vocab_words) - 1)]
            masked.append(place)
    masked.sort()
    return output, masked, [tokens[place] for place in masked]


CLS, SEP = 2, 3


def as_documents(documents) -> TokenizedDocuments:
    """Lists of sentences, which are lists of ids; ids of 500 and more go on with a word."""
    sentences = [sentence for document in documents for sentence in document]
    token_ids = np.array([token for sentence in sentences for token in sentence], np.int32)
    return TokenizedDocuments(
        token_ids,
        token_ids >= 500,
        starts_of(np.array([len(sentence) for sentence in sentences])),
        starts_of(np.array([len(document) for document in documents])),
    )


def random_documents(seed, *, documents, sentences, tokens) -> list[list[list[int]]]:
    """Documents of up to so many sentences of up to so many ids from 10 to 999."""
    rng = np.random.default_rng(seed)
    return [
        [
            rng.integers(10, 1000, rng.integers(1, tokens + 1)).tolist()
            for _ in range(rng.integers(1, sentences + 1))
        ]
        for _ in range(documents)
    ]


class ConstantRandom:
    """Draws the same number each time, as `random.Random` and as `numpy.random.Generator`."""

    def __init__(self, draw: float) -> None:
        self.draw = draw

    def random(self, size=None):
        return self.draw if size is None else np.full(size, self.draw)

    def randint(self, low, high):
        return low + int(self.draw * (high - low + 1))

    def binomial(self, number, probability):
        return number if self.draw < probability else 0 * number


def segments(examples):
    """(a, b, label) of each example, without special tokens."""
    rows = []
    labels = examples.is_random_next
    for i, (start, end) in enumerate(zip(examples.starts, examples.starts[1:], strict=False)):
        ids = examples.token_ids[start:end].tolist()
        first = int(examples.first_lengths[i])
        assert ids[0] == CLS
        assert ids[-1] == SEP
        assert ids[first - 1] == SEP
        label = None if labels is None else int(labels[i])
        rows.append((ids[1 : first - 1], ids[first:-1], label))
    return rows
