"""The nodes of one group, numbered for the arrays of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..nodegraph import Node
from .filters import Column, Condition


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
        self._numbers: dict[str, int] = {}
        self._alive: npt.NDArray[np.bool_] = np.zeros(1024, np.bool_)
        self._orders: npt.NDArray[np.int64] = np.zeros(1024, np.int64)
        self._metadata: list[Mapping[str, Any] | None] = []
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
        self._numbers.update(zip(self.ids[first:], range(first, size), strict=True))
        self._metadata += [n.metadata if n.own_metadata else n.inherited for n in nodes]
        self.living += len(nodes)
        return first

    def remove(self, ids: Iterable[str]) -> list[int]:
        """Empty the slots of nodes; return their numbers. Unknown ids do nothing."""
        gone = [self._numbers.pop(i) for i in ids if i in self._numbers]
        for slot in gone:
            self._alive[slot] = False
            self._metadata[slot] = None
        self.living -= len(gone)
        return gone

    def compact(self) -> None:
        """Close the gaps, numbering the nodes anew in order."""
        kept = np.flatnonzero(self.alive)
        self._orders = np.concatenate([self._orders[kept], np.zeros(1024, np.int64)])
        self._alive = np.arange(len(self._orders)) < len(kept)
        self.ids = [self.ids[slot] for slot in kept]
        self._metadata = [self._metadata[slot] for slot in kept]
        self._numbers = {i: slot for slot, i in enumerate(self.ids)}
        self._columns.clear()

    def matching(self, conditions: Mapping[str, Condition]) -> npt.NDArray[np.bool_] | None:
        """Return which slots meet every condition, None where there is no condition."""
        allowed = None
        for field, condition in conditions.items():
            column = self._columns.setdefault(field, Column(field))
            column.extend(self._metadata)
            meets = column.meets(condition)
            allowed = meets if allowed is None else allowed & meets
        return allowed
