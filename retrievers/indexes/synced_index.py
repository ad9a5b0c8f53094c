"""The base class of indexes, which apply the changes of a group and store a copy in a file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ...nodegraph.errors import StoreError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.node import Node
from ...nodegraph.storage.graph_store import Changes
from .array_files import Arrays, load_arrays, save_arrays
from .current import current
from .stored_array import Damage

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

Version = tuple[int, tuple[str, ...]]
"""The revision of a group, and the version of the texts that are searched."""

# The file is written immediately if the number of unsaved changes exceeds ``_UNSAVED`` plus a share
# of the nodes.
_UNSAVED = 1_000

_UNSAVED_SHARE = 8

# Up to this number of unsaved changes, the file is not written even when the graph is closed.
_WORTH_SAVING = 250

# Errors that can occur if the file of an index contains wrong values.
_WRONG_VALUES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class FileContent(NamedTuple):
    """The content of an index file.

    Attributes:
        path: The path of the file.
        header: The header, as JSON values.
        arrays: The arrays, by name.
    """

    path: Path
    header: dict[str, Any]
    arrays: Arrays


class SyncedIndex:
    """An index of one group that is updated when the graph changes.

    A subclass implements the following methods:

    - ``clear()`` removes all nodes. It is called before all other methods.
    - ``remove(ids)`` and ``add(nodes)`` change the index. Some ids may not be in the index. A node
      whose text, metadata or position has changed is removed and added again.
    - ``search(query, limit, filter)`` is described in ``nodekin.retrievers.protocols.Index``.

    The following methods are optional:

    - ``finish()`` is called after every change.
    - ``prepare(nodes)`` raises the errors that ``add`` would raise, before the index is changed.
    - ``file_name()``, ``header()``, ``arrays()`` and ``restore(arrays)`` store a copy in a file if
      the graph has a folder for indexes. The file is used only if its header is equal. A damaged
      file is ignored and written again.
    - ``verify()`` compares a restored index with the graph.
    - ``snapshot(queries, filter)`` is described in ``nodekin.retrievers.protocols.Index``.

    If ``uses_search_text`` is True, the index compares ``graph.reader.searched_texts(nodes)``, and
    it is rebuilt if the search text of the group changes.

    If ``add`` or ``remove`` raises an error, all nodes are removed, and the index is rebuilt at the
    next search. All methods are called while the lock of the graph is held.

    Args:
        graph: The graph.
        group: The name of the group.

    Example:
        An index that finds the nodes that begin with a query:

        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers.results import Hits
        >>> class PrefixIndex(SyncedIndex):
        ...     def clear(self):
        ...         self.nodes = {}
        ...     def remove(self, ids):
        ...         for id in ids:
        ...             self.nodes.pop(id, None)
        ...     def add(self, nodes):
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
    """Whether the searched texts of nodes are compared. See ``Node.searched_text``."""

    def __init__(self, graph: NodeGraph, group: str) -> None:
        self._graph = graph
        self._group = group
        self._loaded = False
        # The file from which the index was restored, until it is rebuilt.
        self._restored_from: Path | None = None
        self._damage = Damage()  # the damage of this file
        self._synced: Version = 0, ()
        self._seen_state: object = None  # the state of the graph at the last update of the index
        self._unsaved = 0
        self.clear()

    # To implement in a subclass

    def clear(self) -> None:
        """Remove all nodes from the index."""
        raise NotImplementedError

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes from the index. Ids that are not in the index are ignored."""
        raise NotImplementedError

    def prepare(self, nodes: Sequence[Node]) -> None:
        """Raise the errors that ``add`` would raise, before anything is changed.

        By default, nothing is done.
        """

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes that are not in the index."""
        raise NotImplementedError

    def finish(self) -> None:
        """Clean up after a change, for example by compacting the index.

        By default, nothing is done.
        """

    @property
    def size(self) -> int:
        """The number of nodes. The file of a large index is written less often."""
        return 0

    def ready(self) -> None:
        """Do slow work, such as model calls, before the graph is locked.

        By default, nothing is done.
        """

    def file_name(self) -> str | None:
        """Return the base name of the index file without the group, or None to store no file."""
        return None

    def header(self) -> dict[str, Any]:
        """Return the settings with which a stored index must have been built, as JSON values."""
        return {}

    def arrays(self) -> Arrays:
        """Return the arrays to store. If the mapping is empty, no file is written.

        Raises:
            TypeError: If a value cannot be stored.
        """
        return {}

    def restore(self, arrays: Arrays) -> None:
        """Restore the index from the result of ``arrays``. After an error, the index is rebuilt.

        The arrays are read-only and may be mapped from the file. Since the file may have been
        manipulated, values that select other values must be verified.
        """
        raise NotImplementedError

    def verify(self) -> None:
        """Verify that a restored index agrees with the graph, after all changes were applied.

        By default, nothing is done.

        Raises:
            ValueError: If the index and the graph differ. The index is then rebuilt.
        """

    # Following the graph

    @property
    def graph(self) -> NodeGraph:
        """The graph that the index belongs to."""
        return self._graph

    @property
    def groups(self) -> Sequence[str]:
        """The names of the groups that must be built before an update."""
        if self.uses_search_text:
            return self._graph.reader.searched_groups(self._group)
        return [self._group]

    @contextmanager
    def current(self) -> Iterator[Self]:
        """Build the group, update the index, and hold the graph's lock until the block ends.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers.similarities.bm25 import Bm25
            >>> graph = NodeGraph()
            >>> ids = graph.add(["Green tea.", "Black tea."])
            >>> with Bm25().open(graph, "ROOT").current() as index:
            ...     index.frequency("tea")
            2
        """
        with current({self._graph: self.groups}, [self]):
            yield self

    def is_current(self) -> bool:
        """Return whether the index includes the latest change of the group."""
        state = self._graph.reader.held_state()
        if state is not self._seen_state and self._synced == self._version():
            self._seen_state = state
        return state is self._seen_state

    def _version(self) -> Version:
        """Return the revision of the group, and the version of the texts that are searched."""
        reader = self._graph.reader
        version = reader.search_version(self._group) if self.uses_search_text else ()
        return reader.revision(self._group), version

    def _missed(self, since: Version = (0, ())) -> Changes:
        """Return the changes since the last ``sync``, or since a later version.

        The lock of the graph must be held.
        """
        if not self._loaded:
            self._loaded = True
            self._load()
        revision, search_version = max(since, self._synced)
        is_same_text = search_version == self._version()[1]
        return self._graph.reader.changes(self._group, revision if is_same_text else 0)

    def sync(self) -> None:
        """Apply all changes since the last call, or none if an error occurs.

        The lock of the graph must be held.

        Raises:
            RuntimeError: If the current thread does not hold the lock of the graph. Otherwise, two
                threads could change the index at the same time.
        """
        if not self._graph.reader.is_held:
            raise RuntimeError(
                f"the index of group {self._group!r} is updated without the graph's lock; search "
                "it inside `with index.current():`"
            )
        if self._damage.reason is not None:  # a search has found a wrong value
            self.distrust(ValueError(self._damage.reason))
        if self.is_current():
            return
        try:
            self._follow(self._missed())
            if self._restored_from is not None:
                self.verify()
        except _WRONG_VALUES as error:
            if not self.distrust(error):
                raise
            self._follow(self._missed())

    def distrust(self, error: Exception) -> bool:
        """Empty the index if it was restored from a file. The next ``sync`` rebuilds it.

        Args:
            error: The error that may have been caused by a wrong value in the file.

        Returns:
            Whether the index was restored from a file.
        """
        path = self._restored_from
        if path is None:
            return False
        logger.warning("the index in %s does not fit and is rebuilt: %s", path, error)
        self._forget_file()
        self._reset()
        return True

    def _follow(self, changes: Changes) -> None:
        """Apply all changes, or none if an error occurs."""
        if not changes.complete:
            self.prepare(changes.added)
        try:
            if changes.complete:
                self.clear()
                self._forget_file()
            self.remove(changes.removed)
            if changes.added:
                self.add(changes.added)
            self.finish()
        except BaseException:  # for example an error in an analyzer, Ctrl-C or a lack of memory
            self._reset()
            raise
        if changes.complete:
            self._graph.reader.forget_written(self._group)
        self._synced = changes.revision, self._version()[1]
        self._unsaved += len(changes.added) + len(changes.removed)
        if self._graph.reader.is_read_only:
            self._tell_read_only()
        elif self._unsaved > _UNSAVED + self.size // _UNSAVED_SHARE:
            self.save()

    def _forget_file(self) -> None:
        self._restored_from = None
        self._damage = Damage()

    def _reset(self) -> None:
        self._synced = 0, ()
        self._seen_state = None
        self._unsaved = 0
        self.clear()

    # The file

    def _tell_read_only(self) -> None:
        """Log, once per graph, that the indexes of a read-only store are built in memory."""
        if self._unsaved > _WORTH_SAVING and self._path() is not None:
            self._graph.reader.shared("read-only", self._warn_read_only)

    def _warn_read_only(self) -> bool:
        logger.warning(
            "the store is read-only, and the index of group %r has no current file: indexes are "
            "built in memory, by each process; search once before the store becomes read-only",
            self._group,
        )
        return True

    def close(self) -> None:
        """Store the index if enough has changed. The index can still be used afterward.

        If this fails (for example, because the store was deleted), the failure is logged.
        """
        if self._unsaved <= _WORTH_SAVING or self._graph.reader.is_read_only:
            return
        try:
            with self._graph.reader.reading():
                self.save()
        except StoreError as error:
            logger.warning("the index of group %r was not stored: %s", self._group, error)

    def save(self) -> None:
        """Write the index file. A failure is logged."""
        self._write_file(self._file_content())

    def _file_content(self) -> FileContent | None:
        """Return the content of the index file, or None if no file is used. A failure is logged.

        The lock of the graph must be held. Later changes of the index do not affect the content.
        """
        self._unsaved = 0
        try:
            path = self._path()
            if path is not None and (arrays := self.arrays()):
                revision, search_version = self._synced
                state = {"revision": revision, "search_text": [*search_version]}
                return FileContent(path, {**self.header(), **state}, arrays)
        except Exception as error:
            self._warn_unsaved(error)
        return None

    def _write_file(self, content: FileContent | None) -> None:
        """Write the content of the index file if it is not None. A failure is logged."""
        try:
            if content is not None:
                save_arrays(content.path, content.header, content.arrays)
        except Exception as error:
            self._warn_unsaved(error)

    def _warn_unsaved(self, error: Exception) -> None:
        logger.warning("the index of group %r could not be stored: %s", self._group, error)

    def _path(self) -> Path | None:
        reader = self._graph.reader
        if reader.index_file("index") is None:  # computing the name of a file may be slow
            return None
        name = self.file_name()
        return None if name is None else reader.index_file(f"{name}-{digest(self._group)}")

    def _load(self) -> None:
        """Restore the index from its file if the settings match."""
        path: Path | None = None
        try:
            path = self._path()
            if path is None or (stored := load_arrays(path)) is None:
                return
            header, arrays = stored
            revision = header.pop("revision")
            search_version = tuple(header.pop("search_text"))
            if (header, search_version) == (self.header(), self._version()[1]):
                self._check_revision(revision)
                self.restore(arrays)
                self._synced = revision, search_version
                self._restored_from = path
                self._damage = arrays.damage
        # The file may contain anything, so the index is rebuilt if an error occurs.
        except Exception as error:
            logger.warning("the index in %s does not fit and is rebuilt: %s", path, error)
            self._reset()

    def _check_revision(self, revision: object) -> None:
        """Verify the revision that is stored in a file.

        Raises:
            ValueError: If the group never had this revision.
        """
        current, _ = self._version()
        if type(revision) is not int or not 0 < revision <= current:
            raise ValueError(f"its revision must be one of the group, got {revision!r:.40}")
