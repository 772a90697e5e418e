"""Prose of wikitext, construct by construct."""

from __future__ import annotations

import pytest

from keras_bert_impl.data.corpus.wikitext import passages

ONE_PASSAGE = {
    "bold and italic": ("'''''A''''' is '''b''' and ''c''.", "A is b and c."),
    "unclosed bold": ("'''A is b.", "A is b."),
    "apostrophe behind italic": ("The ''Eagle''{{'}}s orbit.", "The Eagle's orbit."),
    "link": ("A [[b]] is [[c (d)|e]]s.", "A b is es."),
    "link with italic": ("A [[b|''c'']].", "A c."),
    "link to category": ("See [[:Category:A]] here.", "See Category:A here."),
    "external link": ("See [http://x.org the site] here.", "See the site here."),
    "external link without text": ("It is so. [http://x.org]", "It is so."),
    "bare address": ("See http://x.org/a for it.", "See http://x.org/a for it."),
    "reference": ("A<ref>x {{cite|a}}</ref> is<ref name=b /> b.<ref name='c'>y</ref>", "A is b."),
    "unclosed reference": ("A is b.<ref>c", "A is b.c"),
    "comment": ("A <!-- x\n\ny -->is b.<!-- z", "A is b."),
    "mathematics": ("A <math>x^2</math> is b.", "A is b."),
    "tags": ("A <small>b</small> <span style='x'>c</span><br/>d <u>e</u>.", "A b c d e."),
    "chemistry": (
        "H<sub>2</sub>O has 10<sup>23</sup> in 5 m<sup>2</sup>.",
        "H2O has 10^23 in 5 m2.",
    ),
    "nowiki": ("A <nowiki>b [c]</nowiki> d.", "A b [c] d."),
    "entities": ("A&nbsp;b &amp; c&#8211;d &amp;nbsp; &lt;e.", "A b & c–d <e."),
    "template": ("A {{b|c={{d}}|e}} is f.", "A is f."),
    "template in brackets": ("A ({{IPA-en|x}}; {{lang-el|Άλφα}}, {{b}}) is.", "A (Άλφα) is."),
    "only templates in brackets": ("A ({{b}}, or {{c}}) is d.", "A is d."),
    "convert": ("It is {{convert|5|km|mi|0}} long.", "It is 5 km long."),
    "convert a range": ("It is {{cvt|1500|to|7000|ft|m}} up.", "It is 1,500 to 7,000 ft up."),
    "convert temperatures": ("It is {{convert|-3.5|C|F}} cold.", "It is -3.5 °C cold."),
    "language": ("The {{lang|fr|mot}} is {{lang-de|Wort}}.", "The mot is Wort."),
    "Japanese": ("{{nihongo|'''Aikido'''|合気道|Aikidō}} is.", "Aikido is."),
    "transliteration": (
        "The {{transl|ar|ALA|kitāb}} is {{transl|ru|kniga}}.",
        "The kitāb is kniga.",
    ),
    "signs": ("A{{snd}}b {{circa|1900}}, c{{ndash}}d.", "A – b c. 1900, c–d."),
    "no wrap": ("A {{nowrap|b [[c|d]]}} e.", "A b d e."),
    "as of": ("{{As of|2015|4}}, a is b.", "As of April 2015, a is b."),
    "ship": ("The {{USS|Enterprise|CV-6}} sank.", "The USS Enterprise sank."),
    "number": ("It has {{formatnum:1234}} parts.", "It has 1234 parts."),
    "magic word": ("__NOTOC__A is b.", "A is b."),
    "lines of a paragraph": ("A is\nb and\nc.", "A is b and c."),
    "leftover braces": ("A }} is ]] b {{ c.", "A is b c."),
    "Chinese variants": ("-{zh-hans:软件;zh-hant:軟體}-是-{好}-的。", "软件是好的。"),
    "Chinese brackets": ("力（{{lang|en|force}}，{{x}}）是。", "力（force）是。"),
    "quotation": ("{{quote|A is ''b''.|Author}}", "A is b."),
}


@pytest.mark.parametrize("name", ONE_PASSAGE)
def test_one_passage(name):
    wikitext, passage = ONE_PASSAGE[name]
    assert passages(wikitext) == [passage]


NOTHING = {
    "heading": "== A ==",
    "headings": "= A =\n=== B ''c'' ===\n====D====<!-- x -->",
    "lists": "* a is b.\n** c is d.\n# e is f.\n; g\n: h is i.\n*: j",
    "indented": ":A is b, which is indented.",
    "table": "{| class='x'\n|+ A\n|-\n! a !! b\n|-\n| c is d. || e\n|}",
    "nested table": "{|\n| a\n{|\n| b is c.\n|}\n| d\n|}",
    "unclosed table": "{| class='x'\n|-\n| a || b is c.\n|-\n! d\n| e",
    "infobox": "{{Infobox a\n| b = c is d.\n| e = {{f|[[g]]}}\n}}",
    "file": "[[File:A.jpg|thumb|left|A [[b]] is ''c''.]]\n[[Image:B.png|C is d.]]",
    "files in other languages": "[[文件:A.jpg|thumb|力是。]]\n[[Datei:B.png|C ist d.]]",
    "category": "[[Category:A]]\n[[Category:B|c]]\n[[分类:力]]",
    "links to other languages": "[[fr:A]]\n[[zh-yue:力]]\n[[simple:A b]]",
    "gallery": "<gallery>\nFile:A.jpg|A is b.\n</gallery>",
    "references": "<references>\n<ref name=a>B is c.</ref>\n</references>",
    "code": "<syntaxhighlight lang='c'>\nint a == b;\n</syntaxhighlight>\n<pre>a is b.</pre>",
    "list in HTML": "<ul><li>A is b.</li></ul>",
    "table in HTML": "<table><tr><td>A is b.</td></tr></table>",
    "timeline": "<timeline>\nA = b\n</timeline>",
    "rule": "----",
    "white space": " \n\n\t",
    "nothing": "",
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_but_markup(name):
    assert passages(NOTHING[name]) == []
    around = f"The first passage.\n\n{NOTHING[name]}\n\nThe last passage."
    expected = ["The first passage.", "The last passage."]
    if not name.startswith("unclosed"):
        assert passages(around) == expected


def test_structure_ends_passages():
    text = "A is b.\n== C ==\nD is e.\n* f\nG is h.\n{{i}}\nJ is k.\n{|\n| l\n|}\nM is n."
    text += "\n<p>O is.</p>P is."
    assert passages(text) == [
        "A is b.", "D is e.", "G is h.", "J is k.", "M is n.", "O is.", "P is.",
    ]  # fmt: skip


def test_remnants_are_dropped_beside_prose():
    assert passages("A label\n\nIt is a passage.\n\nno stop but it has words") == [
        "It is a passage.",
        "no stop but it has words",
    ]
    assert passages("A label") == ["A label"]


@pytest.mark.parametrize("opening", ["{{a|", "[[a|", "{|\n", "<b>", "[http://a "])
def test_a_page_of_unclosed_markup_has_no_passages(opening):
    """The parser would take minutes for each of them."""
    assert passages("A is b. " + opening * 20_000) == []


def test_cases_of_the_parser(shared):
    """None of its odd inputs raises anything, and none leaves templates or tables."""
    inputs = []
    for path in sorted((shared / "data/wiki/mwparserfromhell_cases").glob("*.mwtest")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("input:"):
                inputs.append(line.removeprefix("input:").strip().strip('"'))
    assert len(inputs) > 500
    for text in inputs:
        for passage in passages(text.encode().decode("unicode_escape", "ignore")):
            assert not any(mark in passage for mark in ("{{", "}}", "{|", "[[", "]]")), text
