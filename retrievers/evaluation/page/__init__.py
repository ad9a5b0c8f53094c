"""An evaluation as a page for a browser, and as plots."""

from .page import make_page
from .plots import PlotCost, plot_differences, plot_quality
from .wording import PageLanguage, stylesheet

__all__ = [
    "PageLanguage",
    "PlotCost",
    "make_page",
    "plot_differences",
    "plot_quality",
    "stylesheet",
]
