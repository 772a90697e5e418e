"""Text passages of a wikitext page: prose without markup.

mwparserfromhell parses the page; the walk below writes out its text. Dropped: templates (but for
the few that stand for words, see `templates`), tables, lists, indented lines, headings, references,
mathematics, code, galleries, files, categories, links to other languages, comments, magic words.
Kept: the words of links, of bold and italic text and of inline tags. As MediaWiki does, lines that
follow each other are one paragraph. Source of the grammar: https://www.mediawiki.org/wiki/
Help:Formatting, with Help:Links, Help:Images and Help:Tables.
"""

from __future__ import annotations

import html
import re

from mwparserfromhell import parse
from mwparserfromhell.nodes import ExternalLink, HTMLEntity, Tag, Template, Text, Wikilink
from mwparserfromhell.wikicode import Wikicode

from keras_bert_impl.data.corpus.templates import words_of

__all__ = ["passages"]

# Taken out before parsing: no text is in them, and they are a third of a page.
_BEFORE = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<tag>ref|math|chem|ce|timeline|gallery|imagemap|score|graph|mapframe|syntaxhighlight"
    r"|source|templatestyles|pre|inputbox|hiero)\b[^<>]*"
    r"(?:(?<=/)>|>[^<]*+(?:<(?!/?(?P=tag)\b)[^<]*+)*+</(?P=tag)\s*>)",
    re.S | re.I,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The parser's time grows with the square of what is opened and never closed: 20,000 take minutes.
_MOST_UNCLOSED = 1000
_OPENED = re.compile(r"<(?!/|br\b|hr\b|li\b|wbr\b|t[rdh]\b|p\b)[a-z][^<>]*(?<!/)>", re.I)

_DROPPED_TAGS = _words(
    """ref references math chem ce table gallery timeline imagemap score graph mapframe code source
    syntaxhighlight pre templatestyles inputbox hiero ul ol dl li dd dt tr td th caption noinclude
    includeonly img section indicator maplink"""
)
_BLOCKS = _words("p div blockquote poem center hr")
_LIST_MARKS = _words("* # : ;")
# A private mark for what makes its line no prose.
_NOT_PROSE = "\ue000"
_NAMESPACES = _words(
    """file image media category datei bild kategorie fichier catégorie archivo imagen categoría
    ficheiro imagem categoria immagine plik grafika kategoria bestand afbeelding categorie fil
    файл изображение категория ファイル 画像 カテゴリ 파일 그림 분류 文件 檔案 档案 图像 圖像
    图片 圖片 分类 分類"""
)
_LANGUAGE_LINK = re.compile(r"(?:[a-z]{2,3}|simple|zh-[a-z-]+|be-tarask|nds-nl):\S", re.ASCII)
_QUOTES = re.compile(r"'{2,}")
_HEADING = re.compile(r"^=+.*=+\s*$")
_LEFT_TAG = re.compile(
    r"</?(?:ref|references|math|br|p|div|span|small|big|sub|sup|center|font|b|i|u|s|em|strong|code"
    r"|table|tr|td|th|nowiki|noinclude|includeonly|onlyinclude|blockquote|gallery|poem|tt|li|ul|ol"
    r"|abbr|cite|del|ins|var|hr|pre|syntaxhighlight|source|section|ruby|rt|rb|rp)\b[^<>\n]*>?",
    re.I,
)
_LEFT_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_LEFT_TABLE = re.compile(r"\{\|[^{]*(?:\{(?!\|)[^{]*?)*?\n[ \t]*\|\}")
_LEFT_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)*([^\[\]|]*)\]\]")
_LEFT_MARKS = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|'{2,}|__[A-Z]{3,}__|<!--|-->")
_TABLE_LINE = re.compile(r"\s*(?:\{\||\|[-}+|]|[|!][^|]*\||[|!]\s)")
_VARIANT = re.compile(r"-\{(?:[A-Za-z;-]{0,5}\|)?([^{}]*)\}-")
_VARIANT_CHOICE = re.compile(r"(?:^|;)\s*zh(?:-hans|-cn|)\s*:\s*([^;]*)")
_SPACE = re.compile(r"[^\S\n]+")
_EMPTY_BRACKETS = re.compile(r"\s*[(（\[](?:[\s,;:，；、]|\bor\b|\band\b)*[)）\]]")
_AFTER_OPENING = re.compile(r"([(（])[\s,;:，；、]+")
_BEFORE_CLOSING = re.compile(r"[\s,;:，；、]{1,20}([)）])")
_TWICE = re.compile(r"([,;，；、])(?:\s*[,;，；、])+")
_SPACE_BEFORE_STOP = re.compile(r" +([,.;:!?)](?:\s|$))")
_SENTENCE_END = re.compile(r"[.!?:;…。！？：；][\"'”’»)\]」』）》]*$")
_FEWEST_WORDS = 5


def passages(wikitext: str) -> list[str]:
    r"""The paragraphs of prose of a page, in their order.

    A paragraph that neither ends as a sentence nor has five words (ten Chinese characters) is
    taken for a remnant (a caption, a label) and dropped, unless the page has nothing else. A page
    with more than 1,000 unclosed templates, links, tables or tags is broken: it has no passages.

    >>> passages("'''Foo''' is a [[bar (baz)|bar]]s.<ref>x</ref>\n* item\n== See ==\n{{stub}}")
    ['Foo is a bars.']
    """
    wikitext = _BEFORE.sub("", wikitext)
    if _is_broken(wikitext):
        return []
    parts: list[str] = []
    _write(parse(wikitext, skip_style_tags=True), parts)
    text = html.unescape(html.unescape("".join(parts)))
    text = _without_left_markup(text)
    if "-{" in text:
        text = _VARIANT.sub(_chosen_variant, text)
    paragraphs: list[str] = []
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith(" "):
            line = _NOT_PROSE if not lines and "  " in line else line
        line = _clean(line)
        if line:
            lines.append(line)
        elif lines:
            paragraphs.append(" ".join(lines))
            lines = []
    return [paragraph for paragraph in paragraphs if _is_prose(paragraph)] or paragraphs


def _is_broken(wikitext: str) -> bool:
    unclosed = (
        wikitext.count(opening) - wikitext.count(closing)
        for opening, closing in (("{{", "}}"), ("[", "]"), ("{|", "|}"))
    )
    if max(unclosed) > _MOST_UNCLOSED:
        return True
    return len(_OPENED.findall(wikitext)) - wikitext.count("</") > _MOST_UNCLOSED


def _without_left_markup(text: str) -> str:
    """Takes out templates, tables and links that the parser took for text, as they are nested."""
    if "{{" in text:
        for _ in range(3):
            text = _LEFT_TEMPLATE.sub("", text)
    if "{|" in text:
        text = _LEFT_TABLE.sub("", text)
    if "[[" in text:
        text = _LEFT_LINK.sub(r"\1", text)
    return text


def _chosen_variant(match: re.Match[str]) -> str:
    choice = _VARIANT_CHOICE.search(match[1])
    return choice[1] if choice else "" if ":" in match[1] else match[1]


def _is_prose(paragraph: str) -> bool:
    if _SENTENCE_END.search(paragraph):
        return any(character.isalnum() for character in paragraph)
    return paragraph.count(" ") >= _FEWEST_WORDS - 1 or (
        not paragraph.isascii() and len(paragraph) >= 2 * _FEWEST_WORDS and " " not in paragraph
    )


def _clean(line: str) -> str:
    """A line without what is left of markup; empty where it is no prose."""
    if _NOT_PROSE in line or _HEADING.match(line) or _TABLE_LINE.match(line):
        return ""
    if "<" in line:
        line = _LEFT_TAG.sub("", line)
    line = _LEFT_MARKS.sub("", line)
    line = _SPACE.sub(" ", line)
    if "(" in line or "（" in line:
        line = _EMPTY_BRACKETS.sub("", line)
        line = _BEFORE_CLOSING.sub(r"\1", _AFTER_OPENING.sub(r"\1", line))
    line = _SPACE_BEFORE_STOP.sub(r"\1", _TWICE.sub(r"\1", line))
    return line.strip()


def _write(code: Wikicode, parts: list[str]) -> None:
    """Appends the text of parsed wikitext to `parts`."""
    for node in code.nodes:
        if isinstance(node, Text):
            # Quotes of bold and italic text, which must not meet an apostrophe behind them.
            parts.append(_QUOTES.sub("", node.value) if "''" in node.value else node.value)
        elif isinstance(node, Wikilink):
            _write_link(node, parts)
        elif isinstance(node, Tag):
            _write_tag(node, parts)
        elif isinstance(node, Template):
            for words in words_of(node):
                parts.append(words) if isinstance(words, str) else _write(words, parts)
        elif isinstance(node, ExternalLink):
            if node.title is not None:
                _write(node.title, parts)
            elif not node.brackets:
                parts.append(str(node.url))
        elif isinstance(node, HTMLEntity):
            parts.append(node.normalize())
        # Headings, comments and arguments of templates are not text; a heading ends its line.


def _write_link(link: Wikilink, parts: list[str]) -> None:
    title = str(link.title).strip()
    prefix, colon, _ = title.partition(":")
    if colon and prefix.strip().lower() in _NAMESPACES:
        return
    if link.text is not None:
        _write(link.text, parts)
    elif not (colon and _LANGUAGE_LINK.match(title)):
        start = len(parts)
        _write(link.title, parts)
        if title.startswith(":") and len(parts) > start:
            parts[start] = parts[start].lstrip(" :")


def _write_tag(tag: Tag, parts: list[str]) -> None:
    name = str(tag.tag).strip().lower()
    if tag.wiki_markup in _LIST_MARKS or (tag.self_closing and name in ("li", "dd", "dt")):
        parts.append(_NOT_PROSE)
    elif name == "br":
        parts.append(" ")
    elif name in _DROPPED_TAGS or tag.contents is None:
        parts.append("\n" if name in ("table", "hr") else "")
    elif name in _BLOCKS:
        parts.append("\n\n")
        _write(tag.contents, parts)
        parts.append("\n\n")
    elif name == "sup":
        _write_superscript(tag, parts)
    else:
        _write(tag.contents, parts)


def _write_superscript(tag: Tag, parts: list[str]) -> None:
    power = re.fullmatch(r"[-−+]?\d+", str(tag.contents).strip())
    if power and parts and parts[-1][-1:].isdigit():
        parts.append("^")
    _write(tag.contents, parts)
