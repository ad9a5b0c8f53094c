"""Which states of which graphs a block has read, and whether they are still the newest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Protocol


class Versioned(Protocol):
    """What has states that are numbered: the access to a graph."""

    def newest(self) -> int:
        """Return the number of the newest state, which changes with every write."""
        ...


class Holdable(Protocol):
    """What can be held in one state: a graph."""

    def reading(self, *groups: str) -> AbstractContextManager[None]:
        """Hold one state in which the groups are built."""
        ...


class OutsideHoldError(BaseException):
    """A graph or group is read that is not held; not for an ``except Exception`` on the way."""


class Observation:
    """Tell whether all that is read in a block is of one state of each graph.

    The first state that is read of a graph is noted. If it is still the newest at the end, no
    other one has been read (the rule of a sequence lock). What the block itself builds changes
    nothing that it has read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the block may read in several threads
        self._states: dict[Versioned, int] = {}
        self._groups: dict[Holdable, set[str]] = {}
        self._holds = False

    def note(self, access: Versioned, state: int) -> None:
        """Note that a state of a graph is read."""
        with self._lock:
            self._states.setdefault(access, state)

    def note_groups(self, graph: Holdable, *groups: str) -> None:
        """Note that groups of a graph are read.

        Raises:
            OutsideHoldError: If they had to be held with the others, and are not.
        """
        with self._lock:
            known = self._groups.get(graph)
            new = self._holds and (known is None or not known.issuperset(groups))
            self._groups.setdefault(graph, set()).update(groups)
        if new:
            raise OutsideHoldError

    def advance(self, access: Versioned, before: int, after: int) -> None:
        """Go on from the state that a build in the block has made of the one that was read."""
        with self._lock:
            if self._states.get(access) == before:
                self._states[access] = after

    def is_current(self) -> bool:
        """Return whether the states that were read are the newest."""
        return all(access.newest() == state for access, state in list(self._states.items()))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold all graphs that were read, with their groups built; nobody writes meanwhile."""
        groups = {graph: tuple(names) for graph, names in self._groups.items()}
        graphs = sorted(groups, key=id)  # in one order: two threads can't wait for each other
        for graph in graphs:  # built before any is held
            with graph.reading(*groups[graph]):
                pass
        with ExitStack() as held:
            for graph in graphs:
                held.enter_context(graph.reading(*groups[graph]))
            self._holds = True
            try:
                yield
            finally:
                self._holds = False


current_observation: ContextVar[Observation | None] = ContextVar("observation", default=None)
"""What notes the states that are read now; None where nothing does."""


@contextmanager
def observing(observation: Observation | None = None) -> Iterator[Observation]:
    """Note what is read in the block, also in the threads and tasks that are started in it.

    Args:
        observation: What notes it; None for a new one.
    """
    observation = observation or Observation()
    token = current_observation.set(observation)
    try:
        yield observation
    finally:
        current_observation.reset(token)
