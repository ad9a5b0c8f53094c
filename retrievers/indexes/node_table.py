"""The nodes of one group as rows of a table: ids, order and metadata, for filters and ranking."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph import Node, nearest_names
from ...nodegraph.codec import decode, encode
from ..comparisons import MISSING
from ..conditions import Condition
from ..filters import Filter
from .array_files import Arrays, join, pack, split, unpack
from .column import Column

logger = logging.getLogger(__name__)

_MAX_MASKS = 8  # filters whose rows a table remembers

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
        self._rows: dict[str, int] | None = None  # by id; None until something is removed
        self._alive: Mask = np.zeros(1024, np.bool_)
        self._orders: Orders = np.zeros(1024, np.int64)
        self._metadata = MetadataColumn()
        self._documents: list[str] = []  # ids, by row
        self._clear_filters()

    def _clear_filters(self) -> None:
        self._columns: dict[str | None, Column] = {}
        self._masks: dict[Hashable, Mask] = {}

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
        document = self._documents[-1] if self._documents else ""
        for node in nodes:  # one text for the nodes of a document, as they come from a file
            document = node.document_id if node.document_id != document else document
            self._documents.append(document)
        self._masks = {}
        self.living += len(nodes)
        return first

    def rows(self) -> dict[str, int]:
        """Return the row of each node, by its id."""
        if self._rows is None:
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
        self._documents = [self._documents[row] for row in living]
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
        if mask is None:
            mask = filter.mask(self._meets)
            if mask is not None and len(masks) < _MAX_MASKS:
                masks[key] = mask
            elif mask is not None:
                self._masks = {key: mask}
        return mask

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
            return len(self.ids), lambda begin: self._documents[begin:]
        metadata = self._metadata.values()
        return len(metadata), lambda begin: [
            values.get(field, MISSING) if values else MISSING for values in metadata[begin:]
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
        ids, id_lengths = join(self.ids)
        steps = np.diff(self.orders, prepend=0)
        # Of documents themselves nothing: the ids are there already.
        runs = [] if self._documents == self.ids else groupby(self._documents)
        documents = [(document, sum(1 for _ in rows)) for document, rows in runs]
        document_ids, document_lengths = join([document for document, _ in documents])
        return {
            "ids": ids,
            "id_lengths": id_lengths,
            "alive": np.packbits(self.alive),
            "orders_low": pack(steps),
            "orders_high": pack(steps >> 32, mostly_zero=True),
            "documents": document_ids,
            "document_lengths": document_lengths,
            "document_rows": pack(np.array([size for _, size in documents], np.uint32)),
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
        table.ids = split(arrays["ids"], arrays["id_lengths"])
        low = unpack(arrays["orders_low"]).astype(np.int64)
        high = unpack(arrays["orders_high"], mostly_zero=True).astype(np.int64)
        size, alive = len(table.ids), arrays["alive"]
        if not len(low) == len(high) == size or len(alive) != (size + 7) // 8:
            raise ValueError(f"the arrays of an index don't fit its {size} nodes")
        table._alive = np.unpackbits(alive, count=size).view(np.bool_)
        table._orders = np.cumsum(high << 32 | low)
        table._metadata = MetadataColumn.from_arrays(arrays, size)
        documents = split(arrays["documents"], arrays["document_lengths"])
        rows = unpack(arrays["document_rows"]).tolist()
        if len(documents) != len(rows) or (documents and sum(rows) != size):
            raise ValueError(f"the documents don't fit {size} nodes")
        table._documents = list(chain.from_iterable(map(repeat, documents, rows)))
        if not documents:
            table._documents = list(table.ids)
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
