"""Groups whose nodes come from elsewhere: kept in the store, and there when it is opened again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .codec import decode, encode
from .graph_reader import GraphReader
from .groups import NodeGroup, make_group
from .hashing import digest
from .locking import Access
from .node import NO_METADATA, ROOT, Node
from .search_text import SearchText
from .store import NodeStore

logger = logging.getLogger(__name__)

_GROUPS, _NODES = "imported groups", "imported nodes of "  # kinds of values in the store


class Family(NamedTuple):
    """Imported nodes with their parent.

    Attributes:
        parent: The parent's id: of a document, or the one that it had where it comes from.
        text: The parent's text.
        nodes: The children, in order, as a transform returns them.
    """

    parent: str
    text: str
    nodes: Sequence[Node]


class ImportedNodes:
    """A transform that returns the imported children of each node.

    Args:
        store: Where they are kept.
        group: The name of their group.
        id_field: The metadata field of an imported node with the id that it had.
    """

    trans_node = True

    def __init__(self, store: NodeStore, group: str, id_field: str) -> None:
        self._store = store
        self._kind = _NODES + group
        self._id_field = id_field

    def __call__(self, node: Node) -> list[Node]:
        """Return the children of a node; none if it was not imported, or has another text now."""
        parent = node.id if node.group == ROOT else node.own_metadata.get(self._id_field, node.id)
        value = self._store.get_values(self._kind, [str(parent)]).get(str(parent))
        if value is None:
            return []
        text_hash, rows = decode(value.decode())
        if text_hash != digest(node.text):
            logger.warning(
                "%r has another text than when its nodes were imported into %r, and none there "
                "now; import it again",
                parent,
                self._kind.removeprefix(_NODES),
            )
            return []
        return [_from_row(row) for row in rows]


class ImportedGroups:
    """Groups of a graph whose nodes come from elsewhere; ``graph.imports`` is the one of a graph.

    They are kept in the store: a graph that is opened from its file has them. ``in`` tells whether
    a group is one of them.

    Args:
        store: The graph's store.
        access: Who may read and write the graph.
        reader: Declares the groups in the graph.
        check: Raises where the graph can't be changed now.
    """

    def __init__(
        self, store: NodeStore, access: Access, reader: GraphReader, check: Callable[[], None]
    ) -> None:
        self._store = store
        self._access = access
        self._reader = reader
        self._check = check

    def __contains__(self, group: object) -> bool:
        return isinstance(group, str) and group in self._store.get_values(_GROUPS, [group])

    def __iter__(self) -> Iterator[NodeGroup]:
        """Yield the groups, parents before their children."""
        rows = self._rows()
        waiting = list(rows)
        while ready := [name for name in waiting if rows[name][0] not in waiting]:
            yield from (self._group(name, *rows[name]) for name in ready)
            waiting = [name for name in waiting if name not in ready]

    def add(
        self, name: str, families: Iterable[Family], parent: str = ROOT, *, id_field: str
    ) -> None:
        """Declare a group whose nodes come from elsewhere, or add nodes to it.

        The same nodes again change nothing. A document whose text changes in another way than by
        an import has no nodes in the group any more.

        Args:
            name: The group's name.
            families: The nodes, each family with its parent. They replace earlier ones of the same
                parents.
            parent: The group of the parents: ``ROOT`` or an imported one.
            id_field: The metadata field of an imported node that has the id by which its own
                children name it.

        Raises:
            UnknownGroupError: If there is no parent group.
            ValueError: If the group is there and was not imported.
            TypeError: If metadata has a value that a store can't hold.
        """
        if name == ROOT or (name in self._reader.group_names() and name not in self):
            raise ValueError(
                f"the group {name!r} is there with another rule; name the imported one otherwise"
            )
        self._reader.lineage(parent)
        self._check()
        with self._access.changing():
            group = self._put(name, parent, families, id_field)
        self._reader.declare(group, replace=True)

    def _put(self, group: str, parent: str, families: Iterable[Family], id_field: str) -> NodeGroup:
        values = {
            family.parent: encode(
                [digest(family.text), [_to_row(node) for node in family.nodes]]
            ).encode("utf-8", "surrogatepass")
            for family in families
        }
        stored = self._store.get_values(_NODES + group, values.keys())
        changed = {key: value for key, value in values.items() if stored.get(key) != value}
        old = self._rows().get(group)
        version = "" if old is None or old[0] != parent else old[2]
        if changed or not version:
            parts = [f"{key}\0{digest(value.hex())}" for key, value in sorted(changed.items())]
            version = digest("import", version, *parts)
        with self._store.transaction():
            self._store.put_values(_NODES + group, changed)
            row = encode([parent, id_field, version]).encode()
            self._store.put_values(_GROUPS, {group: row})
        return self._group(group, parent, id_field, version)

    def drop(self, group: str) -> None:
        """Forget a group that has become another one, and those below it."""
        with self._store.transaction():
            for below, (parent, *_) in self._rows().items():
                if parent == group:
                    self.drop(below)
            self._store.delete_values(_NODES + group)
            self._store.delete_values(_GROUPS, [group])

    def _rows(self) -> dict[str, Sequence[str]]:
        values = self._store.get_values(_GROUPS)
        return {group: decode(value.decode()) for group, value in values.items()}

    def _group(self, name: str, parent: str, id_field: str, version: str) -> NodeGroup:
        transform = ImportedNodes(self._store, name, id_field)
        return make_group(name, transform, parent, True, 0, version, {})


def _to_row(node: Node) -> list[Any]:
    content = None if node.content == node.text else node.content
    search_text = node.search_text and node.search_text.to_row()
    return [node.text, content, node.start, dict(node.own_metadata), search_text]


def _from_row(row: Sequence[Any]) -> Node:
    text, content, start, metadata, search_text = row
    fields: Mapping[str, Any] = metadata or NO_METADATA
    searched = None if search_text is None else SearchText.from_row(search_text)
    return Node(text, fields, content, start, search_text=searched)
