"""Which files a corpus has, and lines of them: compression, encodings, long lines."""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import lzma
import os

import pytest

from keras_bert_impl.data.corpus import SkipCounter, read_documents, sentences_of
from keras_bert_impl.data.corpus.documents import CUT_DOCUMENT, CUT_LINE
from keras_bert_impl.data.corpus.files import find_files, read_lines

TEXT = "One sentence here.\nAnother is here.\n\nA second document.\nIt ends.\n"


def texts(paths, **options):
    return [document.text for document in read_documents(paths, **options)]


def names(folder, files):
    return [os.path.relpath(file, folder).replace(os.sep, "/") for file in files]


@pytest.fixture
def folder(tmp_path):
    for name in ("b.txt", "a.txt", "AA/wiki_00", "AA/wiki_01.gz", "z.jsonl.bz2", "p.xml-p1p2.bz2"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEXT)
    for name in ("README.md", "README", "LICENSE.txt", ".hidden.txt", "_SUCCESS", "x.py", "x.pdf"):
        (tmp_path / name).write_text(TEXT)
    return tmp_path


def test_folder_has_the_files_with_names_of_texts_in_order(folder, caplog):
    with caplog.at_level(logging.WARNING):
        found = find_files(folder)
    expected = "AA/wiki_00 AA/wiki_01.gz a.txt b.txt p.xml-p1p2.bz2 z.jsonl.bz2"
    assert names(folder, found) == expected.split()
    assert "left out 7 files that have no name of a text" in caplog.text


def test_globs_and_lists_keep_the_order_given_and_read_a_file_once(folder, caplog):
    paths = [folder / "b.txt", f"{folder}/*.txt", f"{folder}/**/wiki_*"]
    expected = "b.txt LICENSE.txt a.txt AA/wiki_00 AA/wiki_01.gz"
    assert names(folder, find_files(paths)) == expected.split()
    assert "b.txt is given twice" in caplog.text


def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(tmp_path):
    (tmp_path / "part[1].txt").write_text(TEXT)
    assert names(tmp_path, find_files(tmp_path / "part[1].txt")) == ["part[1].txt"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.txt", "none.txt: no such file or folder"),
        ("*.xyz", r"\*.xyz: no file matches"),
        ("empty", "empty: no text file in this folder .* 1 other files"),
    ],
)
def test_nothing_found(tmp_path, path, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.pdf").write_text("x")
    with pytest.raises(FileNotFoundError, match=message):
        read_documents(tmp_path / path)


def test_no_paths_at_all():
    with pytest.raises(FileNotFoundError, match="no corpus given"):
        read_documents([])


def test_remote_paths_are_read_through_tensorflow(folder, tmp_path):
    """TensorFlow knows ``file://`` as a scheme of its own."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.txt").write_text(TEXT)
    local = texts(tmp_path / "one")
    for path in ("one/a.txt", "one/*.txt", "one"):
        assert texts(f"file://{tmp_path}/{path}") == local
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        read_documents(f"file://{tmp_path}/two")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read_documents(f"file://{tmp_path}/two*")


@pytest.mark.parametrize("compress", [lambda data: data, gzip.compress, bz2.compress])
@pytest.mark.parametrize("name", ["corpus", "corpus.txt"])
def test_compression_is_told_by_the_content(tmp_path, compress, name):
    (tmp_path / name).write_bytes(compress(TEXT.encode()))
    assert texts(tmp_path / name) == [
        "One sentence here.\nAnother is here.",
        "A second document.\nIt ends.",
    ]


def test_two_gzip_or_bzip2_streams_are_one_file(tmp_path):
    for compress, name in ((gzip.compress, "a.gz"), (bz2.compress, "a.bz2")):
        (tmp_path / name).write_bytes(compress(b"One.\n") + compress(b"Two.\n"))
        assert texts(tmp_path / name) == ["One.\nTwo."]


def test_byte_order_mark_and_line_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfOne.\r\nTwo\xe2\x80\xa8lines.\r\n\r\n\r\nThree.")
    assert texts(tmp_path / "a.txt") == ["One.\nTwo\u2028lines.", "Three."]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.txt: the file is empty"),
        (gzip.compress(b"", mtime=0), "a.txt: the file is empty"),
        (b"\n \n\t\r\n", "a.txt: the file has blank lines only"),
        (b"ok.\nab\0c", "a.txt:2: NUL at byte 7 of the file: expected text, got binary data"),
        (b"ok.\n\n\nab\xff.", "a.txt:4: not UTF-8: byte 0xff at byte 9 of the file; save"),
        (TEXT.encode("utf-16"), "a.txt: UTF-16 text: expected UTF-8 text, plain or in gzip"),
        (lzma.compress(b"x"), "a.txt: compressed with xz: expected UTF-8 text"),
        (b"PK\x03\x04xxxx", "a.txt: a zip archive: expected"),
        (b"%PDF-1.4 xxxx", "a.txt: a PDF file: expected"),
        (gzip.compress(TEXT.encode() * 9, mtime=0)[:-12], "a.txt: cannot be decompressed: "),
        (bz2.compress(TEXT.encode() * 9)[:-12], "a.txt: cannot be decompressed: "),
        (
            gzip.compress(TEXT.encode() * 9, mtime=0)[:30] + b"x" * 50,
            "a.txt: cannot be decompressed: ",
        ),
        (bz2.compress(TEXT.encode() * 9)[:30] + b"x" * 50, "a.txt: cannot be decompressed: "),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else None,
)
def test_files_that_are_no_text(tmp_path, data, message):
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        list(read_documents(tmp_path / "a.txt"))


def test_bad_bytes_behind_the_beginning_are_found_with_their_place(tmp_path):
    line = "Ein schöner Satz ist hier.\n".encode()
    (tmp_path / "a.txt").write_bytes(line * 20_000 + b"\xc3(\n")
    documents = read_documents(tmp_path / "a.txt")
    place = 20_000 * len(line) + 1
    with pytest.raises(ValueError, match=rf"a.txt:20001: not UTF-8: byte 0xc3 at byte {place} of"):
        list(documents)


def test_truncated_behind_the_beginning(tmp_path):
    noise = b"".join(b"Number %d of lines.\n" % (number * 7919) for number in range(100_000))
    for compress in (gzip.compress, bz2.compress):
        (tmp_path / "a.txt").write_bytes(compress(noise)[:-40])
        with pytest.raises(ValueError, match=r"a.txt: cannot be decompressed: "):
            list(read_documents(tmp_path / "a.txt"))


def test_a_plain_file_with_the_name_of_a_compressed_one(tmp_path):
    (tmp_path / "a.txt.gz").write_text(TEXT)
    with pytest.raises(ValueError, match=r"a.txt.gz: the file is not compressed as its name says"):
        read_documents(tmp_path / "a.txt.gz")


def test_beginning_may_end_within_a_character(tmp_path):
    text = "力" * 100_000 + "。\n力学。"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert texts(tmp_path / "a.txt") == [text]


@pytest.mark.parametrize(
    "unit", ["A sentence is here. ", "一个句子在这里。", "word ", "x", "é", "力"]
)
def test_long_lines_are_cut_where_it_hurts_least(unit):
    text = unit * (2_500_000 // len(unit.encode()))
    skipped = SkipCounter()
    stream = io.BufferedReader(io.BytesIO(b"First.\n" + text.encode() + b"\nLast."))
    lines = list(read_lines(stream, "a.txt", skipped))
    assert [line.number for line in lines] == [1, *[2] * (len(lines) - 2), 3]
    parts = [line.text for line in lines[1:-1]]
    assert len(parts) in (2, 3)
    assert "".join(parts) == text
    assert all(part.endswith(unit[-1]) for part in parts)
    assert skipped.counts == {CUT_LINE: 1}
    assert skipped.examples == {CUT_LINE: ["a.txt:2"]}


def test_a_line_of_the_longest_length_is_not_cut():
    for end in (b"", b"\n"):
        stream = io.BufferedReader(io.BytesIO(b"x" * (1_000_000 - len(end)) + end))
        skipped = SkipCounter()
        assert len(list(read_lines(stream, "a.txt", skipped))) == 1
        assert not skipped.counts


@pytest.mark.parametrize("unit", ["It is so " + "very " * 20 + "long. ", "x"])
def test_a_line_of_50_mb_becomes_documents_of_bounded_size(tmp_path, unit):
    count = 50_000_000 // len(unit)
    (tmp_path / "a.txt").write_text(unit * count)
    skipped = SkipCounter()
    sentences = length = documents = 0
    for document in read_documents(tmp_path / "a.txt", on_skip=skipped):
        assert document.source == f"{tmp_path}/a.txt:1"
        assert len(document.text) <= 4_000_000
        found = sentences_of(document)
        assert max(map(len, found)) <= 10_000
        sentences += len(found)
        length += sum(map(len, found))
        documents += 1
    assert 13 <= documents <= 17
    assert skipped.counts == {CUT_LINE: 1, CUT_DOCUMENT: 1}
    if unit == "x":
        assert length == count
    else:
        assert sentences == count


def test_a_document_without_blank_lines_is_cut_between_lines(tmp_path):
    lines = [f"Line {number} of a file without blank lines." for number in range(250_000)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    skipped = SkipCounter()
    documents = list(read_documents(tmp_path / "a.txt", on_skip=skipped))
    assert len(documents) == 3
    assert [line for document in documents for line in document.text.split("\n")] == lines
    second = len(documents[0].text.split("\n")) + 1
    assert documents[1].source == f"{tmp_path}/a.txt:{second}"
    assert skipped.counts == {CUT_DOCUMENT: 1}


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    import tracemalloc

    peaks = []
    for times in (4, 12):
        path = tmp_path / f"{times}.txt"
        path.write_text(("A line of a document.\n" * 100 + "\n") * 100 * times)
        tracemalloc.start()
        for document in read_documents(path):
            sentences_of(document)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
