"""What every index of words offers: in memory, in a file or in an engine."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol

from ..filters import Filter
from ..protocols import Index
from .bm25_scores import Floats, TermWeights

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
