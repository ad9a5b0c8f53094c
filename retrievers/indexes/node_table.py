"""The nodes of one group, numbered for the arrays of an index."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph import Node
from ...nodegraph.codec import decode, encode
from ..filters import Column, Condition
from .array_files import join, pack, split, unpack


class Slots:
    """Number nodes upwards; a removed node's number stays empty until ``compact``.

    Attributes:
        ids: Node id by slot.
        alive: Whether a slot is taken, by slot (bool).
        orders: Place in document order, by slot (int64).
        living: How many are taken.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.living = 0
        self._numbers: dict[str, int] | None = {}  # None until a loaded index needs them
        self._alive: npt.NDArray[np.bool_] = np.zeros(1024, np.bool_)
        self._orders: npt.NDArray[np.int64] = np.zeros(1024, np.int64)
        self._metadata = SlotMetadata()
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether a slot is taken."""
        return self._alive[: len(self.ids)]

    @property
    def orders(self) -> npt.NDArray[np.int64]:
        """Place in document order."""
        return self._orders[: len(self.ids)]

    def add(self, nodes: Sequence[Node]) -> int:
        """Number new nodes; return the first number."""
        first = len(self.ids)
        size = first + len(nodes)
        if size > len(self._alive):
            room = max(size, 2 * len(self._alive)) - len(self._alive)
            self._alive = np.concatenate([self._alive, np.zeros(room, np.bool_)])
            self._orders = np.concatenate([self._orders, np.zeros(room, np.int64)])
        self._alive[first:size] = True
        self._orders[first:size] = [node.order for node in nodes]
        self.ids += [node.id for node in nodes]
        if self._numbers is not None:
            self._numbers.update(zip(self.ids[first:], range(first, size), strict=True))
        self._metadata.extend(n.metadata if n.own_metadata else n.inherited for n in nodes)
        self.living += len(nodes)
        return first

    def numbers(self) -> dict[str, int]:
        """Return the slot of each node that is there, by its id."""
        if self._numbers is None:  # they came from a file
            alive = np.flatnonzero(self.alive).tolist()
            self._numbers = {self.ids[slot]: slot for slot in alive}
        return self._numbers

    def remove(self, ids: Iterable[str]) -> list[int]:
        """Empty the slots of nodes; return their numbers. Unknown ids do nothing."""
        gone = []
        for i in ids:
            numbers = self.numbers()
            if i in numbers:
                gone.append(numbers.pop(i))
        for slot in gone:
            self._alive[slot] = False
            self._metadata.forget(slot)
        self.living -= len(gone)
        return gone

    def compact(self) -> None:
        """Close the gaps, numbering the nodes anew in order."""
        kept = np.flatnonzero(self.alive).tolist()
        self._orders = np.concatenate([self._orders[kept], np.zeros(1024, np.int64)])
        self._alive = np.arange(len(self._orders)) < len(kept)
        self.ids = [self.ids[slot] for slot in kept]
        self._metadata.choose(kept)
        self._numbers = {i: slot for slot, i in enumerate(self.ids)}
        self._columns.clear()

    def matching(self, conditions: Mapping[str, Condition]) -> npt.NDArray[np.bool_] | None:
        """Return which slots meet every condition, None where there is no condition."""
        allowed = None
        for field, condition in conditions.items():
            column = self._columns.setdefault(field, Column(field))
            column.extend(self._metadata.read())
            meets = column.meets(condition)
            allowed = meets if allowed is None else allowed & meets
        return allowed

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays for a file, of which ``from_arrays`` makes the same slots again.

        Raises:
            TypeError: If a metadata value has no form in a file.
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
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Slots:
        """Make slots of what ``arrays`` returned; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        made = cls()
        made.ids, made._numbers = split(arrays["ids"], arrays["id_lengths"]), None
        low = unpack(arrays["orders_low"]).astype(np.int64)
        high = unpack(arrays["orders_high"], mostly_zero=True).astype(np.int64)
        size, alive = len(made.ids), arrays["alive"]
        if not len(low) == len(high) == size or len(alive) != (size + 7) // 8:
            raise ValueError(f"the arrays of an index don't fit its {size} slots")
        made._alive = np.unpackbits(alive, count=size).view(np.bool_)
        made._orders = np.cumsum(high << 32 | low)
        made._metadata = SlotMetadata.from_arrays(arrays, size)
        made.living = int(made._alive.sum())
        return made


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
