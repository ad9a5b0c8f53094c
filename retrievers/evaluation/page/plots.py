"""Plots of an evaluation as SVG: quality against what it takes, differences with intervals.

They are written here, without a plotting library: points, lines and words need none, and the same
markup is in the page, where its style sheet and its script reach it.
"""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ...validation import choice
from ..intervals import Difference
from ..metrics import Metric
from .page_data import Attributes, EvaluationLike, PageLanguage, Wording, element, markup

PlotCost = Literal["seconds", "tokens"]
"""What quality is plotted against."""

WIDTH, MARGIN, LINE = 460, 46, 20  # in pixels at full size; a line is one of text
INK, PAPER, FAINT, POINT = "#1d2329", "#ffffff", "#c9d0d6", "#0b62b8"


@dataclass(frozen=True, slots=True)
class Axis:
    """Map numbers to places on a plot.

    Args:
        low: The least number.
        high: The greatest.
        start: Where the least is, in pixels.
        end: Where the greatest is.
        logarithmic: Whether equal ratios have equal lengths.
    """

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return where a number is."""
        scale: Callable[[float], float] = math.log if self.logarithmic else float
        low, high = scale(self.low), scale(self.high)
        return self.start + (self.stop - self.start) * (scale(value) - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return round numbers on the axis, 1, 2 or 5 times a power of ten apart, as written."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(powers) < 4 else (1,)
            values = [step * 10.0**power for power in powers for step in steps]
            return [(v, f"{v:,.10g}") for v in values if self.low <= v <= self.high]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * s for s in (1, 2, 5, 10) if power * s >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        last = math.floor(self.high / step + 1e-9)
        return [(n * step, f"{n * step:,.{digits}f}") for n in range(first, last + 1)]


def plot_quality(
    evaluation: EvaluationLike, metric: str, against: PlotCost, language: PageLanguage
) -> str:
    """Return a figure of every set-up, with its interval, over what a question takes."""
    choice(against, "against", get_args(PlotCost))
    wording = Wording(language)
    rows = []
    for setup, figures in evaluation.figures.items():
        figure = figures[metric]
        if figure.value is not None and figure.low is not None and figure.high is not None:
            cost = _cost(evaluation, setup, against)
            rows.append((setup, cost, (figure.value, figure.low, figure.high)))
    title = _words(wording, f"plot_{against}", 0, 16, bold=True, metric=metric)
    if not rows:
        return _drawing(title + _words(wording, "plot_none", 0, 44), 60)
    bottom = 300
    horizontal = _cost_axis([cost for _, cost, _ in rows])
    vertical = _quality_axis(
        [position for _, _, position in rows], evaluation.metrics[metric], bottom
    )
    lines = [title, *_grid(horizontal, vertical, bottom)]
    scale = "_log" if horizontal.logarithmic else ""
    lines.append(_words(wording, f"axis_{against}{scale}", WIDTH / 2, bottom + 40, "middle"))
    numbers = {setup: str(n) for n, setup in enumerate(evaluation.figures, 1)}
    points: list[str] = []
    accepted: list[tuple[float, float]] = []
    for line, (setup, cost, quality) in enumerate(rows):
        x, *across = map(horizontal.position, cost)
        y, *along = map(vertical.position, quality)
        lines += [
            _line(x, along[0], x, along[1], "interval"),
            _line(*(across[0], y, across[1], y), "interval"),
        ]
        while any(abs(x - x1) < 10 and abs(y - y1) < 10 for x1, y1 in accepted):
            x += 17  # beside the one that would hide it; the lines cross where it belongs
        accepted.append((x, y))
        points.append(_point(x, y, numbers[setup], setup))
        below = bottom + 66 + line * LINE
        values = f"{quality[0]:.3f}, {_rounded(cost[0])}"
        unit = "ms" if against == "seconds" else ""
        lines += [
            _point(10, below - 4, numbers[setup], setup),
            _text(_shortened(setup, 34), 26, below),
            _text(f"{values} {unit}".strip(), WIDTH, below, "end"),
        ]
    return _drawing("".join(lines + points), bottom + 58 + LINE * len(rows))


def plot_differences(
    evaluation: EvaluationLike, differences: Sequence[Difference], language: PageLanguage
) -> str:
    """Return differences with their intervals, one below the other, around a line at zero.

    Metrics between 0 and 1 share a scale. Every other has its own.
    """
    wording = Wording(language)
    first = next(iter(evaluation.records))
    title = _words(wording, "plot_differences", 0, 16, bold=True, first=_shortened(first, 30))
    if not differences:
        return _drawing(title + _words(wording, "plot_nothing", 0, 44), 60)
    groups: dict[str, list[Difference]] = {}
    for item in differences:
        groups.setdefault(item.metric, []).append(item)
    bounded = [d for d in differences if evaluation.metrics[d.metric].bounded]
    lines, top = [title], 30.0
    for name, rows in groups.items():
        metric = evaluation.metrics[name]
        axis = _difference_axis(bounded if metric.bounded else rows)
        heading = "to_right" if metric.higher_is_better else "to_right_worse"
        lines += [
            _text(name, 0, top + 16, bold=True),
            _words(wording, heading, WIDTH, top + 16, "end"),
        ]
        bottom = top + 24 + 2.2 * LINE * len(rows)
        for tick, text in axis.ticks():
            x = axis.position(tick)
            lines.append(_line(x, top + 24, x, bottom, "zero" if not tick else "grid"))
            lines.append(_text(text, x, bottom + 14, "middle"))
        for position, row in enumerate(rows):
            lines += _difference(row, axis, top + 24 + 2.2 * LINE * position, wording)
        top = bottom + 26
    return _drawing("".join(lines), top)


def _difference(row: Difference, axis: Axis, top: float, wording: Wording) -> list[str]:
    """Return one difference: a line with its name and numbers, and its interval below."""
    name = _text(_shortened(row.second, 28), 0, top + 14)
    if row.value is None or row.low is None or row.high is None:
        return [name, _words(wording, "no_pairs", WIDTH, top + 14, "end")]
    value, low, high = row.numbers(signed=True)
    y = top + 30
    fill = PAPER if row.better is None else POINT
    circle = _circle(axis.position(row.value), y, 5.0, f"point {row.kind}", fill=fill, stroke=POINT)
    where = (WIDTH, top + 14, "end")
    numbers = _words(wording, "value_interval", *where, value=value, low=low, high=high)
    halo: Attributes = {"class": "halo", "paint-order": "stroke", "stroke": PAPER}
    return [
        element("g", name + numbers, {**halo, "stroke-width": 4.0}),
        _line(axis.position(row.low), y, axis.position(row.high), y, "interval"),
        element("circle", element("title", markup(str(row))), {**circle, "stroke-width": 2.0}),
    ]


def _cost(evaluation: EvaluationLike, setup: str, against: PlotCost) -> tuple[float, float, float]:
    """Return what a question takes, and where the middle half of the questions starts and ends."""
    records = evaluation.records[setup].values()
    costs = evaluation.costs(setup)
    if against == "seconds":
        values, middle = [1000 * r.seconds for r in records], 1000 * costs["median_seconds"]
    else:
        values, middle = [float(r.tokens) for r in records], costs["tokens"]
    if len(values) == 1:
        return middle, middle, middle
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def _cost_axis(costs: Sequence[tuple[float, float, float]]) -> Axis:
    low, high = min(map(min, costs)), max(map(max, costs))
    if low > 0 and high / low > 20:
        return Axis(low / 1.3, high * 1.3, MARGIN + 14, WIDTH - 14, logarithmic=True)
    return Axis(0, high * 1.08 or 1, MARGIN, WIDTH - 14)


def _quality_axis(
    points: Sequence[tuple[float, float, float]], metric: Metric, bottom: float
) -> Axis:
    low, high = min(map(min, points)), max(map(max, points))
    edge = (high - low) * 0.08 or abs(high) * 0.1 or 0.1
    low, high = low - edge, high + edge
    if metric.bounded and high - low < 0.02:
        low, high = low - 0.01, high + 0.01
    return Axis(low, high, bottom, 34)


def _difference_axis(rows: Sequence[Difference]) -> Axis:
    ends = [stop for row in rows for stop in (row.low, row.high) if stop is not None]
    low, high = min(0.0, *ends, 0.0), max(0.0, *ends, 0.0)
    edge = (high - low) * 0.06 or 0.01
    return Axis(low - edge, high + edge, 20, WIDTH - 20)


def _grid(horizontal: Axis, vertical: Axis, bottom: float) -> list[str]:
    lines = []
    for tick, text in vertical.ticks():
        y = vertical.position(tick)
        lines.append(_line(MARGIN, y, WIDTH - 8, y, "grid"))
        lines.append(_text(text, MARGIN - 6, y + 4, "end"))
    for tick, text in horizontal.ticks():
        x = horizontal.position(tick)
        lines.append(_line(x, bottom, x, bottom + 5, "axis"))
        lines.append(_text(text, x, bottom + 19, "middle"))
    return [*lines, _line(MARGIN, bottom, WIDTH - 8, bottom, "axis")]


def _drawing(content: str, height: float) -> str:
    size: Attributes = {"width": WIDTH + 20.0, "height": height + 20}
    attributes: Attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {WIDTH + 20} {height + 20:.0f}",
        **size,
        "role": "img",
        "font-family": "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif",
        "font-size": 13.0,
        "fill": INK,
    }
    paper = element("rect", "", {"class": "paper", **size, "fill": PAPER})
    return element(
        "svg", paper + element("g", content, {"transform": "translate(10 10)"}), attributes
    )


def _circle(x: float, y: float, radius: float, kind: str, **colors: str) -> Attributes:
    return {"class": kind, "cx": x, "cy": y, "r": radius, **colors}


def _point(x: float, y: float, index: str, name: str) -> str:
    figure: Attributes = {"class": "number", "x": x, "y": y + 4, "fill": PAPER, "font-size": 11.0}
    text = element("text", index, {**figure, "text-anchor": "middle", "font-weight": "bold"})
    circle = element("circle", "", _circle(x, y, 9.0, "point", fill=POINT))
    return element("g", element("title", markup(name)) + circle + text)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    color = {"grid": FAINT, "interval": POINT}.get(kind, INK)
    ends: Attributes = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    width = 2.0 if kind == "interval" else 1.0
    return element("line", "", {"class": kind, **ends, "stroke": color, "stroke-width": width})


def _text(text: str, x: float, y: float, anchor: str = "start", bold: bool = False) -> str:
    return element("text", markup(text), _placed(x, y, anchor, bold))


def _words(
    wording: Wording,
    key: str,
    x: float,
    y: float,
    anchor: str = "start",
    bold: bool = False,
    **values: str,
) -> str:
    attributes = {**_placed(x, y, anchor, bold), **wording.attributes(key, **values)}
    return element("text", markup(wording.text(key, **values)), attributes)


def _placed(x: float, y: float, anchor: str, bold: bool) -> Attributes:
    ends = {} if anchor == "start" else {"text-anchor": anchor}
    weight = {"font-weight": "bold"} if bold else {}
    return {"x": x, "y": y, **ends, **weight}


def _rounded(value: float) -> str:
    return f"{value:.2g}" if value < 1 else f"{value:,.{1 if value < 100 else 0}f}"


def _shortened(text: str, limit: int) -> str:
    """Return a text in so many columns at most. Wide characters take two."""
    columns, line = 0, " ".join(text.split())
    for position, letter in enumerate(line):
        columns += 1 + (unicodedata.east_asian_width(letter) in "WF")
        if columns > limit:
            return line[: position - 1] + "…"
    return line
