"""Analyze texts for an index, in the current process or in additional processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ...nodegraph.concurrency import fork_safe_lock
from ...nodegraph.workers.idle_processors import (
    WORTH_STARTING,
    SharedWork,
    running_workers,
    work_of,
)
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from .postings import AnalyzedTexts

PORTION = 512
"""The number of texts that one process analyzes per step."""

# The maximum work for announced texts, as returned by ``work_of``, which limits the memory.
_MOST_STARTED = 16_000_000


def _terms(analyzer: Analyzer, text: str) -> tuple[list[str], int, list[str]]:
    """Return the terms of a text, its length, and its sequences of characters without spaces."""
    if not isinstance(analyzer, TextAnalyzer):
        terms = [*analyzer(text)]
        return terms, len(terms), []
    runs: list[str] = []
    terms, length = analyzer.indexed(text, runs)
    return terms, length, runs


class SharedAnalysis:
    """Analyzes the texts of an index, in this process and in other processes.

    A ``TextAnalyzer`` shares long work with other processes. Other analyzers run in the current
    process.

    The texts of new nodes can be announced while other nodes are built. Processes that would be
    idle then analyze them before the index is updated.

    Args:
        analyzer: The analyzer.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._work = SharedWork(partial(_analyzed, analyzer))
        self._lock = fork_safe_lock()
        self._announced: list[str] = []  # the texts that no process is analyzing yet
        self._started = 0  # the work that was started for announced texts

    def announce(self, texts: Sequence[str]) -> None:
        """Start to analyze texts that ``results`` will probably get, in the order of the calls.

        Nothing is done if there is not enough work for starting other processes, or if too much
        started work is still unused.
        """
        if type(self._analyzer) is not TextAnalyzer:
            return
        with self._lock:
            self._announced += texts
            if len(self._announced) < PORTION:
                return
            workers = running_workers()
            if workers is None:
                self._announced.clear()
                return
            if not workers.num_running and work_of(self._announced) < WORTH_STARTING:
                return
            while len(self._announced) >= PORTION:
                if self._started > _MOST_STARTED:
                    self._announced.clear()
                    return
                portion = self._announced[:PORTION]
                del self._announced[:PORTION]
                self._work.start(portion)
                self._started += work_of(portion)

    def results(self, portions: Iterable[list[str]], count: int) -> Iterator[AnalyzedTexts]:
        """Analyze texts, and yield their terms in order.

        Args:
            portions: The texts, in portions of ``PORTION`` texts. The last one may be smaller.
            count: The total number of texts.
        """

        def is_worth(texts: list[str]) -> bool:
            work = work_of(texts) * count / len(texts)
            return type(self._analyzer) is TextAnalyzer and work >= WORTH_STARTING

        with self._lock:
            self._announced.clear()
            self._started = 0
        for result in self._work.results(portions, is_worth):
            yield AnalyzedTexts(*result)


def _analyzed(analyzer: Analyzer, texts: list[str]) -> tuple[Any, ...]:
    """Return the fields of ``AnalyzedTexts`` as plain data for transfer between processes."""
    return tuple(AnalyzedTexts.of([_terms(analyzer, text) for text in texts]))
