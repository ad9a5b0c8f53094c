"""What the rows of a table have beside an id: documents, metadata, values to filter by."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain, groupby, repeat
from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph.codec import decode, encode
from ...nodegraph.locking import mutex
from ..conditions import MISSING, Condition, DatedText, identity
from .array_files import Arrays, PackedTexts, pack_texts

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
