"""The database table of nodes, with a cache of recently read nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from ..derivation import DOCUMENT_STRIDE
from ..document import Document
from ..node import Node
from .block_table import StoredBlocks
from .columns import from_id, reading_rows, to_id, to_ids
from .database import Row, select
from .group_table import StoredGroups
from .node_rows import NODES, Fields, NodeRow, NodeRows
from .transactions import Transactions

PAGE = 1000
"""The number of nodes that are read at a time."""

# size of the cached nodes; a new graph of 10,000 passages needs no queries
_CACHED_CHARACTERS = 32_000_000

_NODE_SIZE = 500  # estimated memory of a node without its text, in characters

_WRITTEN_CHARACTERS = 50_000_000  # size of the newly written nodes that are kept


def _size(nodes: Iterable[Node]) -> int:
    """Estimate the memory used by nodes, in characters."""
    return sum([_NODE_SIZE + len(node.text) for node in nodes])


class StoredNodes:
    """Reads the nodes in a store, and caches recently used nodes.

    Args:
        transactions: The manager of transactions.
        groups: The table of groups.
        blocks: The table of the documents' texts.
        rows: The converter between nodes and rows.
    """

    def __init__(
        self,
        transactions: Transactions,
        groups: StoredGroups,
        blocks: StoredBlocks,
        rows: NodeRows,
    ) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._groups = groups
        self._blocks = blocks
        self._rows = rows
        self._graph: Any = None  # the graph to which nodes are attached
        self._forget()
        transactions.on_forget.append(self._forget)

    def attach_to(self, graph: Any) -> None:
        """Attach all nodes that are read from now on to the given graph."""
        self._graph = graph
        self._forget()

    def of_document(self, document: Document, key: int, fields: Fields) -> Node:
        """Return the node of a new document, as it will be read from the store.

        Args:
            document: The document.
            key: The database key of the document.
            fields: The encoded metadata and search text of the document.
        """
        return self._rows.root_node(document, key, fields, self._graph)

    # The cache

    def _forget(self) -> None:
        self._cached: dict[str, Node] = {}  # keyed by node id, oldest first
        self._size = 0  # total size of the cached nodes, in characters
        self._written: dict[str, dict[str, list[Node]]] = {}  # keyed by group and document id
        self._written_sizes: dict[str, int] = {}  # size in characters, keyed by group

    def keep_written(self, group: str, nodes: Mapping[str, list[Node]]) -> None:
        """Keep newly written nodes in memory for the next search, unless a build writes too many.

        Args:
            group: The name of the group.
            nodes: The nodes as they would be read from the store, keyed by document id.
        """
        size = sum([_size(of_document) for of_document in nodes.values()])
        if sum(self._written_sizes.values()) + size < _WRITTEN_CHARACTERS:
            self._written_sizes[group] = self._written_sizes.get(group, 0) + size
            self._written.setdefault(group, {}).update(nodes)
        if self._size < _CACHED_CHARACTERS:
            self._cache(chain.from_iterable(nodes.values()))

    def written(self, group: str) -> dict[str, list[Node]]:
        """Return newly written nodes of a group that were kept in memory, keyed by document id."""
        return self._written.get(group, {})

    def are_all_written(self, group: str) -> bool:
        """Return whether all documents from which a group was derived are kept in memory.

        This is False if a document has no node or several nodes in the group.
        """
        return len(self.written(group)) == self._groups.row(group).size

    def _all_written(self, group: str) -> list[Node] | None:
        """Return all nodes of a group in document order, or None if some are not in memory."""
        families = [nodes for nodes in self.written(group).values() if nodes]
        count = sum([len(nodes) for nodes in families])
        if not count or count != self._groups.row(group).size:
            return None
        families.sort(key=lambda nodes: nodes[0].order)
        return list(chain.from_iterable(families))

    def forget_written(self, group: str, documents: Iterable[str] | None = None) -> None:
        """Discard newly written nodes of a group that were kept in memory.

        Args:
            group: The name of the group.
            documents: The document ids. If None, the nodes of all documents are discarded.
        """
        if documents is None:
            self._written.pop(group, None)
            self._written_sizes.pop(group, None)
            return
        written = self.written(group)
        for document_id in documents:
            nodes = written.pop(document_id, ())
            if nodes:
                self._written_sizes[group] -= _size(nodes)

    def _cache(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._cached[node.id] = node
            self._size += _NODE_SIZE + len(node.text)

    def _drop_oldest(self) -> None:
        """Remove the oldest quarter of the cached nodes if the cache is too large."""
        if self._size <= _CACHED_CHARACTERS:
            return
        size = 0
        oldest: list[str] = []
        for node in self._cached.values():
            if size > self._size // 4:
                break
            size += _NODE_SIZE + len(node.text)
            oldest.append(node.id)
        self.drop(oldest)

    def drop(self, ids: Iterable[str]) -> None:
        """Remove nodes that may have changed from the cache."""
        for i in ids:
            node = self._cached.pop(i, None)
            if node is not None:
                self._size -= _NODE_SIZE + len(node.text)

    # Reading

    def _nodes(self, columns: Iterable[Row]) -> list[Node]:
        """Convert rows to nodes.

        This must be called before the end of the read transaction in which the rows were selected.
        """
        nodes: list[Node] = []
        last = None
        with reading_rows(self._database.place):
            rows = [NodeRow(*of_one) for of_one in columns]
            for row, text in zip(rows, self._texts(rows), strict=True):
                if last is None or row.document != last.document or row.group != last.group:
                    source = self._rows.source(row, self._groups.name(row.group))
                    last = row
                nodes.append(self._rows.node(row, text, source, self._graph))
        return nodes

    def _texts(self, rows: Sequence[NodeRow]) -> list[str]:
        """Return the text of each row. Long texts are read from their blocks."""
        texts = [row.short_text for row in rows]
        if None not in texts:
            return cast(list[str], texts)
        long = [row.span for row, text in zip(rows, texts, strict=True) if text is None]
        read = iter(self._blocks.read(long))
        return [next(read) if text is None else text for text in texts]

    def _read(self, condition: str, values: Sequence[Any]) -> list[Node]:
        """Return the nodes that satisfy an SQL condition, which may include an order."""
        return self._nodes(self._database.rows(f"{NODES} WHERE {condition}", values))

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return the nodes with the given ids.

        The result contains None for ids that do not exist.
        """
        with self._transactions:
            self._drop_oldest()
            cached = self._cached
            nodes = [cached.get(i) for i in ids]
            if all(nodes):
                return nodes
            missing = [i for i in dict.fromkeys(ids) if i not in self._cached]
            query = f"{NODES} WHERE n.id IN"
            self._cache(self._nodes(select(self._database, query, to_ids(missing))))
            return [self._cached.get(i) for i in ids]

    def are_cached(self, ids: Iterable[str]) -> bool:
        """Return whether all nodes with the given ids are in the cache."""
        return all([i in self._cached for i in ids])

    def of_group(self, group: str) -> Iterator[Node]:
        """Yield all nodes of a group in document order. The nodes are read in pages."""
        with self._transactions:
            written = self._all_written(group)
        if written is not None:
            yield from written
            return
        document = -1
        place = 0
        while True:
            with self._transactions:
                page = self._read(
                    "d.grp = ? AND d.document >= ? AND (d.document > ? OR n.place > ?) "
                    "ORDER BY d.document, n.place LIMIT ?",
                    [self._groups.row(group).key, document, document, place, PAGE],
                )
                if self._size < _CACHED_CHARACTERS:
                    self._cache([node for node in page if node.id not in self._cached])
            yield from page
            if len(page) < PAGE:
                return
            document, place = divmod(page[-1].order, DOCUMENT_STRIDE)

    def of_derivations(self, keys: Iterable[int]) -> list[Node]:
        """Return the nodes of the given derivations.

        Nodes of one document are in document order.
        """
        query = f"{NODES} WHERE n.derivation IN"
        order = "ORDER BY d.document, n.place"
        return self._nodes(select(self._database, query, keys, order=order))

    def ids(self, group: str, limit: int | None = None) -> list[str]:
        """Return the ids of the nodes in a group in document order. The group may be ``ROOT``.

        Args:
            group: The name of the group.
            limit: The maximum number of ids. If None, the ids of all nodes are returned.
        """
        end = "" if limit is None else f" LIMIT {limit}"
        with self._transactions:
            rows = self._database.rows(
                "SELECT n.id FROM nodes n JOIN derivations d ON d.key = n.derivation "
                f"WHERE d.grp = ? ORDER BY d.document, n.place{end}",
                [self._groups.row(group).key],
            )
        with reading_rows(self._database.place):
            return [from_id(i) for (i,) in rows]

    # Relatives

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the id of the parent of each existing node, or None for nodes without a parent."""
        parents: dict[str, str | None] = {}
        query = (
            "SELECT n.id, n.parent, docs.id, d.grp FROM nodes n JOIN derivations d "
            "ON d.key = n.derivation JOIN documents docs ON docs.key = d.document WHERE n.id IN"
        )
        with self._transactions:
            rows = select(self._database, query, to_ids(ids))
        with reading_rows(self._database.place):
            for node, parent, document, group in rows:
                above = document if parent is None else parent
                parents[from_id(node)] = (from_id(above) or None) if group else None
        return parents

    def children(self, group: str, parent: Node) -> list[Node]:
        """Return the children of a node in a group, in document order."""
        with self._transactions:
            values = [self._groups.row(group).key, to_id(parent.id)]
            return self._read(f"{_has_parent(parent)} ORDER BY n.place", values)

    def count_children(self, group: str, parent: Node) -> int:
        """Return the number of children of a node in a group, without reading them."""
        query = (
            "SELECT COUNT(*) FROM nodes n JOIN derivations d ON d.key = n.derivation "
            f"JOIN documents docs ON docs.key = d.document WHERE {_has_parent(parent)}"
        )
        with self._transactions:
            values = [self._groups.row(group).key, to_id(parent.id)]
            ((count,),) = self._database.rows(query, values)
        return int(count)

    def around(self, node: Node, before: int, after: int) -> list[Node]:
        """Return a node and its neighbors in the same group and document, in document order.

        The nodes may have different parents.

        Args:
            node: A node that is derived from a document.
            before: The maximum number of nodes before the node.
            after: The maximum number of nodes after the node.
        """
        place = node.order % DOCUMENT_STRIDE
        first = max(0, place - before)
        last = min(DOCUMENT_STRIDE, place + after)
        with self._transactions:
            key = self._groups.row(node.group).key
            return self._read(
                "d.grp = ? AND docs.id = ? AND n.place BETWEEN ? AND ? ORDER BY n.place",
                [key, to_id(node.document_id), first, last],
            )


def _has_parent(parent: Node) -> str:
    """Return the condition for the children of a node. Its values are a group and the node's id."""
    of_parent = "n.parent = ?"
    if parent.id == parent.document_id:
        of_parent = "docs.id = ? AND n.parent IS NULL"
    return f"d.grp = ? AND {of_parent}"
