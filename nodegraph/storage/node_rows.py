"""Conversion of nodes to rows, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from ..derivation import DOCUMENT_STRIDE
from ..node import NO_METADATA, ROOT, Node
from ..search_text import SearchText
from .database import Database, Row
from .groups import Groups
from .rows import ValueColumns, from_id, from_text, marks, portions, to_id, to_text

_QUERY = """
    SELECT n.id, n.text, n.content, n.begin, n.shift, n.metadata, n.inherited, n.parent, n.place,
        n.search_text, n.inherited_search_text, d.document, d.grp, d.fields, d.search_text, docs.id
    FROM nodes n JOIN derivations d ON d.key = n.derivation
    JOIN documents docs ON docs.key = d.document
"""

_INSERT = (
    "INSERT INTO nodes (key, id, derivation, place, revision, parent, begin, shift, metadata, "
    f"inherited, search_text, inherited_search_text, content, text) VALUES ({marks(range(14))})"
)

Fields: TypeAlias = tuple[bytes | None, bytes | None]
"""The metadata of a document and its search text, as columns."""

NO_FIELDS: Fields = (None, None)

_CACHED = 4096  # distinct metadata and search texts

_CACHED_CHARACTERS = 8_000_000  # of nodes

_NODE_SIZE = 500  # characters that a node takes without its text

_NO_SEARCH_TEXT = b""
"""The parent of a node has no search text, but its document has one."""


class NodeRows:
    """The rows of nodes, with a cache of recently read nodes.

    Args:
        database: The database.
        columns: Converts metadata and contents.
        groups: The groups of the store.

    Attributes:
        graph: The graph of the nodes. None: the nodes have no graph.
    """

    def __init__(self, database: Database, columns: ValueColumns, groups: Groups) -> None:
        self._db = database
        self._columns = columns
        self._groups = groups
        self.graph: Any = None
        self._metadata = lru_cache(_CACHED)(columns.from_value)
        self._search_text = lru_cache(_CACHED)(self._decoded_search_text)
        self._inherited = lru_cache(_CACHED)(self._merged_metadata)
        self.forget()

    def forget(self) -> None:
        """Clear the cache of nodes."""
        self._nodes: dict[str, Node] = {}  # by id
        self._size = 0

    def drop(self, ids: Iterable[str]) -> None:
        """Remove changed nodes from the cache."""
        if self._nodes:
            for i in ids:
                self._nodes.pop(i, None)

    def _decoded_search_text(self, value: bytes) -> SearchText | None:
        if value == _NO_SEARCH_TEXT:
            return None
        return SearchText.from_row(self._columns.from_value(value))

    def _merged_metadata(self, fields: bytes | None, beyond: bytes | None) -> Mapping[str, Any]:
        shared = NO_METADATA if fields is None else self._metadata(fields)
        return shared if beyond is None else {**shared, **self._metadata(beyond)}

    # Reading

    def read(self, where: str, values: Sequence[Any]) -> list[Node]:
        """Return the nodes that meet a condition.

        Args:
            where: The condition, and the order. ``n``: the node, ``d``: its derivation, ``docs``:
                its document.
            values: The values of the placeholders.
        """
        return [self._node(row) for row in self._db.rows(f"{_QUERY} WHERE {where}", values)]

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id; None for ids that do not exist."""
        if self._size > _CACHED_CHARACTERS:
            self.forget()
        nodes = self._nodes
        for batch in portions(to_id(i) for i in dict.fromkeys(ids) if i not in nodes):
            for node in self.read(f"n.id IN ({marks(batch)})", batch):
                nodes[node.id] = node
                self._size += _NODE_SIZE + len(node.text)
        return [nodes.get(i) for i in ids]

    def of_derivations(self, keys: Iterable[int]) -> Iterator[Node]:
        """Yield the nodes of some derivations. The nodes of one document are in its order."""
        for batch in portions(keys):
            where = f"n.derivation IN ({marks(batch)}) ORDER BY d.document, n.place"
            yield from self.read(where, batch)

    def _node(self, row: Row) -> Node:
        node_id, text, content, start, shift, metadata, beyond, parent, place = row[:9]
        search_text, search_text_above, document, grp, fields, of_document, document_id = row[9:]
        words, name, group = from_text(text), from_id(document_id), self._groups.name(grp)
        declared = None if of_document is None else self._search_text(of_document)
        end = None if start is None else start + len(words)
        order = document * DOCUMENT_STRIDE + place
        shared = self._inherited(fields, beyond)
        if group == ROOT:
            return Node(
                words, shared, None, start, end, name, ROOT, name, None, None, order,
                NO_METADATA, declared, None, self.graph,
            )  # fmt: skip
        return Node(
            words,
            NO_METADATA if metadata is None else self._metadata(metadata),
            None if content is None else self._columns.from_value(content),
            start,
            end,
            from_id(node_id),
            group,
            name,
            (name or None) if parent is None else from_id(parent),
            shift,
            order,
            shared,
            None if search_text is None else self._search_text(search_text),
            declared if search_text_above is None else self._search_text(search_text_above),
            self.graph,
        )

    # Writing

    def fields(self, document: Node) -> Fields:
        """Return the columns ``fields`` and ``search_text`` of a document's derivations.

        Raises:
            TypeError: If metadata has a value that the store cannot hold.
        """
        owner = f"document {document.id!r}"
        metadata = self._columns.to_metadata(document.own_metadata, owner)
        return metadata, self._declaration(document.search_text)

    def _declaration(self, search_text: SearchText | None) -> bytes | None:
        return None if search_text is None else self._columns.to_value(search_text.to_row())

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert rows of nodes."""
        self._db.run_many(_INSERT, rows)

    def of_root(self, key: int, derivation: int, revision: int, node: Node) -> Row:
        """Return the row of a document's node."""
        place = node.order % DOCUMENT_STRIDE
        nothing = (None,) * 6
        text = to_text(node.text)
        return (key, to_id(node.id), derivation, place, revision, None, node.start, *nothing, text)

    def rows(
        self,
        first_key: int,
        derivation: int,
        revision: int,
        nodes: Iterable[Node],
        fields: Fields,
    ) -> Iterator[Row]:
        """Yield the rows of one document's derived nodes.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        shared = self._inherited(fields[0], None)
        declared = None if fields[1] is None else self._search_text(fields[1])
        siblings, beyond = shared, None
        for key, node in enumerate(nodes, first_key):
            if node.inherited is not siblings:
                siblings = node.inherited
                beyond = self._columns.to_metadata(_beyond(siblings, shared), "a parent")
            above = None
            if node.inherited_search_text != declared:
                above = self._declaration(node.inherited_search_text) or _NO_SEARCH_TEXT
            of_document = node.parent_id is None or node.parent_id == node.document_id
            yield (
                key,
                to_id(node.id),
                derivation,
                node.order % DOCUMENT_STRIDE,
                revision,
                None if of_document else to_id(node.parent_id or ""),
                node.start,
                node.offset,
                self._own_metadata(node),
                beyond,
                self._declaration(node.search_text),
                above,
                self._content(node),
                to_text(node.text),
            )

    def _own_metadata(self, node: Node) -> bytes | None:
        owner = f"a node of document {node.document_id!r}"
        return self._columns.to_metadata(node.own_metadata, owner) if node.own_metadata else None

    def _content(self, node: Node) -> bytes | None:
        """Return the content of a node; None if it equals the text."""
        if node.content is node.text:
            return None
        if type(node.content) is str and node.content == node.text:
            return None
        return self._columns.to_value(node.content)

    def check(self, nodes: Iterable[Node]) -> None:
        """Check that nodes can be stored.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        if not self._columns.keeps_objects:
            for node in nodes:
                self._columns.to_metadata(node.own_metadata, f"node {node.text!r:.40}")
                self._content(node)


def _beyond(inherited: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inherited metadata that the document does not have."""
    return {k: v for k, v in inherited.items() if k not in shared or shared[k] != v}
