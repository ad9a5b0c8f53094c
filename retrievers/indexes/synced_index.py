"""The base class of indexes: follow the changes of a group, and keep a copy in a file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.locking import Lock
from ...nodegraph.node import Node
from ...nodegraph.storage.graph_store import Changes
from .array_files import Arrays, load_arrays, save_arrays

logger = logging.getLogger(__name__)

# Changes that the file does not contain yet. Above this number, plus this share of the nodes, the
# file is written at once.
_UNSAVED = 1_000

_UNSAVED_SHARE = 8

# With this number of changes or fewer it is not written even when the graph is closed.
_WORTH_SAVING = 250


# The revision while the index is changed, also in a process that is forked off then: of no state.
_HALF_MADE = -1


class SyncedIndex:
    """Keep an index of one group up to date with the graph.

    A subclass says how nodes are added and removed, and searches:

    - ``clear()`` empties the index; it is called first of all.
    - ``remove(ids)`` and ``add(nodes, prepared)`` change it. Ids may be unknown. A node whose
      text, metadata or place changed is removed and added again.
    - ``search(query, limit, filter)``, see ``nodekin.retrievers.protocols.Index``.

    Optional:

    - ``finish()`` follows every change.
    - ``prepare(nodes)`` computes what ``add`` needs before anything is changed, for example
      vectors: when it raises, the index stays as it was.
    - ``accepts(prepared)`` returns False where the index has to be built anew.
    - ``file_name()``, ``header()``, ``arrays()`` and ``restore(arrays)`` keep a copy in a file,
      where the graph has a folder for indexes. It is used when its header is equal, and updated
      from its revision; a damaged file is ignored and written again.

    Where ``uses_search_text`` is True, what is compared of a node is
    ``graph.reader.searched_texts(nodes)``. The index is then rebuilt when the group's search text
    is declared again, or what it refers to changes.

    When ``add`` or ``remove`` raises, also by Ctrl-C, the index is emptied and built anew at the
    next search. One thread changes the index at a time, while the graph can't change. Searches
    run in parallel, after ``sync`` in the same ``graph.reading`` block.

    Args:
        graph: The node graph.
        group: The group of nodes.

    Example:
        An index that finds the nodes that begin with a query:

        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers.results import Hits
        >>> class PrefixIndex(SyncedIndex):
        ...     def clear(self):
        ...         self.nodes = {}
        ...     def remove(self, ids):
        ...         for id in ids:
        ...             self.nodes.pop(id, None)
        ...     def add(self, nodes, prepared):
        ...         self.nodes.update((node.id, node) for node in nodes)
        ...     def search(self, query, limit, filter):
        ...         nodes = [n for n in self.nodes.values() if n.text.startswith(query)]
        ...         nodes = [n for n in nodes if filter.matches(n)]
        ...         nodes = sorted(nodes, key=lambda node: node.order)[:limit]
        ...         return Hits([n.id for n in nodes], [1.0] * len(nodes))
        >>> graph = NodeGraph()
        >>> ids = graph.add(["green tea", "tea time", "teapot"])
        >>> def prefix(graph, group, key, similarity):
        ...     return PrefixIndex(graph, group)
        >>> [result.node.text for result in Retriever(graph, "ROOT", index=prefix)("tea")]
        ['tea time', 'teapot']
    """

    uses_search_text: ClassVar[bool] = False
    """Whether nodes are compared by their searched texts: see ``NodeGraph.searched_texts``."""

    streams: ClassVar[bool] = False
    """Whether ``prepare`` and ``add`` iterate over nodes and hold none, so that no one has to."""

    maps_file: ClassVar[bool] = False
    """Whether ``restore`` leaves arrays in the file, so that they take no memory of their own."""

    def __init__(self, graph: NodeGraph, group: str) -> None:
        self._graph = graph
        self._group = group
        self._lock = Lock()
        self._loaded = False
        self._search_version: tuple[str, ...] = ()  # of the texts that it was made from
        self._reset()

    # What a subclass implements

    def clear(self) -> None:
        """Remove everything."""
        raise NotImplementedError

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes; ids that are not in the index are ignored."""
        raise NotImplementedError

    def add(self, nodes: Sequence[Node], prepared: Any) -> None:
        """Add nodes, none of which is in the index, with what ``prepare`` returned for them."""
        raise NotImplementedError

    def finish(self) -> None:
        """Do what has to follow every change, such as closing gaps; nothing by default."""

    @property
    def size(self) -> int:
        """How many nodes there are: the file of a large index is written less often."""
        return 0

    def prepare(self, nodes: Sequence[Node]) -> Any:
        """Compute what ``add`` needs; what it raises leaves the index as it is."""
        return None

    def accepts(self, prepared: Any) -> bool:
        """Return whether this can be added to the index; else the index is built anew."""
        return True

    def ready(self) -> None:
        """Do what may take long (a model) before the graph is held; nothing by default."""

    def file_name(self) -> str | None:
        """Return a name for the file, None for no file; every group has a file of its own."""
        return None

    def header(self) -> dict[str, Any]:
        """Return the settings that a stored index must have been built with, as JSON has them."""
        return {}

    def arrays(self) -> Arrays:
        """Return the arrays to store; none at all where there is nothing worth storing.

        Raises:
            TypeError: If a value can't be stored.
        """
        return {}

    def restore(self, arrays: Arrays) -> None:
        """Set the index to what ``arrays`` returned; any error makes it be built anew.

        The arrays may lie in the file, and can't be written to.
        """
        raise NotImplementedError

    # Following the graph

    def is_current(self) -> bool:
        """Return whether the index has the last change of the group."""
        return (
            self._revision == self._graph.reader.revision(self._group)
            and self._search_version == self._current_search_version()
        )

    def _current_search_version(self) -> tuple[str, ...]:
        return self._graph.reader.search_version(self._group) if self.uses_search_text else ()

    def _since(self, search_version: tuple[str, ...]) -> int:
        """Return the revision after which changes count; 0 where another text is searched."""
        return self._revision if self._search_version == search_version else 0

    def sync(self) -> None:
        """Apply what has changed in the graph since the last call; the graph must be held."""
        if self.is_current():
            return
        with self._lock.held():
            if self.is_current():
                return
            self._load()
            search_version = self._current_search_version()
            since = self._since(search_version)
            changes = self._graph.reader.changes(self._group, since, stream=self.streams)
            prepared = self.prepare(changes.added)
            if not changes.complete and not self.accepts(prepared):
                changes = self._graph.reader.changes(self._group, 0, stream=self.streams)
                prepared = self.prepare(changes.added)
            self.apply(changes, prepared, search_version)

    def pending(self) -> PendingChanges | None:
        """Return what the index has missed, None where it is current.

        For ``ready``: it builds the group, and holds the graph only until it returns.
        """
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            if self.is_current():
                return None
            with self._lock.held():
                self._load()
                search_version = self._current_search_version()
                since = self._since(search_version)
                revision = self._revision
            changes = self._graph.reader.changes(self._group, since)
            return PendingChanges(revision, changes, search_version)

    def apply(self, changes: Changes, prepared: Any, search_version: tuple[str, ...] = ()) -> None:
        """Apply changes all or none; the caller has the lock.

        Args:
            changes: The changes.
            prepared: What ``prepare`` returned for them.
            search_version: That of the group before the changes were read; nothing where texts
                are not compared.
        """
        self._revision = _HALF_MADE
        try:
            if changes.complete:
                self.clear()
            self.remove(changes.removed)
            if changes.added:
                self.add(changes.added, prepared)
            self.finish()
        except BaseException:  # an analyzer that raises, Ctrl-C, no memory
            self._reset()
            raise
        self._revision, self._search_version = changes.revision, search_version
        self._unsaved += len(changes.added) + len(changes.removed)
        if self._unsaved > _UNSAVED + self.size // _UNSAVED_SHARE and self.save():
            self._map()

    def _reset(self) -> None:
        self._revision = self._unsaved = 0
        self._search_version = ()
        self.clear()

    # The file

    def close(self) -> None:
        """Store what is worth storing; the index can still be used."""
        with self._lock.held():
            if self._unsaved > _WORTH_SAVING:
                self.save()

    def save(self) -> bool:
        """Write the file; the caller has the lock. A failure is logged, not raised.

        Returns:
            Whether it was written.
        """
        self._unsaved = 0
        try:
            path = self._path()
            arrays = {} if path is None else self.arrays()
            if path is not None and arrays:
                state = {"revision": self._revision, "search_text": [*self._search_version]}
                return save_arrays(path, {**self._identity(), **state}, arrays)
        except TypeError as error:  # metadata that can't be written to a file
            logger.debug("the index of group %r is not stored: %s", self._group, error)
        except Exception as error:
            logger.warning("the index of group %r could not be stored: %s", self._group, error)
        return False

    def _map(self) -> None:
        """Use the file just written in place of what is in memory, where the index can."""
        path = self._path() if self.maps_file else None
        if path is None or (stored := load_arrays(path)) is None:
            return
        header, arrays = stored
        if header["revision"] == self._revision:  # not what another process wrote since
            try:
                self.restore(arrays)
            except Exception as error:  # what is in memory is as good
                logger.warning("the index in %s can't be used: %s", path, error)

    def _path(self) -> Path | None:
        if self._graph.reader.index_file("index") is None:  # a file's name may take long to compute
            return None
        name = self.file_name()
        return (
            None if name is None else self._graph.reader.index_file(f"{name}-{digest(self._group)}")
        )

    def _identity(self) -> dict[str, Any]:
        return {**self.header(), "group": self._group}

    def _load(self) -> None:
        """Restore the stored index, the first time only and where it is usable."""
        if self._loaded:
            return
        self._loaded = True
        path: Path | None = None
        try:
            path = self._path()
            stored = None if path is None else load_arrays(path)
            if stored is None:
                return
            (header, arrays), expected = stored, self._identity()
            if {name: header.get(name) for name in expected} != expected:
                logger.debug("a stored index is of %r, not of %r", header, expected)
                return
            revision, search_version = int(header["revision"]), tuple(header["search_text"])
            if search_version != self._current_search_version():
                logger.debug("the stored index of %r is of another search text", self._group)
                return
            self.restore(arrays)
            self._revision, self._search_version = revision, search_version
        except Exception as error:  # whatever is in the file, the index can be built anew
            logger.warning("the index in %s does not fit and is rebuilt: %s", path, error)
            self._reset()


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """Hold what an index has missed.

    Attributes:
        revision: The revision of the index.
        changes: What has changed since, or everything where another text is searched.
        search_version: That of the group when the changes were read.
    """

    revision: int
    changes: Changes
    search_version: tuple[str, ...]


def portions(nodes: Iterable[Node], size: int) -> Iterator[list[Node]]:
    """Yield nodes in lists, so that no more are held at a time."""
    iterator = iter(nodes)
    while portion := list(islice(iterator, size)):
        yield portion
