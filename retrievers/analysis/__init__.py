"""Analysis of texts and queries: the terms that a text index stores and looks up."""

from .text_analyzer import Analyzer, TextAnalyzer

__all__ = ["Analyzer", "TextAnalyzer"]
