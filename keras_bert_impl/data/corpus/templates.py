"""The few templates of Wikipedia that stand for words in a sentence."""

from __future__ import annotations

import re

from mwparserfromhell.nodes import Template
from mwparserfromhell.wikicode import Wikicode

__all__ = ["words_of"]

_LAST = -1
# Templates that show one of their arguments as it is: which one.
_ARGUMENTS = {
    1: """nowrap, nobr, nowraplinks, small, smaller, big, larger, em, strong, abbr, tooltip, sic,
       not a typo, proper name, noitalic, nobold, mvar, var, math, serif, allcaps, smallcaps, sc,
       quote, blockquote, cquote, quotation, flag, flagcountry, country, flagu, nihongo, nihongo2,
       ill, interlanguage link, unicode, visible anchor, anchor text, vanchor, resize, script,
       hebrew, arabic, greek""",
    2: "lang, rtl-lang, wikt-lang, color, colored link, font color, polytonic",
    _LAST: "transl, transliteration",
}
_SHOWN = {name.strip(): number for number, names in _ARGUMENTS.items() for name in names.split(",")}
_SIGNS = {
    "'": "'", "'s": "'s", "'\"": "'\"", "\"'": "\"'", "!": "|", "=": "=", "nbsp": " ",
    "spaces": " ",
    "ndash": "–", "spaced ndash": " – ", "snd": " – ", "spnd": " – ", "–": " – ", "—": " — ",
    "mdash": "—", "spaced mdash": " — ", "dot": " · ", "·": " · ", "•": " • ", "pi": "π",
    "times": "×",
}  # fmt: skip
_BEFORE_ARGUMENT = {
    "circa": "c. ", "c.": "c. ", "ca": "c. ", "ca.": "c. ", "floruit": "fl. ", "fl.": "fl. ",
    "born": "b. ", "b.": "b. ", "died": "d. ", "d.": "d. ", "us$": "US$", "usd": "US$", "gbp": "£",
    "inr": "₹", "aud": "A$", "a$": "A$", "euro": "€", "€": "€", "pound": "£", "£": "£",
    "ad": "AD ", "formatnum": "",
}  # fmt: skip
_RANGES = {
    "-": "–", "–": "–", "to": " to ", "and": " and ", "by": " by ", "x": " × ", "or": " or ",
    "*": " × ", "+/-": " ± ",
}  # fmt: skip
_UNITS = {
    "sqmi": "sq mi", "mi2": "sq mi", "sqft": "sq ft", "ft2": "sq ft", "km2": "km²", "m2": "m²",
    "km3": "km³", "m3": "m³", "cuft": "cu ft", "cumi": "cu mi", "C": "°C", "F": "°F",
    "C-change": "°C", "F-change": "°F", "acre": "acres", "/km2": "per km²", "PD/km2": "per km²",
    "/sqmi": "per sq mi", "PD/sqmi": "per sq mi", "koilbbl": "thousand barrels",
    "koilbbl/d": "thousand barrels per day", "oilbbl/d": "barrels per day", "impgal": "imp gal",
    "usgal": "US gal",
}  # fmt: skip
_FOREIGN = re.compile(r"lang-[a-z-]+$")
_SHIP = re.compile(r"(?:uss|hms|ss|rms|hmas|hmcs|ms|mv)$")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def words_of(template: Template) -> list[str | Wikicode]:
    """What a template shows in a sentence, as texts and wikitext; an empty list: nothing.

    Only templates that are simple and frequent in the prose of the English Wikipedia are known: an
    argument shown as it is (lang, nowrap, nihongo ...), signs (ndash, circa ...), convert (without
    its result: ``{{convert|5|to|7|km|mi}}`` is "5 to 7 km"), as of, ships, formatnum.
    """
    name = str(template.name).strip().lower().replace("_", " ")
    if name in _SHOWN or _FOREIGN.match(name):
        return _argument(template, _SHOWN.get(name, 1))
    if name in _SIGNS:
        return [_SIGNS[name]]
    if name in _BEFORE_ARGUMENT:
        return [_BEFORE_ARGUMENT[name], *_argument(template, 1)]
    if name in ("convert", "cvt"):
        return _converted(template)
    if name in ("as of", "asof"):
        words = "since " if _plain(template, "since") else "As of "
        words = words.lower() if _plain(template, "lc") else words
        return [f"{words}{_month(_plain(template, 2))}{_plain(template, 1)}"]
    if _SHIP.match(name) and template.has("1"):
        return [f"{name.upper()} {_plain(template, 1)}"]
    if name.startswith("formatnum:"):
        return [str(template.name).strip()[len("formatnum:") :]]
    return []


def _argument(template: Template, number: int) -> list[str | Wikicode]:
    if number == _LAST:
        return [parameter.value for parameter in template.params if not parameter.showkey][-1:]
    return [template.get(str(number)).value] if template.has(str(number)) else []


def _plain(template: Template, key: int | str) -> str:
    return str(template.get(str(key)).value).strip() if template.has(str(key)) else ""


def _month(month: str) -> str:
    if month.isdecimal() and 1 <= int(month) <= 12:
        return _MONTHS[int(month) - 1] + " "
    return f"{month} " if month else ""


def _converted(template: Template) -> list[str | Wikicode]:
    value, second, third = (_plain(template, number) for number in (1, 2, 3))
    if not value or not second:
        return []
    value = _grouped(value)
    if second in _RANGES and third:
        value, second = value + _RANGES[second] + _grouped(third), _plain(template, 4)
    return [f"{value} {_UNITS.get(second, second)}"]


def _grouped(number: str) -> str:
    """A number as convert writes it, with commas between thousands."""
    return f"{int(number):,}" if number.isascii() and number.isdecimal() else number
