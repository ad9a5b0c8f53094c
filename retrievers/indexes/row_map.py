"""Which slots share a vector."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
_NONE = -1


class RowMap:
    """Tell each slot's row among distinct vectors, and each row's slots.

    Attributes:
        rows: Row by slot.
    """

    def __init__(self) -> None:
        self.rows: Numbers = np.zeros(0, np.int64)
        self._first: list[int] = []  # a row's first slot, where it has one
        self._copies: dict[int, list[int]] = {}  # all slots of a row that has several

    def extend(self, rows: Numbers, size: int) -> None:
        """Note the rows of the next slots; there are ``size`` rows now.

        Raises:
            ValueError: If there is no such row.
        """
        if len(rows) and not 0 <= rows.min() <= rows.max() < size:
            raise ValueError(f"slots have the rows {rows.min()} to {rows.max()} of {size}")
        self._first += [_NONE] * (size - len(self._first))
        for slot, row in enumerate(rows.tolist(), len(self.rows)):
            if self._first[row] == _NONE:
                self._first[row] = slot
            else:
                self._copies.setdefault(row, [self._first[row]]).append(slot)
        self.rows = np.concatenate([self.rows, rows])

    def having(self, slots: Mask) -> Mask | None:
        """Return which rows any of these slots has, None for all."""
        mask = np.zeros(len(self._first), np.bool_)
        mask[self.rows[slots]] = True
        return None if mask.all() else mask

    def slots(
        self, rows: Numbers, scores: npt.NDArray[np.float64]
    ) -> tuple[Numbers, npt.NDArray[np.float64]]:
        """Return all slots of rows that have any, and the scores of their rows."""
        if not self._copies:
            return np.array([self._first[row] for row in rows.tolist()], np.int64), scores
        slots = [self._copies.get(row) or [self._first[row]] for row in rows.tolist()]
        every = np.array([slot for each in slots for slot in each], np.int64)
        return every, np.repeat(scores, [len(each) for each in slots])
