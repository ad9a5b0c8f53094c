"""The metadata of an index's slots, left as text until a filter asks for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph.codec import decode, encode
from .packing import pack, unpack
from .strings import join, split

Metadata = Mapping[str, Any]
Codes = npt.NDArray[np.uint32]


class SlotMetadata:
    """Keep one mapping a slot, None for an empty slot.

    What comes from a file is parsed when it is first needed, each distinct mapping once.
    """

    def __init__(self) -> None:
        self._values: list[Metadata | None] = []
        self._unread = 0  # slots before the values' first
        self._texts: list[str] = []  # distinct, of the unread slots
        self._codes: Codes = np.zeros(0, np.uint32)  # 0 for no metadata, else a text's place + 1
        self._reading = threading.Lock()

    def extend(self, values: Iterable[Metadata]) -> None:
        """Take in the metadata of the next slots."""
        self._values += values

    def forget(self, slot: int) -> None:
        """Let go of the metadata of a slot that was emptied."""
        if slot >= self._unread:
            self._values[slot - self._unread] = None

    def choose(self, slots: Sequence[int]) -> None:
        """Keep some slots, numbered anew in the order given."""
        values = self.read()
        self._values = [values[slot] for slot in slots]

    def read(self) -> Sequence[Metadata | None]:
        """Return all, by slot."""
        with self._reading:
            if self._unread:
                parsed = [None, *map(decode, self._texts)]
                read = [parsed[code] for code in self._codes.tolist()]
                self._values, self._unread = read + self._values, 0
                self._texts, self._codes = [], self._codes[:0]
            return self._values

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of which ``from_arrays`` makes the same again.

        Raises:
            TypeError: If a value has no form in a file.
        """
        with self._reading:
            numbers = {text: number for number, text in enumerate(self._texts, 1)}
            known: dict[int, int] = {}  # most nodes share a mapping with their siblings
            codes: list[int] = []
            for value in self._values:
                code = known.get(id(value))
                if code is None:
                    code = numbers.setdefault(encode(value), len(numbers) + 1) if value else 0
                    known[id(value)] = code
                codes.append(code)
            packed = pack(np.concatenate([self._codes, np.array(codes, np.uint32)]))
        texts, lengths = join(list(numbers))
        return {"metadata": texts, "metadata_lengths": lengths, "metadata_codes": packed}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], size: int) -> SlotMetadata:
        """Make it of what ``arrays`` returned, for so many slots.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        made = cls()
        made._texts = split(arrays["metadata"], arrays["metadata_lengths"])
        made._codes, made._unread = unpack(arrays["metadata_codes"]), size
        if len(made._codes) != size or made._codes.max(initial=0) > len(made._texts):
            raise ValueError(f"the metadata does not fit {size} slots")
        return made
