"""MediaWiki dumps as streams of articles."""

from __future__ import annotations

import bz2
import gzip
import re

import pytest

from keras_bert_impl.data.corpus import CorpusReport, SkipCounter, read_documents, sentences_of
from keras_bert_impl.data.corpus.documents import (
    CUT_DOCUMENT,
    NO_PASSAGES,
    NO_TEXT,
    NOT_WIKITEXT,
    OTHER_NAMESPACE,
    REDIRECT,
)

HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="en">\n'


def page(title, text, *, ns="<ns>0</ns>", extra="", revision=""):
    return (
        f"<page><title>{title}</title>{ns}{extra}<revision>{revision}"
        f"<text>{text}</text></revision></page>\n"
    )


@pytest.fixture
def dump(tmp_path):
    def write(*pages, name="dump.xml", compress=lambda data: data):
        path = tmp_path / name
        path.write_bytes(compress((HEAD + "".join(pages) + "</mediawiki>\n").encode()))
        return path

    return write


@pytest.mark.parametrize(
    ("name", "compress"),
    [("a.xml", lambda data: data), ("a.xml.gz", gzip.compress), ("a.xml.bz2", bz2.compress)],
)
def test_articles_only(dump, name, compress):
    path = dump(
        page("A &amp; B", "'''A''' is &lt;b&gt;here&lt;/b&gt;. It&amp;nbsp;ends."),
        page("Talk:A", "Talk.", ns="<ns>1</ns>"),
        page("R1", "#REDIRECT [[A]]", extra='<redirect title="A" />'),
        page("R2", "#redirect[[A]]"),
        page("R3", "#重定向 [[A]]"),
        page("Module", "return 1", revision="<model>Scribunto</model>"),
        page("Empty", ""),
        page("List", "* a\n* b\n"),
        name=name,
        compress=compress,
    )
    skipped = SkipCounter()
    documents = list(read_documents(path, on_skip=skipped))
    assert [(d.source, d.kind) for d in documents] == [
        (f"{path}: A & B", "wikitext"),
        (f"{path}: List", "wikitext"),
    ]
    assert sentences_of(documents[0], on_skip=skipped) == ["A is here.", "It ends."]
    assert sentences_of(documents[1], on_skip=skipped) == []
    assert skipped.counts == {
        OTHER_NAMESPACE: 1, REDIRECT: 3, NOT_WIKITEXT: 1, NO_TEXT: 1, NO_PASSAGES: 1,
    }  # fmt: skip
    assert skipped.examples[REDIRECT] == [f"{path}: R{number}" for number in (1, 2, 3)]


def test_a_dump_without_namespaces_has_articles_only(dump):
    path = dump(page("A", "A is here.", ns=""), page("B", "B is here.", ns=""))
    assert [d.text for d in read_documents(path)] == ["A is here.", "B is here."]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_the_latest_revision_is_taken(dump, order):
    revisions = "".join(
        f"<revision><timestamp>200{n}-01-01T00:00:00Z</timestamp><text>Text {n} is here.</text>"
        "</revision>"
        for n in order
    )
    path = dump(f"<page><title>A</title><ns>0</ns>{revisions}</page>")
    assert [d.text for d in read_documents(path)] == ["Text 3 is here."]


def test_a_dump_of_all_revisions(shared):
    skipped = SkipCounter()
    documents = list(read_documents(shared / "data/wiki/mwxml_dump.xml", on_skip=skipped))
    assert [sentences_of(document) for document in documents] == [["Revision 2 text"]]
    assert skipped.counts == {OTHER_NAMESPACE: 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + page("A", "a") + "<page><title>", "a.xml:3: broken XML at column 14: no element"),
        (HEAD + page("A", "a & b"), "a.xml:2: broken XML at column .*: not well-formed"),
        (HEAD + "<page></title></page>", "a.xml:2: broken XML at column 9: mismatched tag"),
        (HEAD + "</mediawiki>", "a.xml: expected a MediaWiki dump, found no <page> in it"),
        ("<html><body/></html>", "a.xml: expected a MediaWiki dump, got <html>"),
    ],
    ids=lambda value: value[-20:],
)
def test_broken_dumps(tmp_path, text, message):
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(ValueError, match=message):
        list(read_documents(tmp_path / "a.xml", format="mediawiki"))


def test_a_truncated_dump(tmp_path, dump):
    pages = [page(f"A{n}", f"Article {n * 7919} is here.") for n in range(30_000)]
    data = dump(*pages).read_bytes()
    for compress in (gzip.compress, bz2.compress):
        (tmp_path / "a.xml").write_bytes(compress(data)[:-1000])
        with pytest.raises(ValueError, match=r"a.xml: cannot be decompressed: "):
            list(read_documents(tmp_path / "a.xml"))


def test_an_article_of_10_mb_is_cut(dump):
    text = "A line of it is here.\n\n" * 450_000
    skipped = SkipCounter()
    documents = list(read_documents(dump(page("A", text)), on_skip=skipped))
    assert [len(d.text) <= 4_000_000 for d in documents] == [True] * 3
    assert "\n".join(d.text for d in documents) == text
    assert skipped.counts == {CUT_DOCUMENT: 1}


MARKUP = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|\|-|</?ref|<!--|''|^=|==|&\w+;|&#\d+;|__[A-Z]+__|\ue000"
    r"|</?(?:br|div|span|sub|sup|small|math|nowiki|blockquote|code)\b|\(\s*[,;)]|\[https?:",
    re.I,
)
_WORD = re.compile(r"\w+")


@pytest.fixture(scope="module")
def articles(shared):
    """Sentences of the real dump by title, and its report."""
    (path,) = (shared / "data/wiki").glob("enwiki-latest*.bz2")
    report = CorpusReport()
    found = {}
    for document in read_documents(path, on_skip=report.skipped):
        sentences = sentences_of(document, on_skip=report.skipped)
        report.add_document(sentences)
        if sentences:
            found[document.source.removeprefix(f"{path}: ")] = sentences
    return found, report


def test_all_articles_of_the_real_dump_come_out_without_markup(articles):
    found, report = articles
    assert len(found) == report.documents == 105
    assert report.skipped.counts == {REDIRECT: 99, OTHER_NAMESPACE: 1, NO_PASSAGES: 1}
    left = [s for sentences in found.values() for s in sentences if MARKUP.search(s)]
    assert left == []


def test_coverage_of_the_real_dump_against_wikiextractor(articles, shared):
    """It keeps headings, which are no sentences, and loses words of templates, which we keep."""
    found, _ = articles
    theirs = read_documents(shared / "data/wiki/enwiki_extracted_by_wikiextractor.jsonl.gz")
    ours = other = both = 0
    for (title, sentences), document in zip(found.items(), theirs, strict=True):
        mine, reference = distinct(sentences), distinct(sentences_of(document))
        assert len(mine & reference) > 0.5 * len(mine), title
        ours, other, both = ours + len(mine), other + len(reference), both + len(mine & reference)
    assert both / ours >= 0.94
    assert both / other >= 0.91


def distinct(sentences):
    """Words of the sentences that have more than three, as titles mostly have not."""
    words = (_WORD.findall(sentence.lower()) for sentence in sentences)
    return {" ".join(found) for found in words if len(found) > 3}


def test_a_dump_heavy_in_tables(shared):
    documents = list(read_documents(shared / "data/wiki/enwiki-table-markup.xml.bz2"))
    assert len(documents) == 5
    for document in documents:
        sentences = sentences_of(document)
        assert len(sentences) > 5, document.source
        assert [s for s in sentences if MARKUP.search(s)] == []


def test_pages_of_other_parsers_tests(shared):
    from keras_bert_impl.data.corpus.wikitext import passages

    for path in sorted((shared / "data/wiki/wikitext_pages").glob("*.txt")):
        found = passages(path.read_text(encoding="utf-8"))
        # The one is tables only, the other has lost its line ends, and so the ends of its lists.
        assert bool(found) == (path.stem not in ("washington-nationals", "raith_rovers")), path
        assert [passage for passage in found if MARKUP.search(passage)] == [], path
