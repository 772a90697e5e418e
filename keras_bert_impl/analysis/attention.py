"""What each token of a text attends to: weights, an interactive page, heatmaps.

Shapes: S tokens, N heads, L blocks.
"""

from __future__ import annotations

import base64
import html
import importlib.resources
import json
import logging
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from keras import ops

from keras_bert_impl.analysis.rows import check_vocabulary
from keras_bert_impl.models import BertEncoder
from keras_bert_impl.sources import atomic_file, atomic_write

__all__ = ["MAX_TOKENS", "Attention", "attention", "write_attention_page", "write_heatmap"]

MAX_TOKENS = 256
_LARGEST_LABELLED = 100
_UNIT = 65535

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attention:
    """The attention weights of one text or pair.

    Attributes:
        text: the text.
        pair: the second text, or None.
        tokens: S pieces with ``[CLS]`` and ``[SEP]``.
        segments: S times 0 or 1.
        weights: float32 [L, N, S, S]; how much (last but one axis) a token takes from (last
            axis) another: each row sums to 1.
    """

    text: str
    pair: str | None
    tokens: list[str]
    segments: list[int]
    weights: np.ndarray

    def matrix(self, layer: int | None = None, head: int | None = None) -> np.ndarray:
        """The weights of a layer, float32 [S, S].

        Args:
            layer: from 1 to L; default: the last.
            head: from 1 to N; default: the mean of all.

        Raises:
            ValueError: there is no such layer or head.
        """
        layers, heads = self.weights.shape[:2]
        for name, number, most in (("layer", layer, layers), ("head", head, heads)):
            if number is not None and not 1 <= number <= most:
                raise ValueError(f"{name} must be from 1 to {most}, got {number}")
        weights = self.weights[-1 if layer is None else layer - 1]
        return weights.mean(axis=0) if head is None else weights[head - 1]


def attention(
    encoder: BertEncoder,
    tokenizer,
    text: str,
    pair: str | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
) -> Attention:
    """The attention weights of every layer and head on a text or a pair of texts.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: its `BertTokenizer`.
        text, pair: the texts.
        max_tokens: most tokens, special ones with them; a page of more cannot be looked at.

    Raises:
        ValueError: a text has no token, or both have more than `max_tokens` or the model takes;
            or the tokenizer has more tokens than the model.
    """
    check_vocabulary(tokenizer, encoder.config)
    texts = {"text": text} if pair is None else {"text": text, "pair": pair}
    columns = tokenizer.tokenize(list(texts.values())).ids.to_list()
    for (name, value), ids in zip(texts.items(), columns, strict=True):
        if not ids:
            raise ValueError(f"the {name} has no token to look at: {value!r}")
    limit = min(max_tokens, encoder.config.max_position_embeddings)
    length = 1 + sum(len(ids) + 1 for ids in columns)
    if length > limit:
        raise ValueError(
            f"the text has {length} tokens with [CLS] and [SEP], at most {limit} can be shown: "
            "shorten it"
        )
    batch = tokenizer([text], None if pair is None else [pair], max_length=limit)
    outputs = encoder(batch, training=False, return_attentions=True)["attentions"]
    weights = np.stack([ops.convert_to_numpy(ops.cast(x, "float32"))[0] for x in outputs])
    ids, segments = (np.asarray(batch[name])[0].tolist() for name in ("token_ids", "segment_ids"))
    return Attention(text, pair, list(map(tokenizer.vocab.id_to_token, ids)), segments, weights)


def write_attention_page(
    found: Attention,
    path: str | os.PathLike,
    *,
    model: str = "the model",
    layer: int | None = None,
    head: int | None = None,
) -> None:
    """Writes one HTML file that shows the weights, needs no network and no other file.

    Layer, head and direction are chosen in it; a token that is pointed at, or reached by the
    keyboard, shows what it attends to. The weights in it are rounded to 1 / 65535.

    Args:
        found: what `attention` returned.
        path: the file, which is replaced where it exists.
        model: how the page calls the model.
        layer, head: shown at first, as `Attention.matrix`.

    Raises:
        ValueError: there is no such layer or head.
        OSError: as `keras_bert_impl.sources.atomic_file`.
    """
    found.matrix(layer, head)
    layers, heads = found.weights.shape[:2]
    places = [i for i, _ in enumerate(found.tokens) if not _is_special(found, i)]
    weights = np.rint(found.weights * _UNIT).clip(0, _UNIT).astype("<u2")
    content = {
        "tokens": found.tokens,
        "segments": found.segments,
        "special": [_is_special(found, i) for i, _ in enumerate(found.tokens)],
        "layers": layers,
        "heads": heads,
        "layer": layers - 1 if layer is None else layer - 1,
        "head": -1 if head is None else head - 1,
        "token": places[len(places) // 2],
        "weights": base64.b64encode(weights.tobytes()).decode("ascii"),
    }
    values = {
        "title": html.escape(_title(found)),
        "model": html.escape(model),
        "data": _json_for_html(content),
    }
    template = importlib.resources.files(__package__).joinpath("attention.html")
    page = re.sub(r"\{\{(\w+)\}\}", lambda m: values[m[1]], template.read_text("utf-8"))
    atomic_write(path, page)


def _is_special(found: Attention, place: int) -> bool:
    """Special tokens stand first, last, and before the second segment."""
    last = len(found.tokens) - 1
    return place in (0, last) or found.segments[place : place + 2] == [0, 1]


def _title(found: Attention) -> str:
    return found.text if found.pair is None else f"{found.text} / {found.pair}"


def _json_for_html(content: dict) -> str:
    """JSON without a character that could end the script element around it."""
    return re.sub("[<>&\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", json.dumps(content))


def write_heatmap(
    found: Attention,
    path: str | os.PathLike,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> None:
    """Writes the weights of a layer and head as a PNG picture.

    Characters that Matplotlib's own font lacks, such as Chinese ones, are drawn in a font of the
    system that has them; where there is none, as boxes, and a warning says so.

    Args:
        found: what `attention` returned.
        path: the file, which is replaced where it exists.
        layer, head: as `Attention.matrix`.

    Raises:
        ValueError: there is no such layer or head.
        OSError: as `keras_bert_impl.sources.atomic_file`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    weights = found.matrix(layer, head)
    size = len(found.tokens)
    figure = Figure(figsize=[min(max(4.0, 0.3 * size + 2), 24.0)] * 2, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(weights, cmap="Blues", vmin=0)
    figure.colorbar(image, ax=axes, shrink=0.6)
    heads = "mean of all heads" if head is None else f"head {head}"
    axes.set_title(f"layer {layer or found.weights.shape[0]}, {heads}")
    axes.set_xlabel("attended to")
    if size <= _LARGEST_LABELLED:
        # A token may hold a $, which would start a formula.
        style = {"family": _fonts("".join(found.tokens)), "fontsize": 8, "parse_math": False}
        axes.set_xticks(range(size), found.tokens, rotation=90, **style)
        axes.set_yticks(range(size), found.tokens, **style)
    with warnings.catch_warnings(), atomic_file(path) as stream:
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(stream, format="png", dpi=150)


def _fonts(text: str) -> list[str]:
    """Font families that together have the characters of a text, as far as there are any."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    families = ["DejaVu Sans"]
    own = FT2Font(font_manager.findfont("DejaVu Sans"))
    missing = {ord(c) for c in text} - set(own.get_charmap())
    entries = font_manager.fontManager.ttflist if missing else []
    for entry in entries:
        # Last Resort has a box for every character.
        if "Last Resort" in entry.name or not Path(entry.fname).is_file():
            continue
        has = missing & set(FT2Font(entry.fname).get_charmap())
        if has:
            families.append(entry.name)
            missing -= has
        if not missing:
            break
    if missing:
        _logger.warning(
            "no font for %d characters of the tokens (%s): the heatmap shows boxes",
            len(missing),
            "".join(chr(code) for code in sorted(missing)[:10]),
        )
    return families
