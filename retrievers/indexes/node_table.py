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
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...nodegraph.errors import nearest_names
from ...nodegraph.node import Node
from ..conditions import MISSING, Condition
from ..filters import Filter
from ..results import Hits
from .array_files import Arrays, PackedTexts, grown, pack_texts
from .row_columns import Column, DocumentColumn, MetadataColumn
from .synced_index import SyncedIndex

logger = logging.getLogger(__name__)

_MASKS = 8, 256, 16_000_000  # filters whose rows a table remembers: at least, at most, in bytes

_GAPS = 1_000  # empty rows up to which gaps are never worth closing

_RECENT = 1_000  # ids that are looked up apart from the sorted ones, at least

Mask = npt.NDArray[np.bool_]

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
