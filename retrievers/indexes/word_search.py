"""What every index of words offers: in memory, in a file or in an engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...nodegraph.graph import NodeGraph
from ..analysis.text_analyzer import Analyzer
from ..filters import Filter
from ..protocols import Index
from .bm25_scores import Floats, TermWeights

if TYPE_CHECKING:
    from .text_index import TextIndex


Meets = Callable[[str], bool]
"""Says of a passage, by its id, whether it meets conditions."""


class TermStatistics(Protocol):
    """What a query is weighed by, for one state of a group."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        ...

    @property
    def total_length(self) -> int:
        """How many terms all nodes have together."""
        ...

    @property
    def frequency(self) -> Callable[[str], int]:
        """Returns in how many nodes a term is."""
        ...

    def mean_inverse_frequency(self) -> float:
        """Return the average over all terms of Okapi's inverse document frequency.

        Raises:
            TypeError: If no process has the frequencies of all terms.
        """
        ...


class Passages(Protocol):
    """What is looked up of nodes for one query, while the graph is held."""

    def known(self, ids: Iterable[str]) -> Container[str]:
        """Return which of some nodes are in the group; what it has of others is open."""
        ...

    def meeting(self, filter: Filter) -> Meets | None:
        """Return what says whether a known node meets a filter; None where all do."""
        ...

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        """Return what each term of a query adds to the BM25 score of known nodes.

        Args:
            ids: The nodes.
            query: From ``Bm25.prepare``, for their index.

        Returns:
            An array (nodes, terms); the sums of its rows are the scores.
        """
        ...


class WordSearch(Index[TermWeights], Protocol):
    """An index of the words of a group."""

    @property
    def size(self) -> int:
        """How many nodes there are; in an engine, when a query was weighed last."""
        ...

    def ready(self) -> None:
        """Do what may take long, before the graph is held."""
        ...

    def statistics(self, query: str) -> TermStatistics:
        """Return what a query is weighed by, in the state that this thread reads."""
        ...

    def passages(self) -> Passages:
        """Return what looks nodes up for one query."""
        ...


logger = logging.getLogger(__name__)


def open_words(graph: NodeGraph, group: str, analyzer: Analyzer) -> WordSearch:
    """Return the index of a group's words, shared by all who analyse texts alike.

    Where the graph has an engine that searches words, it is there.

    Raises:
        TransientStoreError: If there is an engine, and it can't be reached.
    """
    if graph.reader.word_table(group) is None:
        return open_postings(graph, group, analyzer)
    from .engine_text_index import EngineTextIndex

    name = ("words in an engine", group, _identity(analyzer))
    return graph.reader.shared(name, lambda: EngineTextIndex(graph, group, analyzer))


def open_postings(graph: NodeGraph, group: str, analyzer: Analyzer, reason: str = "") -> TextIndex:
    """Return the index of a group's words that this process has, with all postings.

    Args:
        graph: The node graph.
        group: The group.
        analyzer: Turns texts into terms.
        reason: Why, for the log, where an engine searches words.
    """
    from .text_index import TextIndex

    def make() -> TextIndex:
        if reason:
            warn_of_memory(graph, group, f"the words of group {group!r} are indexed", reason)
        return TextIndex(graph, group, analyzer)

    return graph.reader.shared(("words", group, _identity(analyzer)), make)


def warn_of_memory(graph: NodeGraph, group: str, what: str, reason: str) -> None:
    """Log what each process holds although the graph has an engine that searches words."""
    if graph.reader.word_table(group) is not None:
        logger.warning("%s in this process, and not in the engine: %s", what, reason)


def _identity(analyzer: Analyzer) -> object:
    return analyzer if isinstance(analyzer, Hashable) else id(analyzer)  # which the index holds
