"""The ids of the nodes in a table, which can be looked up by row and by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from .array_files import Arrays
from .stored_texts import StoredTexts, TextLookup, hashes_of, pack_lookup, pack_texts

Mask = npt.NDArray[np.bool_]

Rows = npt.NDArray[np.int64]

_NAME = "ids"


class RowIds:
    """The ids of the rows of a table. The first ids can be in a file, which is read on demand.

    The same id can occur in several rows over time. The latest of these rows is found, and it may
    be empty.
    """

    def __init__(self) -> None:
        self._stored: StoredTexts | None = None
        self._lookup: TextLookup | None = None
        self._first = 0  # the number of ids in the file
        self._later: list[str] = []
        self._read: dict[int, str] = {}  # the ids that were read from the file, by row
        # The rows of ids that were added later, and of ids in the file that were used.
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return self._first + len(self._later)

    def extend(self, ids: Sequence[str]) -> None:
        """Append the ids of new rows."""
        first = len(self)
        self._later.extend(ids)
        self._rows.update(zip(ids, range(first, len(self)), strict=True))

    def take(self, rows: Rows, alive: Mask) -> list[str]:
        """Return the ids of rows.

        Args:
            rows: The rows.
            alive: A boolean array that is True for rows that hold a node.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        later = self._later
        if self._stored is None:
            return [later[row] for row in rows.tolist()]
        first = self._first
        known = self._read
        numbers = rows.tolist()
        unknown = [row for row in numbers if row not in known and row < first]
        if unknown:
            stored_rows = np.array(unknown, np.int64)
            texts = self._stored.take(stored_rows)
            known.update(zip(unknown, texts, strict=True))
            are_alive = alive.take(stored_rows).tolist()
            for row, node_id, is_alive in zip(unknown, texts, are_alive, strict=True):
                if is_alive:
                    self._rows.setdefault(node_id, row)  # such ids will be looked up next
        return [known[row] if row < first else later[row - first] for row in numbers]

    def find(self, node_id: str) -> int:
        """Return the row of an id, or -1 if the id has never been in the table.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        row = self._rows.get(node_id)
        if row is not None:
            return row
        return -1 if self._lookup is None else self.find_all([node_id])[0]

    def find_all(self, ids: Iterable[str]) -> list[int]:
        """Return the row of each id, or -1 if the id has never been in the table.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        known = self._rows
        ids = [*ids]
        if self._lookup is not None:
            unknown = [node_id for node_id in ids if node_id not in known]
            rows = self._lookup.find(unknown) if unknown else []
            for node_id, row in zip(unknown, rows, strict=True):
                if row >= 0:
                    known.setdefault(node_id, row)  # another thread may have added the id again
        return [known.get(node_id, -1) for node_id in ids]

    def arrays(self, alive: Mask) -> Arrays:
        """Return the ids as arrays for a file.

        Args:
            alive: A boolean array that is True for rows that hold a node. Other rows cannot be
                found in the file.

        Raises:
            MissingNodeError: If the previous file is damaged.
        """
        places = self._first + np.flatnonzero(alive[self._first :])
        hashes = hashes_of([self._later[row - self._first] for row in places.tolist()])
        if self._stored is None or self._lookup is None:
            return {**pack_texts(_NAME, self._later), **pack_lookup(_NAME, hashes, places)}
        former_hashes, former_places = self._lookup.pairs()
        is_kept = alive.take(former_places)
        hashes = np.concatenate([former_hashes[is_kept], hashes])
        places = np.concatenate([former_places[is_kept], places])
        return {
            **self._stored.arrays(_NAME, self._later),
            **pack_lookup(_NAME, hashes, places),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> RowIds:
        """Restore ids from the result of ``arrays``.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
        """
        ids = cls()
        ids._stored = StoredTexts.from_arrays(arrays, _NAME)
        ids._lookup = TextLookup.from_arrays(arrays, _NAME, ids._stored)
        ids._first = len(ids._stored)
        return ids
