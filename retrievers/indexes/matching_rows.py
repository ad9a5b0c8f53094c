"""Find the rows of a table that match a filter, and cache them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..conditions import MISSING, Condition, identity
from .row_ids import Mask, Rows

_MAX_CACHED = 32  # the maximum number of cached conditions per field

_MAX_KEPT = 64  # the maximum number of filters whose rows are cached

_MAX_BYTES = 32_000_000  # the maximum memory of all cached rows

_FEW = 1 / 50  # maximum share of rows that are scored one by one


class FieldValues:
    """The distinct values of a metadata field.

    A condition is evaluated once for each distinct value, and the results are cached.

    Attributes:
        codes: The numbers of the values. Adjacent rows with the same metadata share an entry.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.codes: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._numbers: dict[Hashable, int] = {}
        self._decided: dict[Hashable, Mask] = {}

    def extend(self, values: Iterable[Any]) -> None:
        """Append values, which are ``MISSING`` for nodes without the field."""
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
        """Return a boolean array that is True for entries that meet a condition."""
        good = self._decided.get(condition.key, np.zeros(0, np.bool_))
        if len(good) < len(self.values):
            new = [condition(value) for value in self.values[len(good) :]]
            good = np.append(good, np.array(new, np.bool_))
            if len(self._decided) >= _MAX_CACHED:
                self._decided = {}
            self._decided[condition.key] = good
        return good[self.codes]


class MatchingRows(NamedTuple):
    """The rows of a table that match a filter. They can include empty rows.

    Attributes:
        mask: A boolean array that is True for rows that match the filter.
        rows: The matching rows in ascending order if there are only a few, otherwise None.
    """

    mask: Mask
    rows: Rows | None

    @classmethod
    def of(cls, mask: Mask) -> MatchingRows:
        """Create an object from a boolean array of the matching rows."""
        is_few = np.count_nonzero(mask) <= _FEW * len(mask)
        return cls(mask, np.flatnonzero(mask) if is_few else None)

    @property
    def size(self) -> int:
        """The memory that the arrays occupy, in bytes."""
        return self.mask.nbytes + (0 if self.rows is None else self.rows.nbytes)


class KeptMatches:
    """A cache of the rows that match recently used filters, for one number of rows."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, MatchingRows] = {}
        self._bytes = 0

    def get(self, key: Hashable, size: int) -> MatchingRows | None:
        """Return the cached rows that match a filter, or None if they are not in the cache.

        The entry is removed if the table has a different number of rows by now.
        """
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        if len(kept.mask) != size:
            self._bytes -= kept.size
            return None
        self._kept[key] = kept  # now the most recently used
        return kept

    def put(self, key: Hashable, matching: MatchingRows) -> None:
        """Cache the rows that match a filter, and drop the least recently used rows."""
        self._kept[key] = matching
        self._bytes += matching.size
        while len(self._kept) > _MAX_KEPT or self._bytes > _MAX_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= self._kept.pop(oldest).size
