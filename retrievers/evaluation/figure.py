"""Draw an evaluation with matplotlib: figures with their intervals, differences to the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .intervals import Difference, Figure
from .metrics import Metric

_SUFFIXES = (".png", ".svg")

_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei")

_ROW = 0.3  # inches

_COLORS = ("#0b62b8", "#8a4500", "#0f6b35", "#a32a17", "#6a3d9a", "#56616b")


def save_figure(
    path: str | Path,
    metrics: Mapping[str, Metric],
    figures: Mapping[str, Mapping[str, Figure]],
    differences: Sequence[Difference],
) -> None:
    """Draw a panel for each metric, and panels for the differences. See ``Evaluation``.

    Args:
        path: The file.
        metrics: The metrics, by name.
        figures: The figures, by set-up and metric.
        differences: The differences to the first set-up.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the name of the file has another suffix than .png and .svg.
    """
    path = check_path(path)
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
        from matplotlib.font_manager import fontManager
    except ImportError as error:
        raise ImportError(
            'figures are drawn by matplotlib, install it: pip install "nodekin[eval]"'
        ) from error
    names = list(figures)
    known = [d for d in differences if d.value is not None]
    parts = [[d for d in known if metrics[d.metric].bounded is kind] for kind in (True, False)]
    parts = [part for part in parts if part]
    sizes = [len(names)] * len(metrics) + [len(part) for part in parts]
    height = sum(_ROW * size + 0.8 for size in sizes)
    installed = {font.name for font in fontManager.ttflist}
    settings: dict[str, Any] = {
        "font.family": [font for font in _FONTS if font in installed],
        "svg.fonttype": "none",
        "text.parse_math": False,
    }
    with rc_context(settings):
        canvas = Canvas(figsize=(7.5, height), layout="constrained")
        ratios = {"height_ratios": [size + 2 for size in sizes]}
        panels = canvas.subplots(len(sizes), squeeze=False, gridspec_kw=ratios)[:, 0]
        for metric, panel in zip(metrics, panels, strict=False):
            _draw_metric(panel, metric, {name: figures[name][metric] for name in names})
        for part, panel in zip(parts, panels[len(metrics) :], strict=True):
            _draw_differences(panel, names, part)
        canvas.savefig(path, dpi=150)


def check_path(path: str | Path) -> Path:
    """Return the path of a figure.

    Raises:
        ValueError: If the name has another suffix than .png and .svg.
    """
    if Path(path).suffix not in _SUFFIXES:
        raise ValueError(f"a figure is a file {' or '.join(_SUFFIXES)}, got {str(path)!r}")
    return Path(path)


def _draw_metric(panel: Any, metric: str, figures: dict[str, Figure]) -> None:
    """Draw the figures of all set-ups for a metric."""
    rows = [(f.value, f.low, f.high) for f in figures.values()]
    labels = [name if f.judged else f"{name} (not judged)" for name, f in figures.items()]
    _draw(panel, metric, labels, rows, [_COLORS[n % len(_COLORS)] for n in range(len(rows))])


def _draw_differences(panel: Any, names: Sequence[str], differences: Sequence[Difference]) -> None:
    """Draw the differences to the first set-up. A hollow point means: no difference shown."""
    labels = [f"{d.second}, {d.metric}" for d in differences]
    rows = [(d.value, d.low, d.high) for d in differences]
    colors = [_COLORS[names.index(d.second) % len(_COLORS)] for d in differences]
    hollow = [d.better is None for d in differences]
    _draw(panel, f"difference to {names[0]} (hollow: none shown)", labels, rows, colors, hollow)
    panel.axvline(0, color="gray", linewidth=0.8)


def _draw(
    panel: Any,
    title: str,
    labels: Sequence[str],
    rows: Sequence[tuple[float | None, float | None, float | None]],
    colors: Sequence[str],
    hollow: Sequence[bool] = (),
) -> None:
    """Draw a point and an interval for each row."""
    for at, (value, low, high) in enumerate(rows):
        if value is not None:
            face = "white" if hollow and hollow[at] else colors[at]
            panel.hlines(at, low, high, color=colors[at], linewidth=2)
            panel.plot(value, at, "o", color=colors[at], markerfacecolor=face)
    panel.set_yticks(range(len(labels)), labels)
    panel.set_ylim(len(labels) - 0.5, -0.5)
    panel.set_title(title, loc="left", fontsize=10)
    panel.grid(axis="x", alpha=0.3)
