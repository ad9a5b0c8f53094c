"""Draw the figures of an evaluation and their intervals with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .intervals import Figure

_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei")


def save_figure(path: str | Path, figures: Mapping[str, Mapping[str, Figure]]) -> None:
    """Draw a panel for each metric, with a point and an interval for each system.

    Args:
        path: The file, ``.png`` or ``.svg``.
        figures: The figures by system and metric.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the file has another suffix.
    """
    path = check_path(path)
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
        from matplotlib.font_manager import fontManager
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "nodekin[eval]"') from error
    setups = list(figures)
    metrics = list(figures[setups[0]])
    fonts = {font.name for font in fontManager.ttflist}.intersection(_FONTS)
    with rc_context({"font.family": sorted(fonts, key=_FONTS.index), "text.parse_math": False}):
        height = (0.3 * len(setups) + 0.8) * len(metrics)  # inches
        canvas = Canvas(figsize=(7.5, height), layout="constrained")
        panels = canvas.subplots(len(metrics), squeeze=False)[:, 0]
        for metric, panel in zip(metrics, panels, strict=True):
            labels = []
            for row, setup in enumerate(setups):
                figure = figures[setup][metric]
                labels.append(setup if figure.judged else f"{setup} (not judged)")
                if figure.value is not None:
                    panel.hlines(row, figure.low, figure.high, linewidth=2)
                    panel.plot(figure.value, row, "o", color="C0")
            panel.set_yticks(range(len(labels)), labels)
            panel.set_ylim(len(labels) - 0.5, -0.5)
            panel.set_title(metric, loc="left", fontsize=10)
            panel.grid(axis="x", alpha=0.3)
        canvas.savefig(path, dpi=150)


def check_path(path: str | Path) -> Path:
    """Return the path of a figure, or raise a ValueError if the suffix is unsupported."""
    if Path(path).suffix not in (".png", ".svg"):
        raise ValueError(f"a figure must be a file .png or .svg, got {str(path)!r}")
    return Path(path)
