"""One metadata field of all rows of a table, to evaluate conditions on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..conditions import MISSING, Condition, DatedText, identity

_MAX_CACHED = 32  # conditions whose answers a column remembers

Mask = npt.NDArray[np.bool_]


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
        self._extending = threading.Lock()

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
