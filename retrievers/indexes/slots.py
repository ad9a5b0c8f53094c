"""The nodes of one group, numbered for the arrays of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph import Node
from ..filters import Column, Condition
from .packing import pack, unpack
from .slot_metadata import SlotMetadata
from .strings import join, split


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
