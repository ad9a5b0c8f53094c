"""The protocol of vector tables: the vectors of a group, stored and searched by the graph's store.

``TableVectorIndex`` computes the scores, so that they are equal for all stores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

    Numbers = npt.NDArray[np.int64]


class TableState(NamedTuple):
    """The content of a table.

    Attributes:
        revision: The revision of the group.
        version: The search version of the group: see ``GraphReader.search_version``.
        size: Number of rows.
        dimension: Length of the vectors; 0 if no row has been written.
    """

    revision: int
    version: tuple[str, ...]
    size: int
    dimension: int


class VectorRow(NamedTuple):
    """A row of a table: a node with its vector.

    Attributes:
        id: The node's id.
        order: The node's position in document order.
        document_id: The node's document.
        metadata: The metadata that filters compare.
        vector: The unit vector, (dimension,) float32; zeros if the embedding has no direction.
    """

    id: str
    order: int
    document_id: str
    metadata: Mapping[str, Any]
    vector: Vectors


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """The rows that a filter selects, by the numbers of their metadata values.

    Attributes:
        join: ``"and"``, ``"or"`` and ``"not"`` combine the parts; ``"values"`` selects rows that
            have one of the numbers.
        parts: The parts to combine.
        value_ids: Numbers of values of one field.
    """

    join: Literal["and", "or", "not", "values"]
    parts: tuple[ValueMatch, ...] = ()
    value_ids: tuple[int, ...] = ()


class Nearest(NamedTuple):
    """Rows near a query, nearest first.

    Attributes:
        ids: The nodes.
        orders: Their positions in document order, (rows,).
        vectors: Their unit vectors, (rows, dimension).
    """

    ids: list[str]
    orders: Numbers
    vectors: Vectors


class VectorTable(Protocol):
    """The vectors of one group and one model.

    Metadata values have numbers. The index evaluates a condition on the values of a field, and the
    table selects rows by the numbers. Reads see the snapshot of the store's turn.
    """

    def state(self) -> TableState | None:
        """Return the content of the table; None until it is complete for the first time."""

    def dimension(self) -> int:
        """Return the length of the vectors; 0 if no row has been written."""

    def ids(self) -> list[str]:
        """Return the ids of all rows."""

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield all past and present values of a field, with their numbers, ascending.

        Args:
            field: A metadata field. None: the id of the document.
            after: Lower limit of the numbers, exclusive.
            texts: Texts to include; values of other types are always included. None: all values.
        """

    def updating(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Lock the table against updates by other processes and threads until the block ends.

        Args:
            wait: Whether to wait for the lock. If False and the lock is taken, the block gets
                False and must not write.
        """

    def write(
        self, removed: Collection[str], rows: Sequence[VectorRow], state: TableState | None
    ) -> None:
        """Remove rows, then insert or replace rows, all or none, inside ``updating``.

        Args:
            removed: Ids; unknown ids are ignored.
            rows: Rows to insert or replace.
            state: The new content, except for the size, which is counted; None if more rows
                follow.
        """

    def clear(self) -> None:
        """Remove all rows inside ``updating``, before rows of another dimension are written."""

    def build_hnsw(self) -> None:
        """Build the HNSW graph of a large table if it is missing; may take minutes."""

    def count(self, match: ValueMatch, most: int) -> int:
        """Return the number of matching rows, counted up to ``most``."""

    def nearest(
        self,
        query: Vectors,
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
    ) -> Iterator[Nearest]:
        """Yield the rows with the highest dot product with a query, in batches.

        Args:
            query: A unit vector, (dimension,).
            limit: Maximum number of rows. None: all rows, in any order.
            match: The rows to search. None: all rows.
            without: Ids of rows to leave out.
            exact: Whether to compare all rows. If False, a few of the nearest may be missing.
        """
