"""The contract of an engine that has the words of a group, and finds which nodes score highest.

Terms, document frequencies and scores are computed here, so that they are the same everywhere:
``EngineTextIndex`` analyses texts, weighs the terms of a query, and computes the scores of the
candidates that a table finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .vector_table import TableState, ValueMatch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

    Impacts = npt.NDArray[np.float64]


class WordedNode(NamedTuple):
    """A node whose words are to be searched.

    Attributes:
        id: The node's id.
        order: Its place in document order.
        document_id: Its document.
        metadata: What filters see.
        terms: Its terms, each once: texts, or what else an analyzer returns.
        counts: How often it has each, (terms,) int64.
        length: How many it has, each as often as it occurs.
    """

    id: str
    order: int
    document_id: str
    metadata: Mapping[str, Any]
    terms: Sequence[object]
    counts: Numbers
    length: int


class NodeTerms(NamedTuple):
    """The terms of a node.

    Attributes:
        id: The node.
        order: Its place in document order.
        length: How many terms it has, each as often as it occurs.
        term_ids: The ids of its terms, (terms,), ascending.
        counts: How often it has each, (terms,).
    """

    id: str
    order: int
    length: int
    term_ids: Numbers
    counts: Numbers


class TermFrequency(NamedTuple):
    """A term.

    Attributes:
        id: Its id, from 1; 0 where no node has had it.
        nodes: In how many nodes it is.
    """

    id: int
    nodes: int


class QueryTerm(NamedTuple):
    """A term of a query.

    Attributes:
        id: The term's.
        weight: What an impact is multiplied with: inverse document frequency included.
        occurrences: What it counts in the query, without that: the boost for an engine that
            multiplies with an inverse document frequency of its own.
    """

    id: int
    weight: float
    occurrences: float


class WordCandidates(NamedTuple):
    """Nodes that share a term with a query.

    Attributes:
        nodes: The nodes with their terms.
        lowest: The lowest sum of weight times impact of them, as the engine has it.
        complete: Whether there are no others.
    """

    nodes: Sequence[NodeTerms]
    lowest: float
    complete: bool


@dataclass(frozen=True, slots=True)
class WordTotals:
    """What the nodes of a table have together.

    Attributes:
        nodes: How many there are.
        length: How many terms they have.
        longest: How many the longest has, or had.
        terms: The highest id of a term.
    """

    nodes: int = 0
    length: int = 0
    longest: int = 0
    terms: int = 0


class WordTable(Protocol):
    """The words of one group, analysed in one way, in an engine.

    ``state``, ``updating``, ``clear``, ``close`` and ``values`` are as in ``VectorTable``. What
    reads is called after ``state``, and raises ``StaleSnapshotError`` where another process has
    changed the table since.
    """

    @property
    def max_results(self) -> int:
        """How many candidates can be read at once."""
        ...

    @property
    def score_slack(self) -> float | None:
        """By which factor a sum may exceed the engine's; None where none is known."""
        ...

    def state(self) -> TableState | None:
        """Return what the table contains; None before it is complete for the first time."""
        ...

    def updating(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Keep others from updating the table until the block ends."""
        ...

    def start(self, average: float) -> None:
        """Write a whole group from the start, within ``updating``.

        Args:
            average: About how many terms a node has.
        """
        ...

    def write(
        self, removed: Collection[str], rows: Sequence[WordedNode], state: TableState | None
    ) -> None:
        """Remove nodes by id, then put nodes; see ``VectorTable.write``."""
        ...

    def clear(self) -> None:
        """Remove everything, within ``updating``."""
        ...

    def close(self) -> None:
        """Remove what is of no use to another process; the next use writes it again."""
        ...

    def totals(self) -> WordTotals:
        """Return what the nodes have together."""
        ...

    def written(self) -> object:
        """Return what differs from one update to the next."""
        ...

    def reference_impacts(self, counts: Numbers, lengths: Numbers) -> Impacts:
        """Return what the engine takes counts of a term in nodes of some lengths for."""
        ...

    def frequencies(self, terms: Collection[object]) -> dict[object, TermFrequency]:
        """Return of each term its id, and in how many nodes it is."""
        ...

    def nodes(self, ids: Collection[str]) -> list[NodeTerms]:
        """Return the terms of those nodes that are there."""
        ...

    def search(
        self,
        query: Sequence[QueryTerm],
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
    ) -> WordCandidates:
        """Return the nodes with the highest sums of weight times impact.

        Args:
            query: The terms, each once, at least one.
            limit: How many; None, or more than the engine returns, for all that share a term.
            match: Which count.
            without: Ids of nodes that don't count.

        Raises:
            StoreError: If the engine fails.
        """
        ...

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the values of a field with their numbers; see ``VectorTable.values``."""
        ...
