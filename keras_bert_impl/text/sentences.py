r"""Splits English and Chinese text into sentences, by rules on regular expressions.

A sentence ends at

1. ``. ! ?``, a run of them, or ``… । ؟ ۔``, with the quotes and brackets that close after it, where
   white space follows and then no lower-case letter (it may open with quotes or brackets);
2. ``。 ！ ？ ｡``, with what closes after it, also without white space, but not before ``， 、 ：``;
3. In Chinese also ``； …`` (``……``) in the same way, and ``! ?`` behind a Chinese character.

It does not end at a full stop (rule 1) behind

4. titles and words that never end a sentence (Mr., Dr., Gen., St., vs., e.g., i.e., cf., Fig.), nor
   behind such as count (No., p., pp., Vol., Sec., Art.) where a digit or numeral follows;
5. initials (J. R. R. Tolkien), dotted acronyms (U.S., Ph.D., a.m.) and words that may end one
   (etc., Inc., Jr., Co., months), unless the next word is one that starts sentences (The, He);
6. the number, letter or numeral of a list at the start (1. Introduction);

nor at ``?"`` and ``!"`` where a name and a verb of speech follow ("Who?" Mary asked).

Sources: the classes of abbreviations (4 against 5) and the list of frequent sentence starters come
from Kiss & Strunk, Unsupervised Multilingual Sentence Boundary Detection, Computational Linguistics
32(4), 2006 (abbreviations, initials, ordinals; orthographic heuristic, frequent sentence starters);
the cases of quotes, brackets, lists and ellipses follow the "golden rules" of pragmatic_segmenter;
the stops of Chinese are those of GB/T 15834-2011, 4.1-4.3 and 4.6, with its closing quotes.
White space between sentences is dropped, nothing else: joined again they are the text.
"""

from __future__ import annotations

import re

__all__ = ["LANGUAGES", "detect_language", "split_sentences"]

LANGUAGES = ("auto", "en", "zh")

_CLOSING = "\"'”’»›)\\]}」』）》】〉〕］"
_OPENING = "\"'“‘«‹(\\[{「『（《【〈¿¡—–-"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CHINESE_STOPS = {"en": "。！？｡", "zh": "。！？｡；…"}
# What goes on with the sentence behind a Chinese stop and its closing quotes.
_CONTINUING = frozenset("，、：:,;；）」』”’》】〉)")


def _candidates(stops: str) -> re.Pattern[str]:
    # No part can fail once a stop is found, so the time is linear in the text whatever it holds.
    # `\s\.` is the spaced ellipsis of books, `[12]` a note.
    return re.compile(
        rf"(?P<stop>[.!?…।؟۔{stops}]+(?:\s\.)*+)(?P<closing>(?:[{_CLOSING}]|\[\d{{1,3}}\])*+)"
        rf"(?P<space>\s*+)(?P<opening>[{_OPENING}]*+)"
    )


_CANDIDATES = {language: _candidates(stops) for language, stops in _CHINESE_STOPS.items()}
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
# A sample says the language; this many characters of it cost nothing.
_SAMPLE = 2000
_LONGEST_ABBREVIATION = 12
_CHINESE_SHARE = 0.2


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An entry with a capital stands for that form only: "Mar." may be a month, "mar." is a word.
_NEVER = _words(
    """Mr Mrs Ms Mx Dr Prof Messrs Mmes Mme Mlle Gen Col Lt Maj Capt Cmdr Cdr Cpl Sgt Adm Gov Sen
    Rep Rev Hon Pres Supt Insp Fr Br Archbp Msgr Amb Atty Ste vs v cf eg ie viz approx ca esp incl
    resp lit Fig Figs Eq Eqs fig figs eq eqs e.g i.e"""
)
_COUNTING = _words(
    """no nos p pp vol vols ch chap sec sect art arts pt par para paras pl nr ex bk bks app ver n
    op cl pg ed n° nº"""
)
_PERHAPS = _words(
    """etc al inc ltd co corp bros jr sr esq dept univ assn dist est gmbh plc llc ave blvd rd hwy
    st mt ft c b d r fl ph.d cit ibid Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues
    Wed Thu Thur Thurs Fri Ariz Calif Colo Conn Fla Ga Ill Ind Kan Ky La Mass Md Mich Minn Mo Mont
    Nev Okla Ore Pa Penn Tenn Tex Va Vt Wash Wis Wyo Ont Que"""
)
_STARTERS = _words(
    """a an the this that these those it its he his she her they their there we our you your i my
    in on at by for from with as of to if when while where after before since during under over
    although though because however but and or so yet then thus therefore hence also moreover
    furthermore nevertheless meanwhile instead what who why how which whose some many most several
    few all both each every another other such one no not nor neither either once until
    despite according today now here only even following between among through unlike like is was
    are were did does has had have can could would should it's he's she's that's there's what's i'm
    don't let's"""
)
_NEXT_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMERAL = re.compile(r"\d|[IVXLC]+\b")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_PRONOUN = re.compile(
    r"\b(?:am|was|do|did|than|and|nor|as|can|could|should|will|would|have|had|must)\sI$"
)
_LIST_MARK = re.compile(r"[(\[]?(?:\d{1,3}|[A-Za-z]|[IVXivx]{1,5})(?:\.\d{1,3})*")
_SPEECH = re.compile(
    r"(?:[A-Z]\w*\.?\s+){1,3}(?:said|says|asked|asks|cried|cries|replied|shouted|exclaimed|answered"
    r"|whispered|added|continued|called|yelled|wondered|muttered|demanded|remarked|inquired"
    r"|returned|repeated|observed|screamed)\b"
)
_QUOTES = frozenset("\"'”’»›")


def detect_language(text: str) -> str:
    """``"zh"`` where Chinese characters are a fifth or more of the first 2,000, else ``"en"``.

    >>> detect_language("TensorFlow 是谷歌的开源软件库。"), detect_language("The word 力 is short.")
    ('zh', 'en')
    """
    if text.isascii():
        return "en"
    sample = text[:_SAMPLE]
    share = len(_HAN_CHARACTER.findall(sample)) / len(sample)
    return "zh" if share >= _CHINESE_SHARE else "en"


def split_sentences(text: str, *, language: str = "auto") -> list[str]:
    """Splits a paragraph into sentences, each without white space around it.

    Args:
        text: a paragraph; line ends in it are white space like any other.
        language: ``"en"``, ``"zh"``, or ``"auto"``: `detect_language` of the text.

    Returns:
        The sentences, none empty; an empty list for white space only. Up to white space between
        them, they joined are `text`.

    Raises:
        ValueError: `language` is another one.

    >>> split_sentences('Dr. Who met J. R. R. Tolkien in the U.S. He said: "Hi!" That was all.')
    ['Dr. Who met J. R. R. Tolkien in the U.S.', 'He said: "Hi!"', 'That was all.']
    >>> split_sentences("“你好！”他说。今天3.5度……真冷。")
    ['“你好！”', '他说。', '今天3.5度……', '真冷。']
    """
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, got {language!r}")
    if language == "auto":
        language = detect_language(text)
    text = text.strip()
    chinese_stops = _CHINESE_STOPS[language]
    sentences = []
    start = 0
    for match in _CANDIDATES[language].finditer(text):
        stop, space = match["stop"], match["space"]
        end = match.start("opening")
        if end == len(text):
            break
        if stop[-1] in chinese_stops or stop[0] in chinese_stops:
            ends = text[end] not in _CONTINUING
        elif space:
            following = match.end()
            ends = not text[following : following + 1].islower()
            ends = ends and _ends_sentence(text, start, match)
        else:
            ends = (
                language == "zh"
                and (stop[-1] in "!?" or stop.startswith("..."))
                and _HAN_CHARACTER.match(text, match.start() - 1)
                and text[end] not in _CONTINUING
            )
        if ends:
            sentences.append(text[start:end].rstrip())
            start = end
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a stop with white space behind it ends the sentence that begins at `start`."""
    stop, closing = match["stop"], match["closing"]
    if stop != ".":
        speech = stop[-1] in "!?" and closing and closing[-1] in _QUOTES
        return not (speech and _SPEECH.match(text, match.end()))
    place = match.start()
    before = text[max(start, place - _LONGEST_ABBREVIATION) : place].split()
    if not before or text[place - 1].isspace():
        return True
    word = before[-1].lstrip("\"'“‘«([{（「『—–-")
    if not word or (len(word) > 4 and word.islower() and word not in _NEVER and "." not in word):
        return True
    if place - start <= _LONGEST_ABBREVIATION and _LIST_MARK.fullmatch(text, start, place):
        return False
    return _abbreviation_ends(word, text, place, match.end())


def _abbreviation_ends(word: str, text: str, place: int, following: int) -> bool:
    """Whether the stop at `place` behind `word`, which may be an abbreviation, ends a sentence."""
    key = word.lower()
    name = key.capitalize() if word[0].isupper() else key
    if key in _NEVER or name in _NEVER:
        return False
    if key in _COUNTING and _NUMERAL.match(text, following):
        return False
    initial = (
        len(word) == 1 and word.isalpha() and not _PRONOUN.search(text, max(place - 8, 0), place)
    )
    if initial or _DOTTED.fullmatch(word) or key in _PERHAPS or name in _PERHAPS:
        next_word = _NEXT_WORD.match(text, following)
        return next_word is not None and next_word[0].lower() in _STARTERS
    return True
