"""The nodes of one group as rows of a table: ids, order and metadata, for filters and ranking."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph import Node
from ...nodegraph.codec import decode, encode
from ..filters import Column, Condition, Filter
from .array_files import Arrays, join, pack, split, unpack

_GAPS = 1_000  # empty rows up to which gaps are never worth closing

Mask = npt.NDArray[np.bool_]

Orders = npt.NDArray[np.int64]

Metadata = Mapping[str, Any]


class NodeTable:
    """Number nodes upwards; a removed node's row stays empty until ``compact``.

    Attributes:
        ids: Node id by row, also of empty rows.
        living: How many rows have a node.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.living = 0
        self._rows: dict[str, int] | None = {}  # by id; None until a loaded table needs them
        self._alive: Mask = np.zeros(1024, np.bool_)
        self._orders: Orders = np.zeros(1024, np.int64)
        self._metadata = MetadataColumn()
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def alive(self) -> Mask:
        """Whether a row has a node, by row."""
        return self._alive[: len(self.ids)]

    @property
    def orders(self) -> Orders:
        """Place in document order, by row."""
        return self._orders[: len(self.ids)]

    @property
    def sparse(self) -> bool:
        """Whether most rows are empty, so that ``compact`` is worth its cost."""
        return len(self.ids) > 2 * self.living + _GAPS

    def add(self, nodes: Sequence[Node]) -> int:
        """Append nodes; return the row of the first."""
        first = len(self.ids)
        size = first + len(nodes)
        if size > len(self._alive):
            growth = max(size, 2 * len(self._alive)) - len(self._alive)
            self._alive = np.concatenate([self._alive, np.zeros(growth, np.bool_)])
            self._orders = np.concatenate([self._orders, np.zeros(growth, np.int64)])
        self._alive[first:size] = True
        self._orders[first:size] = [node.order for node in nodes]
        self.ids += [node.id for node in nodes]
        if self._rows is not None:
            self._rows.update(zip(self.ids[first:], range(first, size), strict=True))
        self._metadata.extend(n.metadata if n.own_metadata else n.inherited for n in nodes)
        self.living += len(nodes)
        return first

    def rows(self) -> dict[str, int]:
        """Return the row of each node, by its id."""
        if self._rows is None:  # they came from a file
            self._rows = {self.ids[row]: row for row in np.flatnonzero(self.alive).tolist()}
        return self._rows

    def remove(self, ids: Collection[str]) -> list[int]:
        """Empty the rows of nodes; return these rows. Unknown ids do nothing."""
        rows = self.rows() if ids else {}
        removed = [rows.pop(node_id) for node_id in ids if node_id in rows]
        for row in removed:
            self._alive[row] = False
            self._metadata.delete(row)
        self.living -= len(removed)
        return removed

    def compact(self) -> None:
        """Drop empty rows and number the others anew, in order."""
        living = np.flatnonzero(self.alive).tolist()
        self._orders = np.concatenate([self._orders[living], np.zeros(1024, np.int64)])
        self._alive = np.arange(len(self._orders)) < len(living)
        self.ids = [self.ids[row] for row in living]
        self._metadata.select(living)
        self._rows = {node_id: row for row, node_id in enumerate(self.ids)}
        self._columns.clear()

    def matching(self, filter: Filter) -> Mask | None:
        """Return which rows meet a filter, None where it has no condition.

        Empty rows may be among them; combine the result with ``alive``.
        """
        if filter.condition is None and not filter.parts:
            return None
        return filter.mask(self._meets)

    def _meets(self, field: str, condition: Condition) -> Mask:
        column = self._columns.setdefault(field, Column(field))
        column.extend(self._metadata.values())
        return column.meets(condition)

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the table.

        Raises:
            TypeError: If a metadata value can't be stored.
        """
        ids, id_lengths = join(self.ids)
        steps = np.diff(self.orders, prepend=0)
        return {
            "ids": ids,
            "id_lengths": id_lengths,
            "alive": np.packbits(self.alive),
            "orders_low": pack(steps),
            "orders_high": pack(steps >> 32, mostly_zero=True),
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
        table.ids, table._rows = split(arrays["ids"], arrays["id_lengths"]), None
        low = unpack(arrays["orders_low"]).astype(np.int64)
        high = unpack(arrays["orders_high"], mostly_zero=True).astype(np.int64)
        size, alive = len(table.ids), arrays["alive"]
        if not len(low) == len(high) == size or len(alive) != (size + 7) // 8:
            raise ValueError(f"the arrays of an index don't fit its {size} nodes")
        table._alive = np.unpackbits(alive, count=size).view(np.bool_)
        table._orders = np.cumsum(high << 32 | low)
        table._metadata = MetadataColumn.from_arrays(arrays, size)
        table.living = int(table._alive.sum())
        return table


class MetadataColumn:
    """Hold one metadata mapping a row, None for an empty row.

    What comes from a file is parsed at first use, each distinct mapping once.
    """

    def __init__(self) -> None:
        self._values: list[Metadata | None] = []
        self._encoded_rows = 0  # rows before the first of the values that are not parsed yet
        self._encoded: list[str] = []  # their distinct mappings
        self._codes: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)  # 0 for empty, else index + 1
        self._parsing = threading.Lock()

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
                self._encoded, self._codes = [], self._codes[:0]
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
            packed = pack(np.concatenate([self._codes, np.array(codes, np.uint32)]))
        texts, lengths = join(list(numbers))
        return {"metadata": texts, "metadata_lengths": lengths, "metadata_codes": packed}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], size: int) -> MetadataColumn:
        """Restore a column of so many rows from what ``arrays`` returned.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        column = cls()
        column._encoded = split(arrays["metadata"], arrays["metadata_lengths"])
        column._codes, column._encoded_rows = unpack(arrays["metadata_codes"]), size
        if len(column._codes) != size or column._codes.max(initial=0) > len(column._encoded):
            raise ValueError(f"the metadata does not fit {size} nodes")
        return column
