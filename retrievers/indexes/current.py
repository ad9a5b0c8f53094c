"""Hold the locks of graphs while their groups are built and their indexes are current.

No other module updates an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from ...nodegraph.errors import StoreError
from ...nodegraph.graph import NodeGraph

_MAX_BUILDS = 100  # attempts to find the groups of several graphs in a built state


class Follower(Protocol):
    """An index that follows the changes of a graph."""

    def sync(self) -> None:
        """Apply the changes of the graph. The graph is locked."""


@contextmanager
def current(
    groups: Mapping[NodeGraph, Iterable[str]], indexes: Iterable[Follower]
) -> Iterator[None]:
    """Hold the locks of graphs with built groups and current indexes until the block ends.

    Args:
        groups: The names of the groups to build, by graph.
        indexes: The indexes of these groups. They are searched in the block.

    Raises:
        UnknownGroupError: If a graph has no such group.
        TransformError: If a transform raises while a group is built.
        StoreError: If documents repeatedly change before the groups are locked.
    """
    with reading(groups):
        for index in indexes:
            index.sync()
        yield


def reading(groups: Mapping[NodeGraph, Iterable[str]]) -> AbstractContextManager[None]:
    """Hold the locks of several graphs with built groups until the block ends.

    All threads lock the graphs in the same order, to avoid deadlocks.

    Args:
        groups: The names of the groups to build, by graph.

    Raises:
        UnknownGroupError: If a graph has no such group.
        TransformError: If a transform raises while a group is built.
        StoreError: If documents repeatedly change before the groups are locked.
    """
    if len(groups) == 1:
        ((graph, names),) = groups.items()
        return graph.reader.reading(*names)
    return _reading_all(groups)


@contextmanager
def _reading_all(groups: Mapping[NodeGraph, Iterable[str]]) -> Iterator[None]:
    ordered = sorted(groups, key=lambda graph: graph.reader.lock_order)
    for _ in range(_MAX_BUILDS):
        for graph in ordered:  # built before locking, since transforms may read other graphs
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
