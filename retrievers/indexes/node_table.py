"""A table of the nodes of a group, with columns for ids, order, parents and metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...nodegraph.errors import MissingNodeError
from ...nodegraph.node import Node
from ...nodegraph.storage.columns import decode, encode
from ..conditions import Condition
from ..filters import Filter, field_value
from .array_files import Arrays, checked, grown, smallest, stored
from .matching_rows import FieldValues, KeptMatches, MatchingRows
from .row_ids import Mask, RowIds, Rows
from .stored_array import StoredArray
from .stored_texts import StoredTexts, pack_texts

T = TypeVar("T")

Orders = npt.NDArray[np.int64]

Codes = npt.NDArray[np.integer[Any]]


class Runs(Generic[T]):
    """A column in which a sequence of equal values in adjacent rows is stored only once.

    The first values can be in a file, which is read on demand.

    Args:
        read: A function that converts the text of a value in a file to the value.
    """

    def __init__(self, read: Callable[[str], T]) -> None:
        self._read = read
        self._codes: Codes = np.zeros(0, np.int32)  # with room for more rows
        # The codes in a file, until all of them are used.
        self._stored_codes: StoredArray | None = None
        # The values in a file, and the values that were added later.
        self._parts: tuple[StoredTexts | None, list[T]] = None, []

    @property
    def codes(self) -> Codes:
        """For each row, the number of its value. The array has space for more rows.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        stored = self._stored_codes
        if stored is not None:
            self._codes = stored.whole()
            self._stored_codes = None
        return self._codes

    @property
    def values(self) -> list[T]:
        """The values, by number.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        stored, later = self._parts
        if stored is None:
            return later
        values = [*[self._read(text) for text in stored.all()], *later]
        self._parts = None, values
        return values

    def extend(
        self, first: int, values: Iterable[T], key: Callable[[T], Any] | None = None
    ) -> None:
        """Append the values of new rows.

        Args:
            first: The number of the first row.
            values: The values.
            key: A function that returns the form in which a value is compared. If None, the values
                themselves are compared.
        """
        identity_of = key or _itself
        stored, later = self._parts
        size = len(later) + (0 if stored is None else len(stored))
        last = self._last()
        sizes: list[int] = []
        number = size
        for same, rows in groupby(values, identity_of):
            run = [*rows]
            continues = not sizes and size > 0 and identity_of(cast(T, last)) == same
            if continues:
                number -= 1
            else:
                later.append(run[0])
                size += 1
            sizes.append(len(run))
        numbers = np.arange(number, size, dtype=np.int32)
        codes = numbers.repeat(sizes)
        self._codes = grown(self.codes.astype(np.int32, copy=False), first + len(codes))
        self._codes[first : first + len(codes)] = codes

    def _last(self) -> T | None:
        """Return the last value, or None if there are no values."""
        stored, later = self._parts
        if later:
            return later[-1]
        return self._read(stored[len(stored) - 1]) if stored else None

    def take(self, rows: Rows) -> list[T]:
        """Return the values of rows. Equal values of adjacent rows are the same object.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        stored_codes = self._stored_codes
        codes = self.codes[rows] if stored_codes is None else stored_codes.take(rows)
        stored, later = self._parts
        if stored is None:
            return [later[code] for code in codes.tolist()]
        size = len(stored)
        numbers = codes.tolist()
        in_file = [number for number in dict.fromkeys(numbers) if number < size]
        texts = stored.take(np.array(in_file, np.int64))
        values = {number: self._read(text) for number, text in zip(in_file, texts, strict=True)}
        return [values[n] if n < size else later[n - size] for n in numbers]

    def run_lengths(self, rows: Rows, size: int) -> list[int]:
        """For each of the given rows, return the number of adjacent rows with the same value.

        Args:
            rows: The rows.
            size: The number of rows of the column.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        codes = self.codes[:size]
        first = np.searchsorted(codes, codes[rows], side="left")
        after = np.searchsorted(codes, codes[rows], side="right")
        lengths: list[int] = (after - first).tolist()
        return lengths

    def arrays(
        self, name: str, size: int, write: Callable[[T], str], *, merge: bool = False
    ) -> Arrays:
        """Return the column as arrays for a file.

        Args:
            name: The name of the column.
            size: The number of rows.
            write: A function that converts a value to a text.
            merge: Whether equal values of distant rows are stored once, too. ``run_lengths`` then
                no longer works.

        Raises:
            TypeError: If a value cannot be stored.
            MissingNodeError: If the previous file is damaged.
        """
        stored, later = self._parts
        texts = [write(value) for value in later]
        codes = self.codes[:size]
        if merge:
            first = 0 if stored is None else len(stored)
            numbers = {text: first + at for at, text in enumerate(dict.fromkeys(texts))}
            of_later = np.array([numbers[text] for text in texts], np.int64)
            codes = np.append(np.arange(first), of_later)[codes]
            texts = [*numbers]
        values = pack_texts(name, texts) if stored is None else stored.arrays(name, texts)
        return {**values, f"{name}_codes": smallest(codes)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, name: str, size: int, read: Callable[[str], T]) -> Runs[T]:
        """Restore a column from the result of ``arrays``.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
        """
        runs = cls(read)
        values = StoredTexts.from_arrays(arrays, name)
        runs._parts = values, []
        numbers = range(len(values))
        runs._stored_codes = stored(
            arrays, f"{name}_codes", np.unsignedinteger, size, values=numbers
        )
        return runs


class TableSnapshot(NamedTuple):
    """The rows of a table at one revision. Later changes of the table do not affect them.

    Attributes:
        table: The table, which can change. Nodes that are added later have other rows.
        orders: The position of each row in document order.
        matching: The rows that match the filter. If None, all rows match.
    """

    table: NodeTable
    orders: Orders
    matching: MatchingRows | None

    def ids_of(self, rows: Rows) -> list[str]:
        """Return the ids of the nodes in the given rows.

        Raises:
            MissingNodeError: If the file of the table is damaged.
        """
        return self.table.ids_of(rows)

    def rows_of(self, ids: Iterable[str]) -> Rows:
        """Return the rows of nodes.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        rows = self.table.rows_of(ids)
        # As an unsigned number, the row -1 is higher than all rows.
        if len(rows) and rows.view(np.uint64).max() >= len(self.orders):
            raise MissingNodeError("a node was removed or changed")
        return rows

    def parents_of(self, ids: Iterable[str]) -> list[str | None]:
        """Return the ids of the parents of nodes.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        return self.table.parents.take(self.rows_of(ids))

    def inherit(self, ids: Iterable[str]) -> list[bool]:
        """For each node in a document, return whether it has the same metadata as its parent.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        inherited: list[bool] = self.table.inherited.take(self.rows_of(ids)).tolist()
        return inherited

    def count_siblings(self, ids: Iterable[str]) -> list[int]:
        """For each node, count the nodes with the same parent, including the node itself.

        Raises:
            MissingNodeError: If a node was removed or changed.
        """
        return self.table.parents.run_lengths(self.rows_of(ids), len(self.orders))


class NodeTable:
    """A table with one row per node. A removed node leaves an empty row until the table is
    compacted.

    Attributes:
        size: The number of nodes.
        parents: The ids of the parents.
    """

    def __init__(self) -> None:
        self.size = 0
        self.parents: Runs[str | None] = Runs(_parent)
        self._ids = RowIds()
        self._alive: Mask = np.zeros(0, np.bool_)
        self._inherited: Mask = np.zeros(0, np.bool_)
        self._orders: Orders = np.zeros(0, np.int64)
        self._documents: Runs[str] = Runs(str)
        # Texts from a file are decoded on first use.
        self._metadata: Runs[Mapping[str, Any] | str] = Runs(str)
        self._fields: dict[str | None, FieldValues] = {}
        self._kept = KeptMatches()

    def __len__(self) -> int:
        return len(self._ids)

    def ids_of(self, rows: Rows) -> list[str]:
        """Return the ids of the nodes in the given rows.

        Raises:
            MissingNodeError: If the file of the table is damaged.
        """
        return self._ids.take(rows, self._alive)

    def row_of(self, node_id: str) -> int:
        """Return the row of a node, or -1 if the node is not in the table.

        Raises:
            MissingNodeError: If the file of the table is damaged.
        """
        row = self._ids.find(node_id)
        return row if row >= 0 and self._alive.item(row) else -1

    def rows_of(self, ids: Iterable[str]) -> Rows:
        """Return the rows of nodes, or -1 for nodes that are not in the table.

        Raises:
            MissingNodeError: If the file of the table is damaged.
        """
        rows = np.array(self._ids.find_all(ids), np.int64)
        if self.size == len(self):  # no row is empty
            return rows
        is_known = rows >= 0
        is_known[is_known] = self._alive[rows[is_known]]
        return np.where(is_known, rows, -1)

    @property
    def alive(self) -> Mask:
        """A boolean array that is True for rows that hold a node."""
        return self._alive[: len(self)]

    @property
    def inherited(self) -> Mask:
        """A boolean array that is True for rows whose node has the same metadata as its parent.

        It is False for nodes that do not belong to a document.
        """
        return self._inherited[: len(self)]

    @property
    def orders(self) -> Orders:
        """The position of each row in document order."""
        return self._orders[: len(self)]

    def add(self, nodes: Sequence[Node]) -> None:
        """Append nodes to the table."""
        self._extend(
            [node.id for node in nodes],
            [node.order for node in nodes],
            [node.parent_id for node in nodes],
            [node.document_id for node in nodes],
            [node.metadata if node.own_metadata else node.inherited for node in nodes],
            [not node.own_metadata and bool(node.document_id) for node in nodes],
        )

    def _extend(
        self,
        ids: Sequence[str],
        orders: Sequence[int] | Orders,
        parents: Iterable[str | None],
        documents: Iterable[str],
        metadata: Iterable[Mapping[str, Any] | str],
        inherited: Sequence[bool] | Mask,
    ) -> None:
        first = len(self)
        size = first + len(ids)
        self._alive = grown(self._alive, size)
        self._alive[first:size] = True
        self._inherited = grown(self._inherited, size)
        self._inherited[first:size] = inherited
        self._orders = grown(self._orders, size)
        self._orders[first:size] = orders
        self.parents.extend(first, parents)
        self._documents.extend(first, documents)
        self._metadata.extend(first, metadata, id)
        self._ids.extend(ids)
        self.size += len(ids)

    def remove(self, ids: Collection[str]) -> list[int]:
        """Empty the rows of nodes. Unknown ids are ignored.

        Returns:
            The rows that were emptied.
        """
        rows = self.rows_of(dict.fromkeys(ids))
        removed: list[int] = rows[rows >= 0].tolist()
        if removed:
            self.size -= len(removed)
            self._alive = self._alive.copy()  # running searches may still use the old array
            self._alive[removed] = False
        return removed

    def compacted(self) -> NodeTable:
        """Return a table without empty rows. The other rows keep their order."""
        rows = np.flatnonzero(self.alive)
        table = NodeTable()
        table._extend(
            self.ids_of(rows),
            self._orders[rows],
            self.parents.take(rows),
            self._documents.take(rows),
            self._metadata.take(rows),
            self.inherited[rows],
        )
        return table

    def metadata_of(self, rows: Rows) -> list[Mapping[str, Any]]:
        """Return the metadata of the nodes in the given rows."""
        values = self._metadata.take(rows)
        return [_decoded(value) for value in values]

    def snapshot(self, filter: Filter) -> TableSnapshot:
        """Return a snapshot of the rows that match a filter."""
        return TableSnapshot(self, self.orders, self.matching(filter))

    def matching(self, filter: Filter) -> MatchingRows | None:
        """Return the rows that match a filter, or None if it contains no condition."""
        if not filter:
            return None
        key = filter.key
        kept = self._kept.get(key, len(self))
        if kept is None:
            mask = filter.mask(self._meets)
            if mask is None:
                return None
            kept = MatchingRows.of(mask)
            self._kept.put(key, kept)
        return kept

    def allowed(self, filter: Filter) -> Mask:
        """Return a boolean array that is True for rows whose node matches a filter."""
        matching = self.matching(filter)
        return self.alive if matching is None else matching.mask & self.alive

    def _meets(self, field: str | None, condition: Condition) -> Mask:
        column: Runs[Any] = self._documents if field is None else self._metadata
        values = self._fields.setdefault(field, FieldValues())
        first = len(values.codes)
        new = column.values[first:]
        if field is not None:
            new = [_decoded(data) for data in new]
            column.values[first:] = new
            new = [field_value(data, field) for data in new]
        values.extend(new)
        return values.meets(condition)[column.codes[: len(self)]]

    def unknown_fields(self, filter: Filter) -> set[str]:
        """Return the metadata fields that a filter compares and that no node has."""
        self.matching(filter)
        values = {field: self._fields.get(field) for field in filter.compared_fields}
        return {field for field, found in values.items() if found is not None and found.are_missing}

    def known_fields(self) -> set[str]:
        """Return the names of all metadata fields."""
        fields: set[str] = set()
        for metadata in self._metadata.values:
            fields.update(str(name) for name in _decoded(metadata))
        return fields

    def arrays(self) -> Arrays:
        """Return the table as arrays for a file.

        Raises:
            TypeError: If a metadata value cannot be stored.
        """
        size = len(self)
        return {
            **self._ids.arrays(self.alive),
            "alive": np.packbits(self.alive),
            "inherited": np.packbits(self.inherited),
            "orders": self.orders,
            **self.parents.arrays("parents", size, lambda parent: parent or ""),
            **self._documents.arrays("documents", size, str),
            **self._metadata.arrays("metadata", size, _encoded, merge=True),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> NodeTable:
        """Restore a table from the result of ``arrays``. Other arrays are ignored.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
            MissingNodeError: If the file is damaged.
        """
        table = cls()
        table._ids = RowIds.from_arrays(arrays)
        size = len(table)
        table._alive = _unpacked(arrays, "alive", size)
        table._inherited = _unpacked(arrays, "inherited", size)
        table.size = int(np.count_nonzero(table._alive))
        table._orders = checked(arrays, "orders", np.int64, size)
        table.parents = Runs.from_arrays(arrays, "parents", size, _parent)
        table._documents = Runs.from_arrays(arrays, "documents", size, str)
        table._metadata = Runs.from_arrays(arrays, "metadata", size, str)
        return table


def _unpacked(arrays: Arrays, name: str, size: int) -> Mask:
    """Restore a boolean array from the bits that are stored in a file.

    Raises:
        ValueError: If the array is missing, or has the wrong type or shape.
    """
    bits = checked(arrays, name, np.uint8, (size + 7) // 8)
    return np.unpackbits(bits, count=size).view(np.bool_)


def _itself(value: T) -> T:
    return value


def _parent(text: str) -> str | None:
    return text or None


def _encoded(metadata: Mapping[str, Any] | str) -> str:
    return metadata if isinstance(metadata, str) else encode(metadata)


def _decoded(text: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Parse metadata that was read from a file. Parsed metadata is returned unchanged.

    Raises:
        MissingNodeError: If the text is not valid.
    """
    if not isinstance(text, str):
        return text
    try:
        metadata = decode(text)
    except Exception as error:  # manipulated texts can raise any error
        raise MissingNodeError(f"metadata cannot be read: {error}") from error
    if not isinstance(metadata, Mapping):
        raise MissingNodeError(f"metadata must be a mapping, got {metadata!r:.40}")
    return metadata
