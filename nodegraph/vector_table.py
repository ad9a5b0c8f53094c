"""The contract of an engine that stores the vectors of a group, and searches them where they are.

``NodeStore.vector_table`` returns one where the store's engine can do so; where the engine is
another one, beside the store, ``EngineVectors`` is one. ``EngineVectorIndex`` uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from .errors import TransientStoreError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

    Numbers = npt.NDArray[np.int64]


class StaleSnapshotError(TransientStoreError):
    """A table contains a later state of the graph than this thread reads, or is about to.

    Another process has changed the graph meanwhile: read a newer state, and search again.
    """


_engine_disabled: ContextVar[bool] = ContextVar("engine_disabled", default=False)


@contextmanager
def engine_disabled() -> Iterator[None]:
    """Let searches of this thread compare all vectors themselves where a table is ahead."""
    token = _engine_disabled.set(True)
    try:
        yield
    finally:
        _engine_disabled.reset(token)


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


class VectorTable(Protocol):
    """The vectors of one group and one model in an engine.

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
        ...

    def updating(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Keep other processes and threads from updating the table until the block ends.

        Args:
            wait: Whether to wait for one that is updating it; else the block gets False then, and
                must not write.
        """
        ...

    def write(
        self, removed: Collection[str], rows: Sequence[VectorRow], state: TableState | None
    ) -> None:
        """Remove rows by the ids of their nodes, then put rows, all or none, within ``updating``.

        Args:
            removed: Ids, also unknown ones.
            rows: Rows to insert or replace.
            state: What the table contains then, except for the size, which is counted; None
                where more is to come, and readers go on with what they have.
        """
        ...

    def dimension(self) -> int:
        """Return how many numbers the vectors of the rows have; 0 where there was no row yet."""
        ...

    def ids(self) -> Iterator[str]:
        """Yield the ids of all rows."""
        ...

    def clear(self) -> None:
        """Remove everything, within ``updating``: vectors of another dimension are to come."""
        ...

    def close(self) -> None:
        """Remove what is of no use to another process; the next use writes it again."""
        ...

    def build_hnsw(self) -> None:
        """Build what makes searching many vectors quick, where it is missing; may take long."""
        ...

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the values that a field has had in any row, with their numbers, ascending.

        Args:
            field: A metadata field; None for the id of the document.
            after: The number after which to begin.
            texts: Only these values, and those that are no plain texts; None for all.
        """
        ...

    def count(self, match: ValueMatch, most: int) -> int:
        """Return how many rows match, counted up to ``most``."""
        ...

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
        ...
