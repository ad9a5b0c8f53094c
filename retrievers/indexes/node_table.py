"""The nodes of one group as rows of a table: ids, order, parents and metadata."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...nodegraph.errors import MissingNodeError, nearest_names
from ...nodegraph.node import Node
from ...nodegraph.storage.columns import decode, encode
from ..conditions import MISSING, Condition, identity
from ..filters import Filter, field_value
from .array_files import Arrays, checked, grown, pack_texts, unpack_texts

logger = logging.getLogger(__name__)

T = TypeVar("T")

Mask = npt.NDArray[np.bool_]

Orders = npt.NDArray[np.int64]

Rows = npt.NDArray[np.int64]

_MAX_CACHED = 32  # cached conditions per field

_MAX_KEPT = 64  # filters whose rows are kept

_MAX_BYTES = 32_000_000  # of all kept rows

_FEW = 1 / 50  # share of rows that are scored one by one


class Runs(Generic[T]):
    """A column whose neighboring rows often have the same value, which is stored once.

    Attributes:
        codes: The number of the value, by row. There is room for more rows.
        values: The values, by number.
    """

    def __init__(self) -> None:
        self.codes: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.values: list[T] = []

    def extend(
        self, first: int, values: Iterable[T], key: Callable[[T], Any] | None = None
    ) -> None:
        """Append the values of rows.

        Args:
            first: The number of the first row.
            values: The values.
            key: A function from a value to its compared form. If None, values are
                compared.
        """
        identity_of = key or _itself
        is_first = True
        sizes: list[int] = []
        number = len(self.values)
        for same, rows in groupby(values, identity_of):
            run = [*rows]
            continues = is_first and bool(self.values) and identity_of(self.values[-1]) == same
            if continues:
                number -= 1
            else:
                self.values.append(run[0])
            is_first = False
            sizes.append(len(run))
        numbers = np.arange(number, len(self.values), dtype=np.int32)
        codes = numbers.repeat(sizes)
        self.codes = grown(self.codes, first + len(codes))
        self.codes[first : first + len(codes)] = codes

    def take(self, rows: Rows) -> list[T]:
        """Return the values of rows."""
        values = self.values
        return [values[code] for code in self.codes[rows].tolist()]

    def run_lengths(self, rows: Rows, size: int) -> list[int]:
        """Return the lengths of the runs with some rows.

        Args:
            rows: The rows.
            size: The number of rows of the column.
        """
        codes = self.codes[:size]
        first = np.searchsorted(codes, codes[rows], side="left")
        after = np.searchsorted(codes, codes[rows], side="right")
        lengths: list[int] = (after - first).tolist()
        return lengths

    def arrays(self, name: str, size: int, write: Callable[[T], str]) -> Arrays:
        """Return arrays for a file.

        Raises:
            TypeError: If a value cannot be stored.
        """
        texts = [write(value) for value in self.values]
        return {**pack_texts(name, texts), f"{name}_codes": self.codes[:size]}

    @classmethod
    def from_arrays(cls, arrays: Arrays, name: str, size: int, read: Callable[[str], T]) -> Runs[T]:
        """Restore a column of a number of rows from ``arrays``.

        Raises:
            ValueError: If the arrays are forged.
        """
        runs = cls()
        runs.values = [read(text) for text in unpack_texts(name, arrays)]
        numbers = range(len(runs.values))
        runs.codes = checked(arrays, f"{name}_codes", np.int32, size, values=numbers)
        return runs


class FieldValues:
    """The distinct values of a metadata field.

    A condition is evaluated once per distinct value, and the answers are cached.

    Attributes:
        codes: The number of the value, by run of rows.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.codes: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._numbers: dict[Hashable, int] = {}
        self._decided: dict[Hashable, Mask] = {}

    def extend(self, values: Iterable[Any]) -> None:
        """Append values; ``MISSING`` for nodes without the field."""
        codes = []
        for value in values:
            kind = type(value)
            is_plain = kind is str or kind is int or value is MISSING
            key = (kind, value) if is_plain else identity(value)
            codes.append(self._numbers.setdefault(key, len(self.values)))
            if codes[-1] == len(self.values):
                self.values.append(value)
        self.codes = np.append(self.codes, np.array(codes, np.int32))

    @property
    def are_missing(self) -> bool:
        """Whether no node has the field."""
        return len(self.values) == 1 and self.values[0] is MISSING

    def meets(self, condition: Condition) -> Mask:
        """Return which runs meet a condition."""
        good = self._decided.get(condition.key, np.zeros(0, np.bool_))
        if len(good) < len(self.values):
            new = [condition(value) for value in self.values[len(good) :]]
            good = np.append(good, np.array(new, np.bool_))
            if len(self._decided) >= _MAX_CACHED:
                self._decided = {}
            self._decided[condition.key] = good
        return good[self.codes]


class MatchingRows(NamedTuple):
    """The rows of a table that meet a filter. Empty rows may be among them.

    Attributes:
        mask: Which rows meet the filter.
        rows: The rows, ascending, if they are few. If None, many rows meet the filter.
    """

    mask: Mask
    rows: Rows | None

    @classmethod
    def of(cls, mask: Mask) -> MatchingRows:
        """Return the rows of a mask."""
        is_few = np.count_nonzero(mask) <= _FEW * len(mask)
        return cls(mask, np.flatnonzero(mask) if is_few else None)

    @property
    def size(self) -> int:
        """The memory in bytes."""
        return self.mask.nbytes + (0 if self.rows is None else self.rows.nbytes)


class KeptMatches:
    """The matching rows of the latest filters, for one number of rows."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, MatchingRows] = {}
        self._bytes = 0

    def get(self, key: Hashable, size: int) -> MatchingRows | None:
        """Return the matching rows of a filter among a number of rows, if they are kept."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        if len(kept.mask) != size:
            self._bytes -= kept.size
            return None
        self._kept[key] = kept  # now the latest
        return kept

    def put(self, key: Hashable, matching: MatchingRows) -> None:
        """Keep the matching rows of a filter, and drop those that were not used for longest."""
        self._kept[key] = matching
        self._bytes += matching.size
        while len(self._kept) > _MAX_KEPT or self._bytes > _MAX_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= self._kept.pop(oldest).size


class TableSnapshot(NamedTuple):
    """The rows of a table in one revision. Later changes of the table do not change them.

    Attributes:
        ids: The ids by row. There may be more rows.
        orders: The positions in document order, by row.
        matching: The rows that meet the filter; None for all.
        parents: The ids of the parents.
        rows: The row of each node. Later nodes have other rows.
    """

    ids: Sequence[str]
    orders: Orders
    matching: MatchingRows | None
    parents: Runs[str | None]
    rows: Mapping[str, int]

    def ids_of(self, rows: Rows) -> list[str]:
        """Return the ids of nodes by row."""
        ids = self.ids
        return [ids[row] for row in rows.tolist()]

    def rows_of(self, ids: Iterable[str]) -> Rows:
        """Return the rows of nodes.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        rows = np.array([self.rows.get(node_id, -1) for node_id in ids], np.int64)
        if rows.min(initial=0) < 0 or rows.max(initial=-1) >= len(self.orders):
            raise MissingNodeError("a node was removed or changed")
        return rows

    def parents_of(self, ids: Iterable[str]) -> list[str | None]:
        """Return the parents of nodes.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        return self.parents.take(self.rows_of(ids))

    def count_siblings(self, ids: Iterable[str]) -> list[int]:
        """Return how many nodes have the parent of each node, including itself.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        return self.parents.run_lengths(self.rows_of(ids), len(self.orders))


class NodeTable:
    """Rows of nodes. A removed node leaves an empty row until the table is compacted.

    Attributes:
        ids: The ids by row, including empty rows.
        rows: The row of each node, by id.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.rows: dict[str, int] = {}
        self._alive: Mask = np.zeros(0, np.bool_)
        self._orders: Orders = np.zeros(0, np.int64)
        self._parents = Runs[str | None]()
        self._documents = Runs[str]()
        self._metadata = Runs[Mapping[str, Any] | str]()  # texts of a file are decoded on first use
        self._fields: dict[str | None, FieldValues] = {}
        self._kept = KeptMatches()

    def __len__(self) -> int:
        return len(self.ids)

    def ids_of(self, rows: Rows) -> list[str]:
        """Return the ids of nodes by row."""
        ids = self.ids
        return [ids[row] for row in rows.tolist()]

    @property
    def alive(self) -> Mask:
        """Whether a row has a node, by row."""
        return self._alive[: len(self.ids)]

    @property
    def orders(self) -> Orders:
        """The positions in document order, by row."""
        return self._orders[: len(self.ids)]

    def add(self, nodes: Sequence[Node]) -> None:
        """Append nodes."""
        self._extend(
            [node.id for node in nodes],
            [node.order for node in nodes],
            [node.parent_id for node in nodes],
            [node.document_id for node in nodes],
            [node.metadata if node.own_metadata else node.inherited for node in nodes],
        )

    def _extend(
        self,
        ids: Sequence[str],
        orders: Sequence[int] | Orders,
        parents: Iterable[str | None],
        documents: Iterable[str],
        metadata: Iterable[Mapping[str, Any] | str],
    ) -> None:
        first = len(self.ids)
        size = first + len(ids)
        self._alive = grown(self._alive, size)
        self._alive[first:size] = True
        self._orders = grown(self._orders, size)
        self._orders[first:size] = orders
        self._parents.extend(first, parents)
        self._documents.extend(first, documents)
        self._metadata.extend(first, metadata, id)
        self.rows.update(zip(ids, range(first, size), strict=True))
        self.ids.extend(ids)

    def remove(self, ids: Collection[str]) -> list[int]:
        """Empty the rows of nodes. Unknown ids are ignored.

        Returns:
            The rows.
        """
        removed = [self.rows.pop(node_id) for node_id in ids if node_id in self.rows]
        if removed:
            self._alive = self._alive.copy()  # running searches may use the previous array
            self._alive[removed] = False
        return removed

    def compacted(self) -> NodeTable:
        """Return a table without empty rows. The order of the remaining rows is kept."""
        rows = np.flatnonzero(self.alive)
        table = NodeTable()
        table._extend(
            self.ids_of(rows),
            self._orders[rows],
            self._parents.take(rows),
            self._documents.take(rows),
            self._metadata.take(rows),
        )
        return table

    def metadata_of(self, rows: Rows) -> list[Mapping[str, Any]]:
        """Return the metadata of nodes by row."""
        values = self._metadata.take(rows)
        return [_decoded(value) for value in values]

    def snapshot(self, filter: Filter) -> TableSnapshot:
        """Return a snapshot of the rows."""
        return TableSnapshot(self.ids, self.orders, self.matching(filter), self._parents, self.rows)

    def matching(self, filter: Filter) -> MatchingRows | None:
        """Return the rows that meet a filter; None if it has no condition."""
        if not filter:
            return None
        key = filter.key
        kept = self._kept.get(key, len(self.ids))
        if kept is None:
            mask = filter.mask(self._meets)
            if mask is None:
                return None
            kept = MatchingRows.of(mask)
            self._kept.put(key, kept)
        return kept

    def allowed(self, filter: Filter) -> Mask:
        """Return which rows have a node that meets a filter."""
        matching = self.matching(filter)
        return self.alive if matching is None else matching.mask & self.alive

    def _meets(self, field: str | None, condition: Condition) -> Mask:
        column: Runs[Any] = self._documents if field is None else self._metadata
        values = self._fields.setdefault(field, FieldValues())
        is_new = not values.values
        first = len(values.codes)
        new = column.values[first:]
        if field is not None:
            new = [_decoded(data) for data in new]
            column.values[first:] = new
            new = [field_value(data, field) for data in new]
        values.extend(new)
        if is_new and condition.compares and values.are_missing:
            self._warn_missing(field)
        return values.meets(condition)[column.codes[: len(self.ids)]]

    def _warn_missing(self, field: str | None) -> None:
        """Log that no node has a field, whose name may be misspelled."""
        fields: set[str] = set()
        for metadata in self._metadata.values:
            fields.update(str(name) for name in metadata)
        logger.warning(
            "a filter compares the metadata field %r, which no searched node has; known fields: %s",
            field,
            nearest_names(str(field), sorted(fields)),
        )

    def arrays(self) -> Arrays:
        """Return arrays for a file.

        Raises:
            TypeError: If a metadata value cannot be stored.
        """
        size = len(self.ids)
        return {
            **pack_texts("ids", self.ids),
            "alive": np.packbits(self.alive),
            "orders": self.orders,
            **self._parents.arrays("parents", size, lambda parent: parent or ""),
            **self._documents.arrays("documents", size, str),
            **self._metadata.arrays("metadata", size, lambda d: d if type(d) is str else encode(d)),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> NodeTable:
        """Restore a table from ``arrays``; other arrays are ignored.

        Raises:
            ValueError: If the arrays are forged.
        """
        table = cls()
        table.ids = unpack_texts("ids", arrays)
        size = len(table.ids)
        bits = checked(arrays, "alive", np.uint8, (size + 7) // 8)
        table._alive = np.unpackbits(bits, count=size).view(np.bool_)
        table._orders = checked(arrays, "orders", np.int64, size)
        table._parents = Runs.from_arrays(arrays, "parents", size, lambda text: text or None)
        table._documents = Runs.from_arrays(arrays, "documents", size, str)
        table._metadata = Runs.from_arrays(arrays, "metadata", size, str)
        rows = np.flatnonzero(table.alive)
        table.rows = dict(zip(table.ids_of(rows), rows.tolist(), strict=True))
        if len(table.rows) < len(rows):
            raise ValueError("two rows have one id")
        return table


def _itself(value: T) -> T:
    return value


def _decoded(text: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata from the text of a file. Decoded metadata is returned unchanged.

    Raises:
        MissingNodeError: If the text is forged.
    """
    if not isinstance(text, str):
        return text
    try:
        metadata = decode(text)
    except Exception as error:  # forged texts raise anything
        raise MissingNodeError(f"metadata cannot be read: {error}") from error
    if not isinstance(metadata, Mapping):
        raise MissingNodeError(f"metadata must be a mapping, got {metadata!r:.40}")
    return metadata
