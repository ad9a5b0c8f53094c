"""The nodes of a group, read anew each time they are iterated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from .node import Node


class StreamedNodes(Sequence[Node]):
    """Read nodes one by one, in document order, so that a large group is never held whole.

    The graph must be held as long as they are used.

    Args:
        read: Returns all nodes, each time it is called.
        size: How many there are.
    """

    def __init__(self, read: Callable[[], Iterator[Node]], size: int) -> None:
        self._read = read
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Node]:
        return self._read()

    @overload
    def __getitem__(self, index: int) -> Node: ...

    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...

    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        return list(self)[index]
