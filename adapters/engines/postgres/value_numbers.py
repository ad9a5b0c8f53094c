"""Numbers of metadata values, which pgvector compares instead of the values."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from ....nodegraph.codec import decode, encode
from ....nodegraph.storage.rows import from_text, marks, portions, to_text
from .graph_database import PostgresDatabase

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_PAGE = 1_000  # values that are read together

_MAX_CACHED = 100_000  # numbers


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
    vector: npt.NDArray[np.float32]


class _Value(NamedTuple):
    """A value of a field, encoded."""

    field: bytes
    value: bytes

    @property
    def hash(self) -> bytes:
        return blake2b(self.value, digest_size=16, key=self.field).digest()


class ValueNumbers:
    """The numbers of the distinct values of each metadata field of a graph.

    Numbers start with 1 and grow. A reader that has read the values up to a number reads only the
    values with higher numbers. Texts and other values of a field are read separately.

    Args:
        database: The database of the graph.
        transaction: Starts a transaction of the graph.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        transaction: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._db = database
        self._transaction = transaction
        self._cache: dict[bytes, int] = {}  # by hash

    def assign(self, rows: Sequence[VectorRow]) -> list[list[int]]:
        """Return the sorted numbers of the values of each row. Store new values.

        Raises:
            TypeError: If a value cannot be stored.
        """
        values: dict[bytes, _Value] = {}
        hashes: list[list[bytes]] = []
        latest: tuple[Mapping[str, Any] | None, list[bytes]] = None, []  # siblings share metadata
        for row in rows:
            if latest[0] is not row.metadata:
                of_row = [_noted(values, field, value) for field, value in row.metadata.items()]
                latest = row.metadata, of_row
            hashes.append([*latest[1], _noted(values, None, row.document_id)])
        numbers = {key: self._cache[key] for key in values if key in self._cache}
        if missing := [key for key in values if key not in numbers]:
            numbers |= self._stored(missing)
        if missing := [key for key in values if key not in numbers]:
            with self._transaction():
                numbers |= self._stored(missing)
                new = {key: values[key] for key in missing if key not in numbers}
                numbers |= self._added(new)
        self._cache = numbers | (self._cache if len(self._cache) < _MAX_CACHED else {})
        return [sorted({numbers[key] for key in of_row}) for of_row in hashes]

    def _stored(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        numbers: dict[bytes, int] = {}
        for batch in portions(hashes):
            query = f"SELECT hash, number FROM metadata_values WHERE hash IN ({marks(batch)})"
            numbers.update(self._db.rows(query, batch))
        return numbers

    def _added(self, values: Mapping[bytes, _Value]) -> dict[bytes, int]:
        ((last,),) = self._db.rows("SELECT coalesce(max(number), 0) FROM metadata_values")
        numbers = {key: number for number, key in enumerate(values, last + 1)}
        self._db.run_many(
            "INSERT INTO metadata_values (number, hash, field, value) VALUES (?, ?, ?, ?)",
            [(numbers[key], key, *value) for key, value in values.items()],
        )
        return numbers

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None
    ) -> Iterator[tuple[int, Any]]:
        """Yield all past and present values of a field, with their numbers, ascending.

        Args:
            field: A metadata field. None: the id of the document.
            after: Lower limit of the numbers, exclusive.
            texts: Texts to include. Values of other types are always included. None: all values.
        """
        others = iter(()) if field is None else self._values(_field(field, False), after)
        if texts is None:
            of_texts = self._values(_field(field, True), after)
        else:
            hashes = {_noted({}, field, text): text for text in texts}
            stored = self._stored(list(hashes))
            of_texts = iter(sorted((n, hashes[key]) for key, n in stored.items() if n > after))
        yield from heapq.merge(of_texts, others, key=lambda entry: entry[0])

    def _values(self, field: bytes, after: int) -> Iterator[tuple[int, Any]]:
        query = (
            "SELECT number, value FROM metadata_values WHERE field = ? AND number > ? "
            f"ORDER BY number LIMIT {_PAGE}"
        )
        page = self._db.rows(query, [field, after])
        while page:
            yield from ((number, decode(from_text(value))) for number, value in page)
            page = self._db.rows(query, [field, page[-1][0]]) if len(page) == _PAGE else []


def _field(name: str | None, is_text: bool) -> bytes:
    """Return the key of the texts or the other values of a field; None for document ids."""
    kind = "document" if name is None else "text" if is_text else "value"
    return blake2b(to_text(f"{kind} {name or ''}"), digest_size=16).digest()


def _noted(values: dict[bytes, _Value], field: str | None, value: Any) -> bytes:
    """Add a value to the values that need a number; return its hash."""
    is_text = field is None or type(value) is str
    encoded = _Value(_field(field, is_text), to_text(encode(value)))
    key = encoded.hash
    values.setdefault(key, encoded)
    return key
