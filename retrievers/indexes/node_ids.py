"""The ids of nodes, by row of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .array_files import Arrays
from .packed_texts import PackedTexts, pack_texts

_RECENT = 1_000  # ids that are looked up apart from the sorted ones, at least

Rows = npt.NDArray[np.integer[Any]]


class NodeIds(Sequence[str]):
    """Number ids upwards: those of a file, which stay there, and later ones.

    An id may be there several times, of which the caller says that at most one is alive.

    Args:
        stored: The first ids.
    """

    def __init__(self, stored: Sequence[str] = ()) -> None:
        self._stored = stored
        self._later: list[str] = []
        self._hashes: npt.NDArray[np.int64] | None = None  # of the ids by ``_order``, ascending
        self._recent: dict[str, int] = {}  # the rows that came since
        self._order: npt.NDArray[np.intp] = np.zeros(0, np.intp)

    def __len__(self) -> int:
        return len(self._stored) + len(self._later)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        first = len(self._stored)
        return self._stored[index] if index < first else self._later[index - first]

    def __iter__(self) -> Iterator[str]:
        yield from self._stored
        yield from self._later

    def take(self, rows: Rows) -> list[str]:
        """Return the ids of some rows, (n,)."""
        first, later = len(self._stored), self._later
        if not first:
            return [later[row] for row in rows.tolist()]
        if isinstance(self._stored, PackedTexts) and (not later or rows.max(initial=0) < first):
            return self._stored.take(rows)
        return [self[row] for row in rows.tolist()]

    def extend(self, ids: Collection[str]) -> None:
        """Append ids."""
        if self._hashes is not None:
            self._recent.update(zip(ids, range(len(self), len(self) + len(ids)), strict=True))
        self._later += ids

    def rows_of(self, ids: Collection[str], alive: Callable[[int], Any]) -> dict[str, int]:
        """Return the rows of those of some ids that are there and alive.

        What it takes does not grow with the number of all ids, except for the first time.
        """
        if self._hashes is None or len(self._recent) > len(self._hashes) + _RECENT:
            hashes = np.fromiter(map(hash, self), np.int64, len(self))
            self._order = np.argsort(hashes, kind="stable")
            self._hashes, self._recent = hashes[self._order], {}
        wanted = list(ids)
        keys = np.fromiter(map(hash, wanted), np.int64, len(wanted))
        begins = np.searchsorted(self._hashes, keys).tolist()
        ends = np.searchsorted(self._hashes, keys, "right").tolist()
        found: dict[str, int] = {}
        for node_id, begin, end in zip(wanted, begins, ends, strict=True):
            rows = self._order[begin:end].tolist()
            if node_id in self._recent:
                rows.append(self._recent[node_id])
            for row in rows:
                if alive(row) and self[row] == node_id:
                    found[node_id] = row
        return found

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
