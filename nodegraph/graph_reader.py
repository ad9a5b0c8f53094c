"""Read-only access to a graph, for the authors of indexes and adapters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .builder import GroupBuilder, NodeListener
from .concurrency import fork_safe_lock, lock_order
from .errors import MissingNodeError, OnError, StoreError
from .groups import Lineage, NodeGroup, declare, lineage_of, make_group
from .hashing import digest
from .locations import LAYOUTS, Location, unpack_layout
from .navigation import headings_at, locations_of, pages_of, place_of, read_outline
from .node import MEMBER, ROOT, Link, Node
from .search_text import (
    DEFAULT,
    SearchText,
    SearchTextRule,
    rule_version,
    searched_texts,
    stored_search_text,
)
from .source_records import unchanged_file
from .storage.columns import reading_rows
from .storage.graph_store import Changes, GraphStore
from .text_forms import composed

if TYPE_CHECKING:
    from .graph import NodeGraph

T = TypeVar("T")

_MAX_BUILDS = 20  # maximum number of attempts before an error is raised

_BY_DOCUMENT = digest("by document", DEFAULT.version)


class GraphReader:
    """An interface through which indexes, retrievers and adapters read a graph.

    The reader of a graph is available as ``graph.reader``. Most users need only ``NodeGraph``.

    Args:
        graph: The graph.
        store: The store of the graph.
        builder: The object that builds the groups.
        groups: The registered groups, keyed by name.
        search_text: The graph's search text. If None, the setting of each document is used.

    Attributes:
        change_lock: A lock that is held while documents change. A build also acquires it after
            concurrent changes have made its result outdated twice.
    """

    def __init__(
        self,
        graph: NodeGraph,
        store: GraphStore,
        builder: GroupBuilder,
        groups: dict[str, NodeGroup],
        search_text: SearchTextRule | None,
    ) -> None:
        self._graph = graph
        self._store = store
        self._builder = builder
        self._groups = groups
        self._search_text = search_text
        self._shared: dict[object, object] = {}
        self._outline = lru_cache(4096)(partial(read_outline, graph))
        self._shared_lock = fork_safe_lock()
        self._held: tuple[int, int] = (-1, 0)  # state of the graph, and number of registrations
        self._fresh: dict[str, object] = {}  # the last state in which each group was up to date
        self.change_lock = fork_safe_lock()

    # Groups

    def group_names(self) -> list[str]:
        """Return the names of the registered groups."""
        return list(self._groups)

    def lineage(self, name: str) -> Lineage:
        """Return a group and its ancestors, topmost first. ``ROOT`` is not included.

        Raises:
            UnknownGroupError: If the group is unknown.
        """
        return lineage_of(self._groups, name)

    def same_group(self, transform: object, parent: str, name: str) -> str | None:
        """Return the name of an existing group with the same transform and parent, or None.

        Args:
            transform: The transform.
            parent: The name of the parent group.
            name: The preferred name of the group. A registered group is preferred to a stored
                group, even if its name differs.
        """
        group = make_group(name, transform, parent, None, 0, None, {})
        registered = [
            other.name
            for other in list(self._groups.values())
            if (other.parent, other.transform_version) == (parent, group.transform_version)
        ]
        if registered:
            return min(registered, key=lambda other: (other == name, other))
        above = self.lineage(parent)
        for stored in sorted({*self._store.groups.names()}.difference(self._groups)):
            group = make_group(stored, transform, parent, None, 0, None, {})
            if self._builder.is_stored([*above, group]):
                return stored
        return None

    def declare(self, group: NodeGroup, replace: bool) -> None:
        """Register a group in the graph.

        Args:
            group: The group to register.
            replace: Whether to replace an existing group that has a different definition.
        """
        with self._store.database.lock:
            declare(self._groups, group, replace)
            self._held = (-1, self._held[1] + 1)

    # States

    @contextmanager
    def reading(
        self,
        *groups: str,
        on_error: OnError | None = None,
        executor: Executor | None = None,
        light: bool = False,
    ) -> Iterator[None]:
        """Ensure that groups are built, and hold the graph's lock for the duration of a block.

        Missing groups are built before the lock is acquired. The block must not call models or
        transforms, or wait for other threads.

        Args:
            groups: The names of the groups.
            on_error: Whether to ``"raise"`` or ``"skip"`` errors in transforms. Defaults to the
                graph's setting.
            executor: An executor for transforms of texts. If None, they run in this process.
            light: Whether the block needs few or no queries, so that no transaction has to be
                opened on a server.

        Raises:
            UnknownGroupError: If a group is unknown.
            TransformError: If a transform raises an error during a build.
            StoreError: If a group is outdated again after each build because of other processes.
            MissingNodeError: If a query in a light block reads a later state of the graph.
        """
        turns = self._store.transactions
        for attempt in range(_MAX_BUILDS):
            with turns.light_turn() if light else turns.turn():
                if self._are_fresh(groups):
                    yield
                    return
            # Documents change faster than the groups are built, so block further changes.
            with self.change_lock if attempt > 1 else nullcontext():
                mode = on_error or self._graph.on_error or "raise"
                self._builder.build(map(self.lineage, groups), mode, executor)
        raise StoreError(
            f"{', '.join(groups)} was built {_MAX_BUILDS} times and is still outdated: another "
            "process builds it by other rules, or changes documents faster than they are "
            "processed; retry when it has finished"
        )

    def is_fresh(self, group: str) -> bool:
        """Return whether a group is up to date with the current documents."""
        return self._are_fresh([group])

    def _are_fresh(self, groups: Iterable[str]) -> bool:
        """Return whether all given groups are up to date with the current documents."""
        state = self.held_state()
        for group in groups:
            if self._fresh.get(group) is not state:
                if not self._builder.is_fresh(self.lineage(group)):
                    return False
                if self._held[0] >= 0 and not self._builder.has_failures:
                    self._fresh[group] = state
        return True

    @property
    def is_held(self) -> bool:
        """True if the current thread holds the graph's lock."""
        return self._store.transactions.is_held

    @property
    def lock_order(self) -> int:
        """A sort key for acquiring the locks of several graphs.

        Threads acquire locks in this order to avoid deadlocks.
        """
        return lock_order(self._store.database)

    def call(self, state: int | None = None) -> AbstractContextManager[None]:
        """Return a context in which light blocks of this thread read a server's state only once.

        Args:
            state: The state that an earlier part of the same question has read, or None.
        """
        return self._store.transactions.call(state)

    @property
    def state_of_call(self) -> int | None:
        """The state that the current ``call`` of this thread has read from a server, or None."""
        return self._store.transactions.state_of_call

    @property
    def is_remote(self) -> bool:
        """True if each query requires a round trip to a server."""
        return self._store.database.is_remote

    def held_state(self) -> object:
        """Return a token for the current state of the graph, while its lock is held.

        The same object is returned until the graph or its registered groups change, or until its
        indexes are closed.
        """
        turns = self._store.transactions
        if turns.is_held:  # as in most searches
            return self._held_at(turns.state)
        with turns.light_turn() as state:
            return self._held_at(state)

    def _held_at(self, state: int) -> object:
        if self._held[0] != state:
            self._held = (state, self._held[1])
        return self._held

    def count(self, group: str) -> int:
        """Return the number of nodes in a group, or 0 if it was never built."""
        return self._store.groups.count(group)

    def revision(self, group: str) -> int:
        """Return the revision number of a group, which increases when its nodes or links change."""
        return self._store.groups.revision(group)

    def changes(self, group: str, since: int) -> Changes:
        """Return the nodes of a group that were added and removed since a revision.

        The lock of the graph must be held until all nodes have been read.
        """
        return self._store.changes(group, since)

    def changed_ids(self, group: str, since: int) -> tuple[Sequence[str], Sequence[str]] | None:
        """Return the ids of nodes removed and added since a revision, or None if unknown."""
        return self._store.groups.changed_ids(group, since)

    # Nodes

    def ids(self, group: str, limit: int | None = None) -> list[str]:
        """Return the ids of the nodes in a group in document order. The group may be ``ROOT``.

        Args:
            group: The name of the group.
            limit: The maximum number of ids. If None, the ids of all nodes are returned.
        """
        return self._store.nodes.ids(group, limit)

    def links_of(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links of each node, in the order in which they were added.

        Args:
            ids: The ids of the nodes.
            incoming: Whether to return links to the nodes instead of links from the nodes.
        """
        return self._store.links.of(ids, incoming=incoming)

    def document_ids(self) -> list[str]:
        """Return the ids of all documents, in the order in which they were added."""
        return self._store.nodes.ids(ROOT)

    def stored_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Map document ids to the stored ids, which may differ in their Unicode form.

        Missing documents are left out. An exact match is preferred to a match in another form.
        """
        requested = list(ids)
        existing = self._store.stamps(ROOT, requested)
        found = {name: name for name in requested if name in existing}
        missing = [name for name in requested if name not in found and not name.isascii()]
        if missing:
            names = {composed(name): name for name in self.document_ids()}
            forms = {name: names.get(composed(name)) for name in missing}
            found |= {name: form for name, form in forms.items() if form is not None}
        return found

    def nodes_by_id(self, ids: Sequence[str]) -> list[Node]:
        """Return the nodes with the given ids, in the same order.

        Raises:
            LookupError: If a node does not exist or was removed.
        """
        nodes = self._get(ids)
        if not all(nodes):
            raise _missing(ids[nodes.index(None)])
        return cast("list[Node]", nodes)

    def _get(self, ids: Sequence[str]) -> list[Node | None]:
        nodes = self._store.nodes.get(ids)
        if all(nodes):
            return nodes
        missing = [i for i, node in zip(ids, nodes, strict=True) if node is None]
        if all(i.isascii() for i in missing):
            return nodes
        others = self.stored_ids(missing)
        return self._store.nodes.get([others.get(i, i) for i in ids])

    def parent_ids(self, ids: Sequence[str]) -> list[str | None]:
        """Return the id of each node's parent, or None for a node without a parent.

        Raises:
            LookupError: If a node does not exist or was removed.
        """
        parents = self._store.nodes.parent_ids(ids)
        for i in ids:
            if i not in parents:
                raise _missing(i)
        return [parents[i] for i in ids]

    def existing_nodes(self, ids: Sequence[str]) -> list[Node]:
        """Return the nodes with the given ids. Nodes that were removed or changed are left out."""
        return [node for node in self._get(ids) if node is not None]

    def read_ahead(self, ids: Sequence[str]) -> None:
        """Read nodes from a server into the cache, so that later reads need no query.

        If all nodes are already in the cache, only the state of the server is read.

        Args:
            ids: The ids of the nodes.

        Raises:
            MissingNodeError: If nodes are read, and the state of the server has changed since the
                thread's ``call`` read it.
        """
        turns = self._store.transactions
        with turns.light_turn():
            if not self._store.nodes.are_cached(ids):
                self._store.nodes.get(ids)
                return
        with turns.light_turn(is_new=True):
            return

    def children(self, node: Node) -> dict[str, list[Node]]:
        """Return the children of a node, keyed by the name of their group.

        Inside a transform, outdated groups are left out, since building them could cause a
        deadlock. See also ``Node.children``.

        Raises:
            LookupError: If the node was removed or changed.
        """
        below = [
            group.name
            for group in list(self._groups.values())
            if group.parent == node.group and self._builder.builds(group.name)
        ]
        in_transform = bool(self._builder.running)
        with self.reading(*(() if in_transform else below)):
            (current,) = self.nodes_by_id([node.id])
            return {name: self.children_in(name, current) for name in below if self.is_fresh(name)}

    def children_in(self, group: str, node: Node) -> list[Node]:
        """Return the children of a node in one of its child groups."""
        if self.lineage(group)[-1].scope == "group":
            return [n for n in self._graph.linked(node, MEMBER, incoming=True) if n.group == group]
        return self._store.nodes.children(group, node)

    def count_children(self, group: str, node: Node) -> int:
        """Return the number of children of a node in one of its child groups."""
        if self.lineage(group)[-1].scope == "group":
            return len(self.children_in(group, node))
        return self._store.nodes.count_children(group, node)

    def around(self, node: Node, before: int, after: int) -> list[Node]:
        """Return a node and its neighbors in the same group and document, in document order.

        The nodes may have different parents. See ``StoredNodes.around``.
        """
        return self._store.nodes.around(node, before, after)

    def pages(self, node: Node) -> tuple[int, int] | None:
        """Return the first and the last page that a node covers. See ``Node.pages``."""
        return pages_of(node)

    def locations(self, node: Node) -> list[Location]:
        """Return the locations of a node in its file. See ``Node.locations``."""
        with self._store.transactions.turn():
            stamp = self._store.stamps(ROOT, [node.document_id]).get(node.document_id)
            value = self._store.values.get(LAYOUTS, [node.document_id]).get(node.document_id)
            key, _, packed = (value or b"").partition(b"\0")
            is_of_text = stamp is not None and key == stamp.key.encode()
            with reading_rows(self._store.place):
                layout = unpack_layout(packed) if is_of_text else None
            return locations_of(node, layout)

    @property
    def store_place(self) -> str:
        """The path or URL of the graph's store. It is empty if the graph is kept in memory."""
        return self._store.place

    def place(self, node: Node) -> str:
        """Return a description of a node's position in its file. See ``Node.place``."""
        with self._store.transactions.turn() as state:
            return place_of(node, partial(self._outline, state))

    def headings(self, node: Node) -> list[str]:
        """Return the headings above a node, outermost first.

        For source code, the name of the enclosing function or class is returned instead.
        """
        with self._store.transactions.turn() as state:
            return headings_at(node, partial(self._outline, state))

    def existing_documents(self, ids: Collection[str]) -> Collection[str]:
        """Return the given ids that belong to existing documents."""
        return self.stored_ids(ids).keys()

    def unchanged_file(self, document_id: str) -> tuple[Path, str]:
        """Return the path of a document's file and a hash of its bytes.

        An error is raised if the file has changed. See ``source_records.unchanged_file``.
        """
        return unchanged_file(self._store, document_id)

    # Values

    def values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return values that were stored with ``save``, keyed by their names.

        Args:
            kind: The kind of the values.
            keys: The keys to read. If None, all values of this kind are returned.
        """
        return self._store.values.get(kind, keys)

    def save(self, kind: str, values: Mapping[str, bytes], *, derived: bool = False) -> None:
        """Store binary values with the graph.

        Args:
            kind: The kind of the values, which serves as a namespace.
            values: The values to store, by key.
            derived: Whether the values can be computed again. A read-only store keeps such values
                in memory until it is closed.
        """
        self._store.values.put(kind, values, derived=derived)

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete stored values of a kind. If ``keys`` is None, all of them are deleted."""
        self._store.values.delete(kind, keys)

    # Search texts

    def forget_written(self, group: str) -> None:
        """Discard newly written nodes that are kept in memory for the index of a group."""
        self._store.nodes.forget_written(group)

    def searched_texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return the text that is indexed and embedded for each node. See ``Node.searched_text``.

        Raises:
            ValueError: If a user's ``search_text`` function raises an error.
            TypeError: If the function does not return a string.
        """
        return searched_texts(nodes, self.search_rule)

    def composed_texts(self, nodes: Sequence[Node]) -> list[str] | None:
        """Return the same as ``searched_texts`` if only the nodes are needed for it.

        If the search text is a user's function or includes other groups, None is returned.
        """
        rules = [self.search_rule(node.group) or stored_search_text(node) for node in nodes]
        if all([isinstance(rule, SearchText) and not rule.groups for rule in rules]):
            return self.searched_texts(nodes)
        return None

    def search_rule(self, group: str) -> SearchTextRule | None:
        """Return the search text of a group, which defaults to the search text of the graph.

        If neither is set, None is returned, and the setting of each document is used.
        """
        registered = self._groups.get(group)
        declared = None if registered is None else registered.search_text
        return declared or self._search_text

    def searched_sources(self, node: Node) -> tuple[str, ...]:
        """Return the names of the metadata fields and groups that are part of a node's search text.

        If a user's ``search_text`` function changes the text, the name of the function is returned.
        """
        rule = self.search_rule(node.group) or stored_search_text(node)
        if isinstance(rule, SearchText):
            return rule.sources(node)
        return () if rule(node) == node.text else (getattr(rule, "__name__", type(rule).__name__),)

    def searched_groups(self, group: str) -> tuple[str, ...]:
        """Return the names of the groups that must be built before a group can be searched.

        These are the group and all groups that its search text includes.
        """
        rule = self.search_rule(group)
        if isinstance(rule, SearchText):
            return (group, *rule.groups)
        return (group,)

    def search_version(self, group: str) -> tuple[str, ...]:
        """Return version identifiers that determine the search texts of a group.

        The nodes themselves are not covered. As long as the identifiers are equal, the search texts
        change only if the nodes change.
        """
        rule = self.search_rule(group)
        if rule is None:
            return (_BY_DOCUMENT,)
        groups = self.searched_groups(group)[1:]
        return (rule_version(rule), *(str(self.revision(name)) for name in groups))

    # Indexes

    def add_listener(self, group: str, listener: NodeListener) -> None:
        """Inform an object about new nodes of a group until it is garbage-collected.

        See ``GroupBuilder.add_listener``.
        """
        self._builder.add_listener(group, listener)

    def copy_to(self, path: Path) -> None:
        """Copy the graph to a file. An existing file is replaced.

        Raises:
            TypeError: If the store is on a server, or if the metadata contains objects that cannot
                be stored in a file.
        """
        self._store.copy_to(path)

    def vector_index(self, group: str, key: str) -> Any | None:
        """Return the database's vector index for a group, or None if the database has none."""
        return self._store.vector_index(self._graph, group, key)

    def close(self) -> None:
        """Save the indexes and remove them from memory. They are loaded again when needed."""
        with self._shared_lock:
            shared = [*self._shared.values()]
            self._shared.clear()
        for index in shared:  # The lock is not held here, since indexes acquire it themselves.
            if callable(keep := getattr(index, "close", None)):
                keep()
        self._held = (-1, self._held[1] + 1)

    @property
    def is_read_only(self) -> bool:
        """True if the store is read-only, so that index files cannot be written either."""
        return self._store.database.is_read_only

    def index_file(self, name: str) -> Path | None:
        """Return the path of an index file, or None if indexes are kept in memory."""
        folder = self._store.database.index_folder
        return None if folder is None else folder / f"{name}.index"

    def shared(self, key: object, make: Callable[[], T]) -> T:
        """Return the cached object for a key, such as an index. If it is missing, it is created.

        The object is kept until the graph is closed, and is not included when the graph is pickled.
        """
        value: Any = self._shared.get(key)  # This is a fast path without the lock.
        if value is None:
            with self._shared_lock:
                if key not in self._shared:
                    self._shared[key] = make()
                value = self._shared[key]
        return value  # type: ignore[no-any-return]


def _missing(i: str) -> MissingNodeError:
    return MissingNodeError(f"no node {i!r} in the graph; it may have been removed or changed")
