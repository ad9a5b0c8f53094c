"""The nodes of one group as rows of a table: ids, order and metadata, for filters and ranking."""

from __future__ import annotations

import logging
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import chain, groupby, repeat
from operator import eq
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...nodegraph.codec import decode, encode
from ...nodegraph.errors import nearest_names
from ...nodegraph.locking import mutex
from ...nodegraph.node import Node
from ..conditions import MISSING, Condition, DatedText, identity
from ..filters import Filter
from ..results import Hits
from .array_files import Arrays, PackedTexts, grown, pack_texts
from .synced_index import SyncedIndex

logger = logging.getLogger(__name__)

_MAX_CACHED = 32  # conditions whose answers a column remembers

Mask = npt.NDArray[np.bool_]

Metadata = Mapping[str, Any]

Codes = npt.NDArray[np.unsignedinteger[Any]]


class DocumentColumn:
    """Hold the id of each row's document, which is one text for nodes that follow each other.

    What comes from a file is read at first use.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._stored: Callable[[], Iterable[str]] | None = None
        self._loading = mutex()

    def extend(self, names: Iterable[str]) -> None:
        """Append the documents of the next rows."""
        loaded = self.values()
        for name, rows in groupby(names):
            loaded += repeat(name, sum(1 for _ in rows))

    def values(self) -> list[str]:
        """Return the documents of all rows."""
        with self._loading:
            if self._stored is not None:
                self._names, self._stored = [*self._stored()], None
        return self._names

    def select(self, rows: Sequence[int]) -> None:
        """Retain some rows, numbered anew in this order."""
        names = self.values()
        self._names = [names[row] for row in rows]

    def arrays(self, ids: Sequence[str]) -> Arrays:
        """Return the arrays from which ``from_arrays`` restores the column.

        Args:
            ids: Those of the rows; nothing is stored where documents are their own nodes.
        """
        names = self.values()
        runs = [] if all(map(eq, names, ids)) else [(n, len([*rows])) for n, rows in groupby(names)]
        texts, starts = pack_texts([name for name, _ in runs])
        sizes = np.array([size for _, size in runs], np.uint32)
        return {"documents": texts, "document_starts": starts, "document_rows": sizes}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], ids: Sequence[str]
    ) -> DocumentColumn:
        """Restore a column from what ``arrays`` returned.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        column, size = cls(), len(ids)
        names = PackedTexts(arrays["documents"], arrays["document_starts"])
        sizes = arrays["document_rows"]
        if len(names) != len(sizes) or (len(sizes) and int(sizes.sum()) != size):
            raise ValueError(f"the documents don't fit {size} nodes")
        runs = chain.from_iterable(map(repeat, names, map(int, sizes)))
        column._stored = lambda: runs if len(sizes) else ids[:size]
        return column


class MetadataColumn:
    """Hold one metadata mapping a row, None for an empty row.

    What comes from a file is parsed at first use, each distinct mapping once.
    """

    def __init__(self) -> None:
        self._values: list[Metadata | None] = []
        self._encoded_rows = 0  # rows before the first of the values that are not parsed yet
        self._encoded: Sequence[str] = ()  # their distinct mappings
        self._codes: Codes = np.zeros(0, np.uint8)  # 0 for empty, else index + 1
        self._parsing = mutex()

    def extend(self, values: Iterable[Metadata]) -> None:
        """Append the metadata of the next rows."""
        self._values += values

    def delete(self, row: int) -> None:
        """Drop the metadata of a row that was emptied."""
        if row >= self._encoded_rows:
            self._values[row - self._encoded_rows] = None

    def select(self, rows: Sequence[int]) -> None:
        """Retain some rows, numbered anew in this order."""
        values = self.values()
        self._values = [values[row] for row in rows]

    def values(self) -> Sequence[Metadata | None]:
        """Return all mappings, by row."""
        with self._parsing:
            if self._encoded_rows:
                parsed = [None, *map(decode, self._encoded)]
                restored = [parsed[code] for code in self._codes.tolist()]
                self._values, self._encoded_rows = restored + self._values, 0
                self._encoded, self._codes = (), self._codes[:0]
            return self._values

    def arrays(self) -> Arrays:
        """Return the arrays from which ``from_arrays`` restores the column.

        Raises:
            TypeError: If a value can't be stored.
        """
        with self._parsing:
            numbers = {text: number for number, text in enumerate(self._encoded, 1)}
            code_by_id: dict[int, int] = {}  # most nodes share a mapping with their siblings
            codes: list[int] = []
            for value in self._values:
                code = code_by_id.get(id(value))
                if code is None:
                    code = numbers.setdefault(encode(value), len(numbers) + 1) if value else 0
                    code_by_id[id(value)] = code
                codes.append(code)
            narrow = np.min_scalar_type(len(numbers))
            narrowed = np.concatenate([self._codes, np.array(codes, np.uint32)]).astype(narrow)
        texts, starts = pack_texts(list(numbers))
        return {"metadata": texts, "metadata_starts": starts, "metadata_codes": narrowed}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], size: int) -> MetadataColumn:
        """Restore a column of so many rows from what ``arrays`` returned.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        column = cls()
        texts = PackedTexts(arrays["metadata"], arrays["metadata_starts"])
        column._codes, column._encoded_rows = arrays["metadata_codes"], size
        if len(column._codes) != size or column._codes.max(initial=0) > len(texts):
            raise ValueError(f"the metadata does not fit {size} nodes")
        column._encoded = texts
        return column


class Column:
    """Number the distinct values of a field.

    A condition is asked once a distinct value, not once a row, and its answers are kept for the
    next query. Many threads may ask at once.
    """

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}
        self._dated = 0  # values that were read as dates, where they are texts
        self._codes: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._decided: dict[Hashable, Mask] = {}
        self._extending = mutex()

    @property
    def is_empty(self) -> bool:
        """Whether there are rows, and none has the field."""
        return len(self._values) == 1 and self._values[0] is MISSING

    def extend(self, size: int, values: Callable[[int], Iterable[Any]]) -> None:
        """Take in the rows that came since the last call.

        Args:
            size: How many rows there are.
            values: Returns the values of the rows from one on, ``MISSING`` where there is none.
        """
        if size > len(self._codes):
            with self._extending:
                new = [*map(self._number, values(len(self._codes)))]
                self._codes = np.concatenate([self._codes, np.array(new, np.int32)])

    def meets(self, condition: Condition) -> Mask:
        """Return which rows meet a condition."""
        codes = self._codes  # before the values: those that come meanwhile are of later rows
        good = self._decided.get(condition.key, np.zeros(0, np.bool_))
        if len(good) < len(self._values):
            if condition.reads_dates:
                self._read_dates()
            new = [condition(value) for value in self._values[len(good) :]]
            good = np.concatenate([good, np.array(new, np.bool_)])
            if len(self._decided) >= _MAX_CACHED:
                self._decided = {}
            self._decided[condition.key] = good
        return np.take(good, codes)

    def _read_dates(self) -> None:
        """Read texts as dates, once for all conditions that compare dates."""
        for number in range(self._dated, len(self._values)):
            if type(self._values[number]) is str:
                self._values[number] = DatedText.read(self._values[number])
            self._dated = number + 1

    def _number(self, value: Any) -> int:
        kind = type(value)
        key = (kind, value) if kind is str or kind is int else identity(value)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._values)
            self._values.append(value)
        return number


_MASKS = 8, 256, 16_000_000  # filters whose rows a table remembers: at least, at most, in bytes

_GAPS = 1_000  # empty rows up to which gaps are never worth closing

_RECENT = 1_000  # ids that are looked up apart from the sorted ones, at least

Rows = npt.NDArray[np.integer[Any]]

Orders = npt.NDArray[np.int64]


class NodeTable:
    """Number nodes upwards; a removed node's row stays empty until ``compact``.

    Attributes:
        ids: Node id by row, also of empty rows.
        orders: Place in document order, by row.
        living: How many rows have a node.
    """

    def __init__(self) -> None:
        self.ids = NodeIds()
        self.living = 0
        self._rows: dict[str, int] | None = None  # by id; None until somebody wants all
        self._alive: Mask = np.zeros(1024, np.bool_)
        self._set_orders(np.zeros(1024, np.int64))
        self._metadata = MetadataColumn()
        self._documents = DocumentColumn()
        self._clear_filters()

    def _set_orders(self, orders: Orders) -> None:
        """Set the orders; there may be room for more rows."""
        self._orders, self.orders = orders, orders[: len(self.ids)]

    def _clear_filters(self) -> None:
        self._columns: dict[str | None, Column] = {}
        self._forget_masks()

    def _forget_masks(self) -> None:
        self._masks: dict[Hashable, Mask] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def alive(self) -> Mask:
        """Whether a row has a node, by row."""
        return self._alive[: len(self.ids)]

    @property
    def sparse(self) -> bool:
        """Whether most rows are empty, so that ``compact`` is worth its cost."""
        return len(self.ids) > 2 * self.living + _GAPS

    def add(self, nodes: Sequence[Node]) -> int:
        """Append nodes; return the row of the first."""
        first = len(self.ids)
        size = first + len(nodes)
        if not nodes:
            return first
        self._alive, self._orders = grown(self._alive, size), grown(self._orders, size)
        self._alive[first:size] = True
        self._orders[first:size] = [node.order for node in nodes]
        self.ids.extend([node.id for node in nodes])
        self._set_orders(self._orders)
        if self._rows is not None:
            self._rows.update((node.id, row) for row, node in enumerate(nodes, first))
        self._metadata.extend(n.metadata if n.own_metadata else n.inherited for n in nodes)
        self._documents.extend(node.document_id for node in nodes)
        self._forget_masks()
        self.living += len(nodes)
        return first

    def rows(self) -> dict[str, int]:
        """Return the row of each node, by its id."""
        if self._rows is None:
            alive = np.flatnonzero(self.alive)
            self._rows = dict(zip(self.ids.take(alive), alive.tolist(), strict=True))
        return self._rows

    def rows_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the rows of some nodes, by their ids, without memory for those of all."""
        return self._rows or self.ids.rows_of(ids, self._alive.__getitem__)

    def remove(self, ids: Collection[str]) -> list[int]:
        """Empty the rows of nodes; return these rows. Unknown ids do nothing."""
        rows = self.ids.rows_of(ids, self._alive.__getitem__) if ids else {}
        removed = [rows[node_id] for node_id in dict.fromkeys(ids) if node_id in rows]
        for row in removed:
            self._alive[row] = False
            self._metadata.delete(row)
        if self._rows is not None:
            for node_id in rows:
                del self._rows[node_id]
        self.living -= len(removed)
        return removed

    def compact(self) -> None:
        """Drop empty rows and number the others anew, in order."""
        rows = np.flatnonzero(self.alive)
        self.ids = self.ids.selected(rows)
        self._set_orders(np.concatenate([self._orders[rows], np.zeros(1024, np.int64)]))
        self._alive = np.arange(len(self._orders)) < len(rows)
        self._metadata.select(rows.tolist())
        self._documents.select(rows.tolist())
        self._rows = None
        self._clear_filters()

    def matching(self, filter: Filter) -> Mask | None:
        """Return which rows meet a filter, None where it has no condition.

        Empty rows may be among them; combine the result with ``alive``.
        """
        if filter.condition is None and not filter.parts:
            return None
        masks, key = self._masks, filter.key
        mask = masks.get(key)
        if mask is None and (mask := filter.mask(self._meets)) is not None:
            if len(masks) >= self.most_masks:
                masks = self._masks = {}
            masks[key] = mask
        return mask

    def allowed(self, filter: Filter) -> Mask | None:
        """Return which rows have a node that meets a filter, None for all."""
        matching = self.matching(filter)
        if self.living == len(self.ids):
            return matching
        return self.alive if matching is None else matching & self.alive

    @property
    def most_masks(self) -> int:
        """How many filters it is worth remembering the rows of: there may be many tenants."""
        least, maximum, size = _MASKS
        return max(least, min(maximum, size // (len(self.ids) + 1)))

    def _meets(self, field: str | None, condition: Condition) -> Mask:
        column = self._columns.get(field)
        if column is None:
            column = self._columns.setdefault(field, Column())
            column.extend(*self._values(field))
            if column.is_empty and condition.compares:
                self._warn_of(field)
        column.extend(*self._values(field))
        return column.meets(condition)

    def _values(self, field: str | None) -> tuple[int, Callable[[int], Iterable[Any]]]:
        if field is None:
            documents = self._documents.values()
            return len(documents), lambda start: documents[start:]
        metadata = self._metadata.values()
        return len(metadata), lambda start: [
            values.get(field, MISSING) if values else MISSING for values in metadata[start:]
        ]

    def _warn_of(self, field: str | None) -> None:
        """Say once that no node has a field: it may be misspelt."""
        metadata = {id(values): values for values in self._metadata.values() if values}
        fields = sorted({str(name) for values in metadata.values() for name in values})
        logger.warning(
            "no node that is searched has the metadata field %r, which a filter compares; they "
            "have %s",
            *(field, nearest_names(str(field), fields)),
        )

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the table.

        Raises:
            TypeError: If a metadata value can't be stored.
        """
        return {
            **self.ids.arrays(),
            "alive": np.packbits(self.alive),
            "orders": self.orders,
            **self._documents.arrays(self.ids),
            **self._metadata.arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> NodeTable:
        """Restore a table from what ``arrays`` returned; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        table = cls()
        table.ids = NodeIds.from_arrays(arrays)
        size, alive, orders = len(table.ids), arrays["alive"], arrays["orders"]
        if len(orders) != size or len(alive) != (size + 7) // 8:
            raise ValueError(f"the arrays of an index don't fit its {size} nodes")
        table._alive = np.unpackbits(alive, count=size).view(np.bool_)
        table._set_orders(orders)
        table._metadata = MetadataColumn.from_arrays(arrays, size)
        table._documents = DocumentColumn.from_arrays(arrays, table.ids)
        table.living = int(table._alive.sum())
        return table


class KeyedRows:
    """Find rows by 64-bit keys: sorted ones, and a dictionary of those that came later.

    What a look-up takes does not grow with the number of rows.

    Args:
        keys: Those of the first rows.
    """

    def __init__(self, keys: npt.NDArray[Any]) -> None:
        self._parts = [keys]
        self._sort()

    def _sort(self) -> None:
        keys = np.concatenate(self._parts)
        self._size, self._parts = len(keys), [keys]
        self._order = np.argsort(keys, kind="stable")
        self._later: dict[int, list[int]] = {}

    def extend(self, keys: npt.NDArray[Any]) -> None:
        """Append the keys of the next rows."""
        for row, key in enumerate(keys.tolist(), self._size):
            self._later.setdefault(key, []).append(row)
        self._parts.append(keys)
        self._size += len(keys)
        if len(self._later) > len(self._order) + _RECENT:
            self._sort()

    def rows(self, keys: npt.NDArray[Any]) -> list[list[int]]:
        """Return the rows with each of some keys, ascending."""
        starts = np.searchsorted(self._parts[0], keys, sorter=self._order).tolist()
        stops = np.searchsorted(self._parts[0], keys, "right", sorter=self._order).tolist()
        return [
            [*self._order[start:stop].tolist(), *self._later.get(key, ())]
            for key, start, stop in zip(keys.tolist(), starts, stops, strict=True)
        ]


class NodeIds(Sequence[str]):
    """Number ids upwards: those of a file, which stay there, and later ones.

    An id may be there several times, of which the caller says that at most one is alive.

    Args:
        stored: The first ids.
    """

    def __init__(self, stored: PackedTexts | None = None) -> None:
        self._stored = PackedTexts(*pack_texts([])) if stored is None else stored
        self._first = len(self._stored)  # the row of the first later one
        self._later: list[str] = []
        self._by_key: KeyedRows | None = None  # None until rows are looked up

    def __len__(self) -> int:
        return self._first + len(self._later)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        first = self._first
        return self._stored[index] if index < first else self._later[index - first]

    def __iter__(self) -> Iterator[str]:
        yield from self._stored
        yield from self._later

    def take(self, rows: Rows) -> list[str]:
        """Return the ids of some rows, (n,)."""
        first, later = self._first, self._later
        if not first:
            return [*map(later.__getitem__, rows.tolist())]
        if not later or rows.max(initial=0) < first:
            return self._stored.take(rows)
        return [self[row] for row in rows.tolist()]

    def extend(self, ids: Collection[str]) -> None:
        """Append ids."""
        if self._by_key is not None:
            self._by_key.extend(self._keys(ids))
        self._later += ids

    def _keys(self, ids: Collection[str]) -> npt.NDArray[np.int64]:
        return np.fromiter(map(self._stored.key, ids), np.int64, len(ids))

    def rows_of(self, ids: Collection[str], alive: Callable[[int], Any]) -> dict[str, int]:
        """Return the rows of those of some ids that are there and alive.

        What it takes does not grow with the number of all ids, except for the first time.
        """
        if self._by_key is None:
            self._by_key = KeyedRows(np.concatenate([self._stored.keys(), self._keys(self._later)]))
        matches: dict[str, int] = {}
        requested = list(ids)
        for node_id, rows in zip(requested, self._by_key.rows(self._keys(requested)), strict=True):
            for row in rows:
                if alive(row) and self[row] == node_id:
                    matches[node_id] = row
        return matches

    def selected(self, rows: Rows) -> NodeIds:
        """Return some of the ids, numbered anew in this order."""
        ids = NodeIds()
        ids.extend(self.take(rows))
        return ids

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the ids."""
        data, starts = pack_texts(list(self))
        return {"ids": data, "id_starts": starts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> NodeIds:
        """Restore the ids.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        return cls(PackedTexts(arrays["ids"], arrays["id_starts"]))


class FilterIndex(SyncedIndex):
    """List nodes by filters alone."""

    def clear(self) -> None:
        """Remove everything."""
        self._table = NodeTable()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes."""
        self._table.remove(ids)

    def add(self, nodes: Sequence[Node], prepared: None = None) -> None:
        """Add nodes."""
        self._table.add(nodes)

    def finish(self) -> None:
        """Close gaps."""
        if self._table.sparse:
            self._table.compact()

    def search(self, query: Any, limit: int | None, filter: Filter) -> Hits:
        """Return the first nodes in document order that meet a filter, each with the score 0."""
        ids = self._matching_ids(filter, limit)
        return Hits(ids, [0.0] * len(ids))

    def _matching_ids(self, filter: Filter, limit: int | None = None) -> list[str]:
        """Return the first nodes that meet a filter, in document order."""
        allowed = self._table.allowed(filter)
        rows = np.arange(len(self._table)) if allowed is None else np.flatnonzero(allowed)
        return self._table.ids.take(
            rows[np.argsort(self._table.orders[rows], kind="stable")][:limit]
        )
