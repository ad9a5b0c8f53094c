"""Analysis of texts and queries: the terms that a text index stores and looks up."""

from .inversion import MOST_TEXTS, InvertedTexts, invert
from .text_analyzer import Analyzer, TextAnalyzer

__all__ = ["MOST_TEXTS", "Analyzer", "InvertedTexts", "TextAnalyzer", "invert"]
