"""The contract of tables: the vectors or the words of a group, searched where an engine has them.

``NodeStore.vector_table`` returns a ``VectorTable`` where the store's engine searches vectors;
``EngineVectors`` and ``EngineWords`` are tables of engines beside the store. ``EngineVectorIndex``
and ``EngineTextIndex`` use them. Terms, document frequencies and scores are computed by the index,
so that they are the same everywhere: a table of words finds candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from .concurrency import context_value
from .errors import TransientStoreError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

    Numbers = npt.NDArray[np.int64]

    Impacts = npt.NDArray[np.float64]


class StaleSnapshotError(TransientStoreError):
    """A table contains a later state of the graph than this thread reads, or is about to.

    Another process has changed the graph meanwhile: read a newer state, and search again.
    """


_engine_disabled: ContextVar[bool] = ContextVar("engine_disabled", default=False)


def engine_disabled() -> AbstractContextManager[bool]:
    """Let searches of this thread compare all vectors themselves where a table is ahead."""
    return context_value(_engine_disabled, True)


def is_engine_disabled() -> bool:
    """Return whether this thread is within ``engine_disabled``."""
    return _engine_disabled.get()


class TableState(NamedTuple):
    """What a table contains.

    Attributes:
        revision: The revision of the group.
        version: What the searched texts depended on beside the nodes.
        size: How many rows there are.
        dimension: How many numbers a vector has; 0 where there is no row yet.
    """

    revision: int
    version: tuple[str, ...]
    size: int
    dimension: int


class VectorRow(NamedTuple):
    """A node as a table has it.

    Attributes:
        id: The node's id.
        order: Its place in document order.
        document_id: Its document.
        metadata: What filters see.
        vector: Its unit vector, (dimension,) float32; zeros where there is no direction.
    """

    id: str
    order: int
    document_id: str
    metadata: Mapping[str, Any]
    vector: Vectors


RowT = TypeVar("RowT", contravariant=True)


class SearchTable(Protocol[RowT]):
    """What tables of vectors and of words have in common.

    Values of metadata have ids, so that a filter means the same in every engine: the index decides
    on each value of a field, and the engine selects rows by ids. What reads sees the same state as
    the store's ``snapshot`` of this thread, or raises ``StaleSnapshotError``.
    """

    def state(self) -> TableState | None:
        """Return what the table contains; None before it is complete for the first time.

        All that this thread reads from then on is in this state.

        Raises:
            StaleSnapshotError: If that is later than the state of the graph that this thread reads,
                for a table that is not in the store.
        """

    def updating(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Keep other processes and threads from updating the table until the block ends.

        Args:
            wait: Whether to wait for one that is updating it; else the block gets False then, and
                must not write.
        """

    def write(
        self, removed: Collection[str], rows: Sequence[RowT], state: TableState | None
    ) -> None:
        """Remove rows by the ids of their nodes, then put rows, all or none, within ``updating``.

        Args:
            removed: Ids, also unknown ones.
            rows: Rows to insert or replace.
            state: What the table contains then, except for the size, which is counted; None
                where more is to come, and readers go on with what they have.
        """

    def clear(self) -> None:
        """Remove everything, within ``updating``: rows of another kind are to come."""

    def close(self) -> None:
        """Remove what is of no use to another process; the next use writes it again."""

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the values that a field has had in any row, with their ids, ascending.

        Args:
            field: A metadata field; None for the id of the document.
            after: The id after which to start.
            texts: Only these values, and those that are no plain texts; None for all.
        """


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """Rows that a filter selects, by the numbers of the values that their fields have.

    Attributes:
        join: Whether all parts must hold, one of them, or the only one must not; ``"values"`` for
            rows with one of the numbers.
        parts: What is joined.
        value_ids: Ids of values of one field.
    """

    join: Literal["and", "or", "not", "values"]
    parts: tuple[ValueMatch, ...] = ()
    value_ids: tuple[int, ...] = ()


class Nearest(NamedTuple):
    """Rows near a query, nearest first.

    Attributes:
        ids: The nodes.
        orders: Their places in document order, (rows,).
        vectors: Their unit vectors, (rows, dimension).
    """

    ids: list[str]
    orders: Numbers
    vectors: Vectors


class VectorTable(SearchTable[VectorRow], Protocol):
    """The vectors of one group and one model in an engine."""

    def dimension(self) -> int:
        """Return how many numbers the vectors of the rows have; 0 where there was no row yet."""

    def ids(self) -> Iterator[str]:
        """Yield the ids of all rows."""

    def build_hnsw(self) -> None:
        """Build what makes searching many vectors quick, where it is missing; may take long."""

    def count(self, match: ValueMatch, most: int) -> int:
        """Return how many rows match, counted up to ``most``."""

    def nearest(
        self,
        query: Vectors,
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
    ) -> Iterator[Nearest]:
        """Yield the rows with the highest product with a query, in batches.

        Args:
            query: A unit vector, (dimension,).
            limit: How many; None for all, in any order.
            match: Which rows count; None for all.
            without: Ids of nodes that don't count.
            exact: Whether all rows are compared; else the nearest may be missing, by little, and
                there may be fewer than there are.
        """


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


class WordTable(SearchTable[WordedNode], Protocol):
    """The words of one group, analysed in one way, in an engine.

    What reads is called after ``state``, and raises ``StaleSnapshotError`` where another process
    has changed the table since.
    """

    @property
    def max_results(self) -> int:
        """How many candidates can be read at once."""

    @property
    def score_slack(self) -> float:
        """By which factor a sum may exceed the engine's."""

    def start(self, average: float) -> None:
        """Write a whole group from the start, within ``updating``.

        Args:
            average: About how many terms a node has.
        """

    def totals(self) -> WordTotals:
        """Return what the nodes have together."""

    def written(self) -> object:
        """Return what differs from one update to the next."""

    def reference_impacts(self, counts: Numbers, lengths: Numbers) -> Impacts:
        """Return what the engine takes counts of a term in nodes of some lengths for."""

    def frequencies(self, terms: Collection[object]) -> dict[object, TermFrequency]:
        """Return of each term its id, and in how many nodes it is."""

    def nodes(self, ids: Collection[str]) -> list[NodeTerms]:
        """Return the terms of those nodes that are there."""

    def search(
        self,
        query: Mapping[int, float],
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
    ) -> WordCandidates:
        """Return the nodes with the highest sums of weight times impact.

        Args:
            query: The weights of terms by id, at least one.
            limit: How many; None, or more than the engine returns, for all that share a term.
            match: Which count.
            without: Ids of nodes that don't count.

        Raises:
            StoreError: If the engine fails.
        """
