"""Numbers of metadata values, which pgvector compares instead of the values.

``ValueMatcher`` translates filters into these numbers.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ....nodegraph.storage.columns import decode, encode, from_text, marks, portions, to_text
from ....retrievers.conditions import MISSING, Condition, read_date
from ....retrievers.filters import Filter
from .graph_database import PostgresDatabase

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

logger = logging.getLogger(__name__)

_MAX_CONDITIONS = 256  # cached decisions

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


class ValueNumbers:
    """The numbers of the distinct values of each metadata field of a graph.

    Numbers start with 1 and grow. A reader that has read the values up to a number reads only the
    values with higher numbers. Texts and other values of a field are read separately.

    Args:
        database: The database of the graph.
        transaction: Starts a transaction of the graph.
    """

    def __init__(
        self, database: PostgresDatabase, transaction: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._db = database
        self._transaction = transaction
        self._cache: dict[bytes, int] = {}  # by hash

    def assign(self, rows: Sequence[VectorRow]) -> list[list[int]]:
        """Return the sorted numbers of the values of each row. Store new values.

        Raises:
            TypeError: If a value cannot be stored.
        """
        values: dict[bytes, tuple[bytes, bytes]] = {}
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

    def _added(self, values: Mapping[bytes, tuple[bytes, bytes]]) -> dict[bytes, int]:
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


def _noted(values: dict[bytes, tuple[bytes, bytes]], field: str | None, value: Any) -> bytes:
    """Add the key and the encoded form of a value to ``values``; return its hash."""
    encoded_field = _field(field, field is None or type(value) is str)
    encoded = to_text(encode(value))
    key = blake2b(encoded, digest_size=16, key=encoded_field).digest()
    values.setdefault(key, (encoded_field, encoded))
    return key


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


Values = Callable[[str | None, int, Collection[str] | None], Iterator[tuple[int, Any]]]
"""A function that yields the values of a field with numbers; see ``ValueNumbers.values``."""


class ValueMatcher:
    """An evaluator of conditions on the distinct values of a field, equal for all stores.

    Each value is evaluated once per condition; new values have higher numbers. A condition that
    compares texts only reads those texts and values that are not texts.

    Args:
        values: A function that yields numbered values.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        # The last number, and the values up to it that meet the condition. If a missing value meets
        # the condition: the values that fail.
        self._decisions: OrderedDict[Hashable, tuple[int, tuple[int, ...]]] = OrderedDict()
        self._lock = threading.Lock()
        self._warned: set[str] = set()

    def match(self, filter: Filter) -> ValueMatch | None:
        """Return the rows that a filter selects; None if it has no condition."""
        if filter.condition is not None:
            field = filter.field if filter.join == "field" else None
            return self._match(field, filter.condition)
        parts = tuple(match for part in filter.parts if (match := self.match(part)) is not None)
        if not parts:
            return None
        join: Literal["and", "or", "not"] = "and"
        if filter.join == "or" or filter.join == "not":
            join = filter.join
        return ValueMatch(join, parts)

    def _match(self, field: str | None, condition: Condition) -> ValueMatch:
        meets_missing = condition(MISSING)
        key = field, condition.key
        with self._lock:
            before, numbers = self._decisions.get(key, (0, ()))
        texts = _texts(condition)
        last, new = before, []
        for number, value in self._values(field, last, texts):
            last = number
            if condition(value) != meets_missing:
                new.append(number)
        if last != before:
            numbers = (*numbers, *new)
            with self._lock:
                self._decisions[key] = last, numbers
                self._decisions.move_to_end(key)
                if len(self._decisions) > _MAX_CONDITIONS:
                    self._decisions.popitem(last=False)
        if not last and texts is None and condition.compares and field is not None:
            self._warn(field)
        match = ValueMatch("values", value_ids=numbers)
        return ValueMatch("not", (match,)) if meets_missing else match

    def _warn(self, field: str) -> None:
        """Log once that no node has a field: it may be misspelled."""
        if field not in self._warned:
            self._warned.add(field)
            logger.warning(
                "no node has the metadata field %r, which a filter compares; check its spelling",
                field,
            )


def _texts(condition: Condition) -> list[str] | None:
    """Return the texts that can meet a condition. None: further values can meet it."""
    if condition.operator != "in":
        return None
    values = condition.operand
    is_plain = all(type(value) is str and read_date(value) is None for value in values)
    return list(values) if is_plain else None
