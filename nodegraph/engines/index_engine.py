"""The contract of an engine that is beside the store: it stores vectors, and searches them.

The store has the graph, and says up to which revision a collection of the engine has it
(``EngineTable``). So an engine does no more than what is here: it knows no graph, no revision
and no condition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import StoreError, TransientStoreError
from ..vector_table import Nearest, ValueMatch

if TYPE_CHECKING:
    from ..vector_table import Vectors


class EngineUnavailableError(TransientStoreError):
    """An engine can't be reached, or didn't answer in time."""


class MissingCollectionError(StoreError):
    """An engine has no such collection; it is made again from the store."""


class EngineRow(NamedTuple):
    """A node as an engine has it.

    Attributes:
        key: Tells it from all others: 32 hexadecimal digits, a hash of the node's id.
        id: The node's id in ASCII, as the engine has to return it.
        order: Its place in document order.
        tags: The numbers of the values of its metadata, ascending.
        vector: Its unit vector, (dimension,) float32; zeros where there is no direction.
    """

    key: str
    id: str
    order: int
    tags: Sequence[int]
    vector: Vectors


class IndexEngine(Protocol):
    """Collections of vectors, each of one dimension, by name.

    What can't be done raises ``StoreError`` that names the engine and says what to do:
    ``EngineUnavailableError`` where trying again may help (it is tried again for some seconds),
    ``MissingCollectionError`` for a collection that is gone. Everything may be repeated: rows are
    known by their keys.

    A write returns a position, a number that grows with the writes of a collection; a search
    that is given it sees them. Where all searches see all writes that have returned, it is 0.

    An engine is called by many threads, can be pickled, connects when it is first used, and
    again after ``close``.
    """

    @property
    def shown(self) -> str:
        """What messages call it, with its address, without a password."""
        ...

    @property
    def most(self) -> int:
        """How many rows a search returns at most; where more are wanted all are read."""
        ...

    @property
    def linked_from(self) -> int | None:
        """From how many rows on a collection is better made with ``linked``; None for never."""
        ...

    def create(self, collection: str, dimension: int, *, linked: bool) -> None:
        """Make a collection where there is none.

        Args:
            collection: A name of small letters, digits and underscores, that begins with a letter.
            dimension: How many numbers its vectors have.
            linked: Whether a graph of the vectors (HNSW) is to find the nearest, which may miss
                some, or all are compared.
        """
        ...

    def drop(self, collection: str) -> None:
        """Remove a collection; one that doesn't exist is no error."""
        ...

    def mark(self, collection: str) -> str | None:
        """Return what ``set_mark`` has stored last; None without it, or without the collection."""
        ...

    def set_mark(self, collection: str, mark: str) -> int:
        """Store a short ASCII text with a collection; return the position after it."""
        ...

    def put(self, collection: str, rows: Sequence[EngineRow]) -> None:
        """Insert or replace rows by their keys, some thousand at most."""
        ...

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        """Delete rows by their keys, some thousand at most; unknown ones are no error."""
        ...

    def count(self, collection: str, match: ValueMatch | None, position: int) -> int:
        """Return how many rows match; None for all."""
        ...

    def nearest(
        self,
        collection: str,
        query: Vectors,
        limit: int,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
        position: int,
    ) -> Nearest:
        """Return the rows with the highest product with a query, best first.

        Args:
            collection: The collection.
            query: A unit vector, (dimension,).
            limit: How many, ``most`` at most.
            match: Which rows count: a row has the number of a match if it is among its tags.
            without: Keys of rows that don't count.
            exact: Whether none may be missing, as far as the engine can see to it.
            position: Which writes must be seen.

        Returns:
            Their ids as they were put, their orders and vectors.
        """
        ...

    def rows(
        self, collection: str, match: ValueMatch | None, position: int
    ) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows that match, in portions, in any order, each once."""
        ...

    def close(self) -> None:
        """Close connections; the next use opens them again."""
        ...
