"""Hold the locks of graphs while their groups are built and their indexes are up to date.

No other module updates an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from ...nodegraph.errors import StoreError
from ...nodegraph.graph import NodeGraph

# The number of attempts to lock several graphs while all of their groups are built.
_MAX_BUILDS = 100


class Follower(Protocol):
    """An index that can be updated with the changes of a graph."""

    def sync(self) -> None:
        """Apply the changes of the graph. The caller holds the lock of the graph."""


@contextmanager
def current(
    groups: Mapping[NodeGraph, Iterable[str]],
    indexes: Iterable[Follower],
    light: bool = False,
) -> Iterator[None]:
    """Build groups and update indexes, and hold the locks of the graphs until the block ends.

    Args:
        groups: The names of the groups to build, by graph.
        indexes: The indexes of these groups, which can be searched in the block.
        light: Whether the block sends few or no queries to the store if the indexes are current.
            See ``GraphReader.reading``.

    Raises:
        UnknownGroupError: If a graph does not have one of the groups.
        TransformError: If a transform raises an error while a group is built.
        StoreError: If documents are repeatedly changed before the groups are locked.
    """
    if light:
        with reading(groups, light):
            if all([_is_current(index) for index in indexes]):
                yield
                return
    with reading(groups):
        for index in indexes:
            index.sync()
        yield


def _is_current(index: Follower) -> bool:
    """Return whether an index is known to reflect all changes of its graph."""
    return bool(index.is_current()) if hasattr(index, "is_current") else False


def reading(
    groups: Mapping[NodeGraph, Iterable[str]], light: bool = False
) -> AbstractContextManager[None]:
    """Build groups of several graphs, and hold the locks of the graphs until the block ends.

    All threads lock the graphs in the same order, so that deadlocks cannot occur.

    Args:
        groups: The names of the groups to build, by graph.
        light: Whether the block sends few or no queries to the store. This is ignored if there are
            several graphs.

    Raises:
        UnknownGroupError: If a graph does not have one of the groups.
        TransformError: If a transform raises an error while a group is built.
        StoreError: If documents are repeatedly changed before the groups are locked.
    """
    if len(groups) == 1:
        ((graph, names),) = groups.items()
        return graph.reader.reading(*names, light=light)
    return _reading_all(groups)


@contextmanager
def _reading_all(groups: Mapping[NodeGraph, Iterable[str]]) -> Iterator[None]:
    ordered = sorted(groups, key=lambda graph: graph.reader.lock_order)
    for _ in range(_MAX_BUILDS):
        # Groups are built before locking, since transforms may read other graphs.
        for graph in ordered:
            with graph.reader.reading(*groups[graph]):
                pass
        with ExitStack() as locks:
            for graph in ordered:
                locks.enter_context(graph.reader.reading())
            if all(graph.reader.is_fresh(name) for graph in ordered for name in groups[graph]):
                yield
                return
    raise StoreError(
        f"the groups of {len(ordered)} graphs were built {_MAX_BUILDS} times and are still "
        "outdated: documents change faster than they are processed; retry later"
    )
