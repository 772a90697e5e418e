"""Attention against the encoder's own; the page, its data and, in a browser, what it shows."""

from __future__ import annotations

import base64
import html.parser
import json
import logging
import re
import shutil
import subprocess

import numpy as np
import pytest
from keras import ops

from keras_bert_impl.analysis import Attention, attention, write_attention_page, write_heatmap
from tests.analysis.test_features import TOKENIZER, VOCAB, encoder

__all__ = ["encoder"]
NASTY = Attention(
    "</script><script>document.title='hit'</script>&amp; {{data}}",
    "<!-- \u2028",
    ["[CLS]", "</script>", "<!--", "$x_1$", "[SEP]", "中", "[SEP]"],
    [0, 0, 0, 0, 0, 1, 1],
    np.full((2, 3, 7, 7), 1 / 7, "float32"),
)


class Page(html.parser.HTMLParser):
    """The title, the script elements and all addresses of a page."""

    def __init__(self, path):
        super().__init__()
        self.scripts, self.addresses, self.title, self._inside = [], [], "", ""
        self.feed(path.read_text("utf-8"))
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        if self._inside == "title":
            self.title += data

    def weights(self) -> np.ndarray:
        size = len(self.data["tokens"])
        values = np.frombuffer(base64.b64decode(self.data["weights"]), "<u2")
        shape = (self.data["layers"], self.data["heads"], size, size)
        return values.reshape(shape) / 65535


def test_weights_are_the_encoders(encoder):
    found = attention(encoder, TOKENIZER, "The man", "中国 played")
    tokens = "[CLS] the man [SEP] 中 国 play ##ed [SEP]".split()
    assert found.tokens == tokens
    assert found.segments == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    ids = np.array([[VOCAB.token_to_id(token) for token in tokens]], "int32")
    batch = {"token_ids": ids, "segment_ids": np.array([found.segments], "int32")}
    expected = encoder(batch, return_attentions=True)["attentions"]
    assert found.weights.shape == (5, 2, 9, 9)
    for ours, theirs in zip(found.weights, expected, strict=True):
        np.testing.assert_allclose(ours, ops.convert_to_numpy(theirs)[0], atol=1e-6)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_array_equal(found.matrix(2, 1), found.weights[1, 0])
    np.testing.assert_allclose(found.matrix(), found.weights[4].mean(axis=0))


def test_the_page_holds_tokens_and_weights(encoder, tmp_path):
    found = attention(encoder, TOKENIZER, "The man", "中国 played")
    write_attention_page(found, tmp_path / "a.html", layer=2, head=1)
    page = Page(tmp_path / "a.html")
    assert page.addresses == []
    assert page.title == "The man / 中国 played"
    assert page.data["tokens"] == found.tokens
    assert page.data["segments"] == found.segments
    assert page.data["special"] == [token in ("[CLS]", "[SEP]") for token in found.tokens]
    assert (page.data["layer"], page.data["head"]) == (1, 0)
    np.testing.assert_allclose(page.weights(), found.weights, atol=1e-5)
    np.testing.assert_allclose(page.weights().sum(axis=-1), 1, atol=1e-3)


def test_texts_are_escaped(tmp_path):
    write_attention_page(NASTY, tmp_path / "a.html", model="<b>")
    page = Page(tmp_path / "a.html")
    assert len(page.scripts) == 2
    assert page.title == f"{NASTY.text} / {NASTY.pair}"
    assert page.data["tokens"] == NASTY.tokens
    assert "<b>" not in (tmp_path / "a.html").read_text("utf-8")


def in_browser(folder, page: str, *options: str) -> str:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium on the PATH")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=3000", *options, (folder / page).as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    return done.stdout.decode()


CLICKS = """<script>
const point = (id, kind) => document.querySelectorAll(id)[1].dispatchEvent(new Event(kind));
point("#tokens button", "pointerenter");
const first = document.getElementById("top").textContent;
const choice = document.getElementById("layer");
choice.value = "0";
choice.dispatchEvent(new Event("change"));
document.querySelectorAll("#heads button")[1].click();
point("#tokens button", "pointerenter");
document.body.dataset.seen = JSON.stringify([first, document.getElementById("top").textContent,
  document.querySelectorAll("#tokens button").length, document.querySelector("caption").textContent,
  document.title]);
</script></body>"""


def test_hover_and_choices_in_a_browser(encoder, tmp_path):
    found = attention(encoder, TOKENIZER, "The man", "中国 played")
    write_attention_page(found, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text("utf-8")
    (tmp_path / "b.html").write_text(text.replace("</body>", CLICKS), "utf-8")
    shown = in_browser(tmp_path, "b.html", "--dump-dom")
    assert 'data-ready="true"' in shown
    seen = html.unescape(re.search('data-seen="([^"]*)"', shown)[1])
    first, second, tokens, caption, title = json.loads(seen)
    assert (tokens, caption) == (9, "layer 1, head 2")
    assert title == "The man / 中国 played"
    for line, weights in ((first, found.matrix()), (second, found.matrix(1, 2))):
        best = int(np.argmax(weights[1]))
        share = 100 * weights[1, best]
        digits = 1 if share < 10 else 0
        assert line.startswith(f"the attends to: {found.tokens[best]} {share:.{digits}f} %")


def test_nasty_texts_in_a_browser(tmp_path):
    write_attention_page(NASTY, tmp_path / "a.html")
    shown = in_browser(tmp_path, "a.html", "--dump-dom")
    assert 'data-ready="true"' in shown
    title = html.unescape(re.search("<title>(.*?)</title>", shown, re.DOTALL)[1])
    assert title == f"{NASTY.text} / {NASTY.pair}"
    picture = tmp_path / "a.png"
    in_browser(tmp_path, "a.html", f"--screenshot={picture}", "--window-size=1200,1600")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_heatmaps(tmp_path, caplog):
    for name, options in (("a.png", {}), ("b.png", {"layer": 1, "head": 3})):
        with caplog.at_level(logging.WARNING, "keras_bert_impl"):
            write_heatmap(NASTY, tmp_path / name, **options)
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


def test_characters_without_a_font_are_named(tmp_path, caplog):
    tokens = ["[CLS]", "\U0010fffd", "[SEP]"]
    found = Attention("x", None, tokens, [0, 0, 0], np.full((1, 1, 3, 3), 1 / 3, "float32"))
    with caplog.at_level(logging.WARNING, "keras_bert_impl"):
        write_heatmap(found, tmp_path / "a.png")
    assert "no font for 1 characters of the tokens (\U0010fffd)" in caplog.text


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["  "], "the text has no token to look at: '  '"),
        (["the", ""], "the pair has no token to look at: ''"),
        (["the " * 11], "the text has 13 tokens .* at most 12 can be shown"),
    ],
)
def test_texts_that_cannot_be_shown(encoder, texts, message):
    with pytest.raises(ValueError, match=message):
        attention(encoder, TOKENIZER, *texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 3}, "layer must be from 1 to 2, got 3"),
        ({"head": 0}, "head must be from 1 to 3, got 0"),
    ],
)
def test_layers_and_heads_that_are_not_there(tmp_path, options, message):
    for write in (write_attention_page, write_heatmap):
        with pytest.raises(ValueError, match=message):
            write(NASTY, tmp_path / "a", **options)
    assert not (tmp_path / "a").exists()
