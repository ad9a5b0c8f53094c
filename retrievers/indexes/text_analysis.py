"""Analyze texts for an index, in the current process or in additional processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from ...nodegraph.workers.idle_processors import WORTH_STARTING, shared_map, work_of
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from .postings import AnalyzedTexts


def _terms(analyzer: Analyzer, text: str) -> tuple[list[str], int, list[str]]:
    """Return the terms of a text, its length, and its sequences of characters without spaces."""
    if not isinstance(analyzer, TextAnalyzer):
        terms = [*analyzer(text)]
        return terms, len(terms), []
    runs: list[str] = []
    terms, length = analyzer.indexed(text, runs)
    return terms, length, runs


def analyzed_on_all_processors(
    analyzer: Analyzer, portions: Iterable[list[str]], count: int
) -> Iterator[AnalyzedTexts]:
    """Analyze texts in portions, and yield their terms in order.

    A ``TextAnalyzer`` shares long work with additional processes. Other analyzers run in the
    current process.

    Args:
        analyzer: The analyzer.
        portions: The texts, in portions of equal size.
        count: The total number of texts.
    """

    def is_worth(texts: list[str]) -> bool:
        work = work_of(texts) * count / len(texts)
        return type(analyzer) is TextAnalyzer and work >= WORTH_STARTING

    function = partial(_analyzed, analyzer)
    for result in shared_map(function, portions, is_worth):
        yield AnalyzedTexts(*result)


def _analyzed(analyzer: Analyzer, texts: list[str]) -> tuple[Any, ...]:
    """Return the fields of ``AnalyzedTexts`` as plain data for transfer between processes."""
    return tuple(AnalyzedTexts.of([_terms(analyzer, text) for text in texts]))
