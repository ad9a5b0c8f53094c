"""The base class of indexes that an engine has: bring its table up to date, see what it lacks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from ...nodegraph.concurrency import track
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.vector_table import TableState, does_without_tables

_BATCH = 1_000  # nodes that are written at once

_UPDATES = 3  # of the table before a search, which compares what others write meanwhile

_LONG = 1_000  # nodes whose indexing is worth a progress bar

Version = tuple[int, tuple[str, ...]]  # a group's revision, and what its search text depends on


class Table(Protocol):
    """What the tables of vectors and of words have in common; see ``VectorTable``."""

    def state(self) -> TableState | None:
        """Return what the table contains, of what this thread's state of the graph has."""
        ...

    def updating(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Keep others from updating the table."""
        ...

    def clear(self) -> None:
        """Remove everything."""
        ...

    def close(self) -> None:
        """Remove what is of no use to another process."""
        ...


TableT = TypeVar("TableT", bound=Table)

RecentT = TypeVar("RecentT")


class SyncedTable(ABC, Generic[TableT, RecentT]):
    """Keep what an engine has of one group up to date with the graph, for all processes.

    What the table has not taken in yet is compared beside it, so that a search sees the graph as
    it is. Call ``ready`` before the graph is held, which may write; search while it is held.

    Args:
        graph: The node graph.
        group: The group of nodes.
    """

    uses_search_text = True

    what: str
    """What a progress bar calls what is written."""

    def __init__(self, graph: NodeGraph, group: str) -> None:
        self._graph = graph
        self._group = group
        self._tables: dict[str, TableT] = {}  # by what is searched of a node
        self._lock = threading.Lock()
        self._recent: tuple[object, RecentT] | None = None  # of the latest states

    # What a subclass implements

    @abstractmethod
    def _make_table(self, text: str) -> TableT:
        """Return the table for a kind of search text."""

    @abstractmethod
    def _begin(self, table: TableT, ids: Sequence[str]) -> None:
        """Begin to write a whole group."""

    @abstractmethod
    def _write(
        self,
        table: TableT,
        removed: Sequence[str],
        nodes: Sequence[Node],
        state: TableState | None,
        dimension: int,
    ) -> int | None:
        """Write nodes; see ``VectorTable.write``.

        Args:
            table: The table.
            removed: Ids.
            nodes: New and changed nodes.
            state: What the table contains then, except for the dimension.
            dimension: That of the rows that are there.

        Returns:
            The dimension of the rows; None where they don't fit those that are there.
        """

    @abstractmethod
    def _compared(
        self, table: TableT, removed: Sequence[str], nodes: Sequence[Node], complete: bool
    ) -> RecentT:
        """Return what a table has missed, ready to be compared.

        Args:
            table: The table.
            removed: Ids.
            nodes: New and changed nodes.
            complete: Whether these are all nodes, and the table has to be passed over.
        """

    def _state_key(self, table: TableT, state: TableState | None) -> object:
        """Return what tells apart the states of a table."""
        return state

    def _finish(self, table: TableT) -> None:
        """Do what makes a large table quick; nothing by default."""

    # Following the graph

    def ready(self) -> None:
        """Bring the table up to date, before the graph is held.

        Raises:
            EmbeddingError: If the model fails, or returns no usable vectors.
            StoreError: If the engine can't be reached, or can't be written to.
            TransformError: If the group has to be built and its transform raises.
        """
        if does_without_tables():
            return
        for _ in range(_UPDATES):
            if (behind := self._behind()) is None:
                break
            table, state = behind
            # What another process is about to write is compared here, unless it is everything.
            with table.updating(wait=state is None) as free:
                if not free:
                    return
                if self._behind() is not None:
                    self._update()
        self._finish(self._table())

    def _table(self) -> TableT:
        """Return the table of what is searched of the group's nodes now."""
        text = self._graph.reader.search_version(self._group)[0]
        tables = self._tables
        if text not in tables:
            tables[text] = self._make_table(text)
        return tables[text]

    def _behind(self) -> tuple[TableT, TableState | None] | None:
        """Return the table and its state; None where it has the graph's."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            table = self._table()
            state = table.state()
            return None if _is_current(state, self._version()) else (table, state)

    def _version(self) -> Version:
        """Return the state of the group: a table that was written for another one is behind."""
        return self._graph.reader.revision(self._group), self._graph.reader.search_version(
            self._group
        )

    def _update(self) -> None:
        """Write what the table has missed; what is new in the meantime remains."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            table, (_, version) = self._table(), self._version()
            state = table.state()
            since = _since(state, version)
            changes = self._graph.reader.changes(self._group, since, stream=True)
            ids = self._graph.reader.ids(self._group) if changes.complete else []
        if changes.complete:
            self._write_all(table, ids, TableState(changes.revision, version, 0, 0))
            return
        dimension = 0 if state is None else state.dimension
        new = TableState(changes.revision, version, 0, dimension)
        if self._write(table, changes.removed, changes.added, new, dimension) is None:
            table.clear()

    def _write_all(self, table: TableT, ids: Sequence[str], state: TableState) -> None:
        """Write all nodes, batch by batch; an interruption costs a batch."""
        self._begin(table, ids)
        batches = range(0, len(ids), _BATCH)
        show = self._graph.progress if len(ids) >= _LONG else False
        dimension = 0
        what = f"{self.what} of {self._group}"
        for begin in track(batches, len(batches), what, " batches", show):
            nodes = self._graph.reader.existing_nodes(ids[begin : begin + _BATCH])
            dimension = self._write(table, [], nodes, None, dimension) or dimension
        self._write(table, [], [], state._replace(dimension=dimension), dimension)

    def close(self) -> None:
        """Let the engine forget what is of no use to another process."""
        for table in self._tables.values():
            table.close()

    def sync(self) -> None:
        """Do nothing: a search finds out what the table has, in the state that it reads."""

    def _view(self) -> tuple[TableT, TableState | None, RecentT | None]:
        """Return what there is to search in the state that this thread reads.

        The table, what it contains, and what it has missed.
        """
        table, version = self._table(), self._version()
        state = table.state()
        recent = None if _is_current(state, version) else self._missed(table, state, version)
        return table, state, recent

    def _missed(self, table: TableT, state: TableState | None, version: Version) -> RecentT:
        key = (self._state_key(table, state), version)
        with self._lock:
            if self._recent is not None and self._recent[0] == key:
                return self._recent[1]
        changes = self._graph.reader.changes(self._group, _since(state, version[1]))
        nodes = list(changes.added)
        recent = self._compared(table, changes.removed, nodes, changes.complete)
        with self._lock:
            self._recent = key, recent
        return recent


def _is_current(table: TableState | None, version: Version) -> bool:
    return table is not None and (table.revision, table.version) == version


def _since(state: TableState | None, version: tuple[str, ...]) -> int:
    """Return the revision after which changes count; 0 where everything is to be written."""
    return 0 if state is None or state.version != version else state.revision
