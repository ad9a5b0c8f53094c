"""The tables of nodes and links, with a cache of recently read nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from ..derivation import DOCUMENT_STRIDE
from ..node import NO_METADATA, ROOT, Link, Node
from ..search_text import SearchText
from .columns import (
    check_numbers,
    from_id,
    from_text,
    from_words,
    marks,
    portions,
    reading_rows,
    to_id,
    to_text,
    to_words,
)
from .database import Row
from .tables import Tables

PAGE = 1000
"""Nodes that are read in one turn."""

_QUERY = """
    SELECT n.id, n.text, n.content, n.begin, n.shift, n.metadata, n.inherited, n.parent, n.place,
        n.search_text, n.inherited_search_text, d.document, d.grp, d.fields, d.search_text, docs.id
    FROM nodes n JOIN derivations d ON d.key = n.derivation
    JOIN documents docs ON docs.key = d.document
"""

_LINKS = "SELECT l.source, l.target, l.type, l.weight, l.metadata, l.derived FROM links l"

Fields: TypeAlias = tuple[bytes | None, bytes | None]
"""The metadata of a document and its search text, as columns."""

NO_FIELDS: Fields = (None, None)

_MAX_DOCUMENTS = 1 << 30  # positions in document order have 64 bits

_CACHED = 4096  # distinct metadata and search texts

_CACHED_CHARACTERS = 8_000_000  # of nodes

_NODE_SIZE = 500  # characters that a node takes without its text

_NO_SEARCH_TEXT = b""
"""The parent of a node has no search text, but its document has one."""


class NodeTables(Tables):
    """The nodes and links of a store.

    A derived link stays while its target is missing. Other links are deleted with either end.
    """

    _graph: Any = None  # the graph of the nodes

    def _set_up(self) -> None:
        super()._set_up()
        self._metadata = lru_cache(_CACHED)(self._decoded_metadata)
        self._search_text = lru_cache(_CACHED)(self._decoded_search_text)
        self._inherited = lru_cache(_CACHED)(self._merged_metadata)

    def _forget(self) -> None:
        super()._forget()
        self._nodes: dict[str, Node] = {}  # by id
        self._size = 0  # the size of these nodes, in characters

    def attach_to(self, graph: Any) -> None:
        """Connect all nodes that are read from now on with a graph."""
        self._graph = graph
        self._forget()

    # Reading nodes

    def _read(self, where: str, values: Sequence[Any]) -> list[Node]:
        """Return the nodes that meet a condition.

        Args:
            where: The condition, and the order. ``n``: the node, ``d``: its derivation, ``docs``:
                its document.
            values: The values of the placeholders.
        """
        rows = self.database.rows(f"{_QUERY} WHERE {where}", values)
        with reading_rows(self.database.place):
            return [self._node(row) for row in rows]

    def _cache(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._nodes[node.id] = node
            self._size += _NODE_SIZE + len(node.text)

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id; None for ids that do not exist."""
        with self:
            if self._size > _CACHED_CHARACTERS:
                self._nodes, self._size = {}, 0
            nodes = self._nodes
            for batch in portions(to_id(i) for i in dict.fromkeys(ids) if i not in nodes):
                self._cache(self._read(f"n.id IN ({marks(batch)})", batch))
            return [nodes.get(i) for i in ids]

    def nodes(self, group: str) -> Iterator[Node]:
        """Yield the nodes of a group in document order, read in pages."""
        document, place = -1, 0
        while True:
            with self:
                page = self._read(
                    "d.grp = ? AND d.document >= ? AND (d.document > ? OR n.place > ?) "
                    "ORDER BY d.document, n.place LIMIT ?",
                    [self._group(group).key, document, document, place, PAGE],
                )
                if self._size < _CACHED_CHARACTERS:
                    self._cache(page)
            yield from page
            if len(page) < PAGE:
                return
            document, place = divmod(page[-1].order, DOCUMENT_STRIDE)

    def _of_derivations(self, keys: Iterable[int]) -> Iterator[Node]:
        """Yield the nodes of some derivations. The nodes of one document are in its order."""
        for batch in portions(keys):
            where = f"n.derivation IN ({marks(batch)}) ORDER BY d.document, n.place"
            yield from self._read(where, batch)

    def _node(self, row: Row) -> Node:
        node_id, text, content, start, shift, metadata, beyond, parent, place = row[:9]
        search_text, search_text_above, document, grp, fields, of_document, document_id = row[9:]
        is_wrong = type(place) is not int or type(document) is not int
        if is_wrong or not (0 <= place < DOCUMENT_STRIDE and 0 <= document < _MAX_DOCUMENTS):
            raise ValueError(f"the place must be a number, got {document!r:.20}, {place!r:.20}")
        if start is not None:
            check_numbers(start, abs(shift or 0))
        words, name, group = from_words(text), from_id(document_id), self._names.get(grp)
        if group is None:
            self._all_groups()
            group = self._names[grp]
        inherited = self._inherited(fields, beyond)
        declared = None if of_document is None else self._search_text(of_document)
        if group == ROOT:
            own, inherited, own_search_text, declared = inherited, NO_METADATA, declared, None
            i, parent_id = name, None
        else:
            own = NO_METADATA if metadata is None else self._metadata(metadata)
            own_search_text = None if search_text is None else self._search_text(search_text)
            if search_text_above is not None:
                declared = self._search_text(search_text_above)
            i, parent_id = from_id(node_id), name or None
            if parent is not None:
                parent_id = from_id(parent)
        content = None if content is None else self._from_value(content)
        end = None if start is None else start + len(words)
        order = document * DOCUMENT_STRIDE + place
        fields = (words, own, content, start, end, i, group, name, parent_id, shift, order)
        return Node(*fields, inherited, own_search_text, declared, self._graph)

    def _decoded_search_text(self, value: bytes) -> SearchText | None:
        return None if value == _NO_SEARCH_TEXT else SearchText.from_row(self._from_value(value))

    def _decoded_metadata(self, value: bytes) -> Mapping[str, Any]:
        metadata = self._from_value(value)
        if not isinstance(metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, got {type(metadata).__name__}")
        return metadata

    def _merged_metadata(self, fields: bytes | None, beyond: bytes | None) -> Mapping[str, Any]:
        shared = NO_METADATA if fields is None else self._metadata(fields)
        return shared if beyond is None else {**shared, **self._metadata(beyond)}

    # Writing nodes

    def _fields(self, document: Node) -> Fields:
        """Return the columns ``fields`` and ``search_text`` of a document's derivations.

        Raises:
            TypeError: If metadata has a value that the store cannot hold.
        """
        metadata = self._to_metadata(document.own_metadata, f"document {document.id!r}")
        return metadata, self._declaration(document.search_text)

    def _declaration(self, search_text: SearchText | None) -> bytes | None:
        return None if search_text is None else self._to_value(search_text.to_row())

    def _node_rows(
        self,
        first_key: int,
        derivation: int,
        revision: int,
        nodes: Iterable[Node],
        fields: Fields,
    ) -> Iterator[Row]:
        """Yield the rows of the nodes of one document in a group.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        shared = self._inherited(fields[0], None)
        declared = None if fields[1] is None else self._search_text(fields[1])
        siblings, beyond = shared, None
        for key, node in enumerate(nodes, first_key):
            own = search_text = above = parent = None
            if node.group != ROOT:  # a document's own columns are the fields of its derivation
                if node.own_metadata:
                    owner = f"a node of document {node.document_id!r}"
                    own = self._to_metadata(node.own_metadata, owner)
                search_text = self._declaration(node.search_text)
                if node.inherited_search_text != declared:
                    above = self._declaration(node.inherited_search_text) or _NO_SEARCH_TEXT
                if node.inherited is not siblings:
                    siblings = node.inherited
                    more = {k: v for k, v in siblings.items() if k not in shared or shared[k] != v}
                    beyond = self._to_metadata(more, "a parent")
                if node.parent_id is not None and node.parent_id != node.document_id:
                    parent = to_id(node.parent_id)
            place = node.order % DOCUMENT_STRIDE
            keys = (key, to_id(node.id), derivation, place, revision, parent)
            values = (node.start, node.offset, own, beyond, search_text, above)
            yield (*keys, *values, self._content(node), to_words(node.text))

    def _content(self, node: Node) -> bytes | None:
        """Return the content of a node; None if it equals the text."""
        content = node.content
        if content is node.text or (type(content) is str and content == node.text):
            return None
        return self._to_value(content)

    def check(self, nodes: Iterable[Node]) -> None:
        """Check that nodes can be stored.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        if self._objects is None:
            for node in nodes:
                self._to_metadata(node.own_metadata, f"node {node.text!r:.40}")
                self._content(node)

    # Links

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node, in insertion order.

        Links to or from missing nodes are omitted.
        """
        side = "target" if incoming else "source"
        query = f"{_LINKS} JOIN nodes s ON s.id = l.source JOIN nodes t ON t.id = l.target WHERE"
        with self:
            links = self._read_links(query, side, ids)
        return [links.get(i, []) for i in ids]

    def _derived_links(self, ids: Sequence[str]) -> dict[str, list[Link]]:
        """Return the derived links from nodes, including links to missing nodes."""
        return self._read_links(f"{_LINKS} WHERE l.derived = 1 AND", "source", ids)

    def _read_links(self, query: str, side: str, ids: Collection[str]) -> dict[str, list[Link]]:
        """Return the links of nodes, by the id of their source or target."""
        links: dict[str, list[Link]] = {}
        for batch in portions(map(to_id, dict.fromkeys(ids))):
            of_batch = f"{query} l.{side} IN ({marks(batch)}) ORDER BY l.key"
            rows = self.database.rows(of_batch, batch)
            with reading_rows(self.database.place):
                for source, target, kind, weight, metadata, derived in rows:
                    more = {} if metadata is None else self._decoded_metadata(metadata)
                    ends = (from_id(source), from_id(target))
                    link = Link(*ends, from_text(kind), float(weight), more, bool(derived))
                    links.setdefault(ends[side == "target"], []).append(link)
        return links

    def _put_links(self, links: Iterable[Link]) -> None:
        """Insert links, or replace links with equal nodes and type."""
        rows: list[Row] = []
        for link in links:
            metadata = self._to_metadata(link.metadata, f"a link of {link.source!r}")
            rows.append((*_link_key(link), float(link.weight), metadata, int(link.derived)))
        if rows:
            last = self._next_key("links", len(rows))
            self.database.run_many(
                "INSERT INTO links (key, source, target, type, weight, metadata, derived) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, target, type) DO UPDATE SET "
                "weight = excluded.weight, metadata = excluded.metadata, "
                "derived = excluded.derived",
                [(key, *row) for key, row in enumerate(rows, last - len(rows) + 1)],
            )

    def _delete_links(self, replaced: Sequence[str], deleted: Sequence[str]) -> None:
        """Delete the derived links of replaced nodes, and the other links of deleted nodes."""
        of_replaced, of_deleted = ([(to_id(i),) for i in ids] for ids in (replaced, deleted))
        delete, run_many = "DELETE FROM links WHERE", self.database.run_many
        run_many(f"{delete} source = ? AND derived = 1", of_replaced)
        run_many(f"{delete} source = ?", of_deleted)
        run_many(f"{delete} target = ? AND derived = 0", of_deleted)

    def link(self, links: Sequence[Link]) -> None:
        """Insert links, or replace links with equal nodes and type.

        Raises:
            LookupError: If a node does not exist.
        """
        with self.transaction():
            ends = [i for link in links for i in (link.source, link.target)]
            for i, node in zip(ends, self.get(ends), strict=True):
                if node is None:
                    raise LookupError(f"no node {i!r} to link; it may have been removed or changed")
            self._put_links(links)
            self._record_links(links)

    def unlink(self, links: Sequence[Link]) -> None:
        """Remove links; unknown links are ignored."""
        with self.transaction():
            self.database.run_many(
                "DELETE FROM links WHERE source = ? AND target = ? AND type = ?",
                [_link_key(link) for link in links],
            )
            self._record_links(links)

    def _record_links(self, links: Sequence[Link]) -> None:
        """Record a change of links as a change of the groups of their sources."""
        self._has_changed = True
        nodes = self.get([link.source for link in links])
        # Nothing is derived from the links of documents.
        for group in {node.group: None for node in nodes if node and node.group != ROOT}:
            self._record(group, [], 0)


def _link_key(link: Link) -> tuple[bytes, bytes, bytes]:
    return to_id(link.source), to_id(link.target), to_text(link.type)
