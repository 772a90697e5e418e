"""The parts of a page in HTML: tables, bars, curves, a matrix. All texts are escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

__all__ = [
    "bars",
    "confusions",
    "figure",
    "line_chart",
    "matrix",
    "page",
    "section",
    "table",
    "tiles",
]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 460, 250, 52, 34, 14
_CURVES = 4
_MOST_CONFUSIONS = 20

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #5c6670; --back: #f6f7f9;
  --card: #ffffff; --line: #dfe3e8; --c0: #2563eb; --c1: #d9730d; --c2: #0f8a5f; --c3: #8b3fd1; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --soft: #9aa4af; --back: #14171b;
  --card: #1d2126; --line: #343b43; --c0: #6ea8fe; --c1: #f0a45d; --c2: #4cc79a; --c3: #c08af0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC",
  "PingFang SC", "Microsoft YaHei", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 12px; }
.sub { color: var(--soft); margin: 4px 0 20px; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin: 16px 0; overflow-x: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 18px; flex: 1 1 130px; }
.tile b { display: block; font-size: 22px; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.tile.first b { color: var(--c0); font-size: 30px; line-height: 1.1; }
.tile span { color: var(--soft); font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px; }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word; }
th:last-child, td:last-child { padding-right: 0; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.bar { width: 22%; min-width: 90px; vertical-align: middle; }
.track { background: var(--line); border-radius: 4px; height: 9px; overflow: hidden; }
.track i { display: block; height: 100%; background: var(--c0); }
.track i.s1 { background: var(--c1); }
.note { color: var(--soft); font-size: 13px; margin: 10px 0 0; }
.matrix { width: auto; }
.matrix td, .matrix th { text-align: center; padding: 8px 12px; border: 1px solid var(--line);
  min-width: 56px; max-width: 160px; }
.matrix th:first-child { text-align: right; border: 0; }
.matrix tr:first-child th { border: 0; }
.matrix td:last-child, .matrix th:last-child { padding-right: 12px; }
.charts { display: flex; flex-wrap: wrap; gap: 20px; }
figure { margin: 0; flex: 1 1 400px; }
figcaption { color: var(--soft); font-size: 13px; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 12px; font-family: inherit; }
svg .axis { stroke: var(--line); fill: none; }
svg .best { stroke: var(--soft); stroke-dasharray: 2 4; }
svg .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin: 0 5px 0 12px; }
"""


def figure(value: float | None) -> str:
    """A score as people read it: four digits of a share, two of a percentage."""
    if value is None:
        return "–"
    return f"{value:.4f}" if abs(value) <= 1 else f"{value:,.2f}".removesuffix(".00")


def page(title: str, subtitle: str, parts: Sequence[str]) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{html.escape(title)}</h1>\n<p class="sub">{html.escape(subtitle)}</p>\n'
        f"{''.join(parts)}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A box with a heading; several parts stand side by side where there is room."""
    inside = "".join(parts) if len(parts) == 1 else f'<div class="charts">{"".join(parts)}</div>'
    return f"<section><h2>{html.escape(title)}</h2>{inside}</section>\n"


def tiles(first: Mapping[str, str], others: Mapping[str, str]) -> str:
    """Short facts in boxes, the first ones large."""
    boxes = [("tile first", *pair) for pair in first.items()]
    boxes += [("tile", *pair) for pair in others.items()]
    return '<div class="tiles">{}</div>\n'.format(
        "".join(
            f'<div class="{kind}"><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>'
            for kind, name, value in boxes
        )
    )


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    shares: Sequence[float] | None = None,
    note: str = "",
) -> str:
    """Rows of cells; columns of numbers stand to the right; `shares` [0, 1] become bars."""
    number = [i > 0 and all(_is_figure(row[i]) for row in rows) for i in range(len(header))]
    kinds = [' class="n"' if is_number else "" for is_number in number]
    head = "".join(
        f"<th{kind}>{html.escape(name)}</th>" for kind, name in zip(kinds, header, strict=True)
    )
    lines = []
    for place, row in enumerate(rows):
        cells = "".join(
            f"<td{kind}>{html.escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)
        )
        if shares is not None:
            cells += f'<td class="bar">{_bar(shares[place])}</td>'
        lines.append(f"<tr>{cells}</tr>")
    head += "<th></th>" if shares is not None else ""
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>{_note(note)}"


def _is_figure(cell: str) -> bool:
    return cell == "–" or cell.replace(",", "").removeprefix("-").replace(".", "", 1).isdigit()


def _bar(share: float, series: int = 0) -> str:
    return f'<div class="track"><i class="s{series}" style="width:{100 * share:.1f}%"></i></div>'


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>' if text else ""


def bars(labels: Sequence[str], counts: Mapping[str, Mapping[str, int]], note: str = "") -> str:
    """How often each label occurs in each file, as numbers and bars of its share."""
    head = "".join(f'<th class="n">{html.escape(name)}</th><th></th>' for name in counts)
    lines = []
    for label in labels:
        cells = ""
        for series, found in enumerate(counts.values()):
            total, count = max(max(found.values(), default=1), 1), found.get(label, 0)
            bar = _bar(count / total, series)
            cells += f'<td class="n">{count:,}</td><td class="bar">{bar}</td>'
        lines.append(f"<tr><td>{html.escape(label)}</td>{cells}</tr>")
    return f"<table><tr><th></th>{head}</tr>{''.join(lines)}</table>{_note(note)}"


def matrix(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """Labels down, predictions across; right ones blue, wrong ones red, by share of the row."""
    head = "".join(f"<th>{html.escape(label)}</th>" for label in labels)
    lines = []
    for i, (label, row) in enumerate(zip(labels, counts, strict=True)):
        cells = ""
        for j, count in enumerate(row):
            share = 0.75 * count / max(sum(row), 1)
            colour = "59,130,246" if i == j else "239,68,68"
            cells += f'<td style="background:rgba({colour},{share:.2f})">{count:,}</td>'
        lines.append(f"<tr><th>{html.escape(label)}</th>{cells}</tr>")
    corner = "<th>label ↓ prediction →</th>"
    return f'<table class="matrix"><tr>{corner}{head}</tr>{"".join(lines)}</table>'


def confusions(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """The pairs of labels that are confused most often."""
    found = [
        (count, labels[i], labels[j])
        for i, row in enumerate(counts)
        for j, count in enumerate(row)
        if i != j and count
    ]
    found.sort(key=lambda item: -item[0])
    rows = [(label, other, f"{count:,}") for count, label, other in found[:_MOST_CONFUSIONS]]
    return table(["label", "prediction", "examples"], rows)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, at most seven, from below `low` to above `high`."""
    size = 10.0 ** math.floor(math.log10(high - low))
    step = next(s * size for s in (0.2, 0.5, 1, 2) if (high - low) / (s * size) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, last + 1)]


def line_chart(title: str, curves: Mapping[str, Sequence[float | None]], best: int) -> str:
    """Curves over epochs 1, 2 ...; a dotted line at the best one."""
    curves = dict(list(curves.items())[:_CURVES])
    values = [value for curve in curves.values() for value in curve if value is not None]
    if not values:
        return ""
    low, high = min(values), max(values)
    room = 0.04 * (high - low) or 0.1 * abs(high) or 0.1
    ticks = _ticks(low - room, high + room)
    low, high = ticks[0], ticks[-1]
    count = max(map(len, curves.values()))

    def x_of(epoch: float) -> float:
        inside = _WIDTH - _LEFT - 16
        return _LEFT + (0.5 if count == 1 else (epoch - 1) / (count - 1)) * inside

    def y_of(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for value in ticks:
        y = y_of(value)
        parts.append(f'<path class="axis" d="M{_LEFT} {y:.1f}H{_WIDTH - 10}"/>')
        parts.append(f'<text x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for epoch in sorted({1, count, *range(1, count + 1, -(-count // 8))}):
        x, y = x_of(epoch), _HEIGHT - 12
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{epoch}</text>')
    parts.append(f'<path class="best" d="M{x_of(best):.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
    keys = ""
    for number, (name, curve) in enumerate(curves.items()):
        points = [(x_of(i), y_of(v)) for i, v in enumerate(curve, 1) if v is not None]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = f"var(--c{number})"
        parts.append(f'<polyline class="curve" style="stroke:{colour}" points="{line}"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" style="fill:{colour}"/>' for x, y in points
        ]
        keys += f'<i class="key" style="background:{colour}"></i>{html.escape(name)}'
    drawing = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}</svg>'
    caption = f"<figcaption>{html.escape(title)} by epoch{keys}</figcaption>"
    return f"<figure>{caption}{drawing}</figure>"
