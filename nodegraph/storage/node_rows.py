"""Convert database rows to nodes, and nodes to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..derivation import DOCUMENT_STRIDE
from ..document import Document
from ..node import NO_METADATA, ROOT, Node, node_of_fields
from ..search_text import SearchText
from .block_table import BLOCK, MAX_BLOCKS, TextSpan
from .columns import ValueColumns, check_numbers, from_id, from_words, marks, to_id, to_words
from .database import Row

_MAX_DOCUMENTS = 1 << 30  # Positions in document order must fit into 64 bits.

_CACHED = 4096  # maximum number of distinct metadata and search texts in the cache

_NO_SEARCH_TEXT = b""
"""A marker for nodes whose parent has no search text although their document has one."""


NEW_NODE = (
    "INSERT INTO nodes (key, id, derivation, place, revision, parent, begin, shift, metadata, "
    "inherited, search_text, inherited_search_text, content, text, length) "
    f"VALUES ({marks(range(15))})"
)
"""The SQL statement that inserts a row returned by ``NewRows.of``."""


class NodeRow(NamedTuple):
    """A row of the nodes table, joined with its derivation and its document.

    The fields are in the order of the query ``NODES``.
    """

    id: bytes
    text: bytes | None
    content: bytes | None
    start: int | None
    offset: int | None
    metadata: bytes | None
    beyond: bytes | None
    parent: bytes | None
    place: int
    search_text: bytes | None
    inherited_search_text: bytes | None
    document: int
    group: int
    document_metadata: bytes | None
    document_search_text: bytes | None
    document_id: bytes
    length: int | None
    document_text: int
    block: bytes | None
    next_block: bytes | None

    @property
    def span(self) -> TextSpan:
        """The position of the text in the document.

        Raises:
            ValueError: If the row does not contain a position.
        """
        if self.start is None or self.length is None:
            raise ValueError("a node must have a text or a span")
        return TextSpan(self.document_text, self.start, self.length)

    @property
    def short_text(self) -> str | None:
        """The text of the node, or None if it extends over more than two blocks."""
        if self.text is not None:
            return from_words(self.text)
        if self.block is None or self.start is None or self.length is None:
            return None
        text = from_words(self.block)
        if self.next_block is not None:
            text += from_words(self.next_block)
        start = self.start % BLOCK
        if start or len(text) != self.length:
            text = text[start : start + self.length]
        return text if len(text) == self.length else None


FIELDS = """
    CASE WHEN d.fields IS NULL THEN docs.fields ELSE d.fields END,
    CASE WHEN d.fields IS NULL THEN docs.search_text ELSE d.search_text END
"""
"""The columns of a document's metadata and search text at the time of a derivation."""

NO_FIELD = b""
"""The document had no metadata at the time of the derivation, but may have metadata now."""

_BLOCK_KEY = f"d.text * {MAX_BLOCKS} + n.begin / {BLOCK}"

NODES = f"""
    SELECT n.id, n.text, n.content, n.begin, n.shift, n.metadata, n.inherited, n.parent, n.place,
        n.search_text, n.inherited_search_text, d.document, d.grp, {FIELDS}, docs.id,
        n.length, d.text, block.text, following.text
    FROM nodes n JOIN derivations d ON d.key = n.derivation
    JOIN documents docs ON docs.key = d.document
    LEFT JOIN blocks block ON block.key = {_BLOCK_KEY} AND n.text IS NULL
    LEFT JOIN blocks following ON following.key = {_BLOCK_KEY} + 1 AND n.text IS NULL
        AND (n.begin + n.length - 1) / {BLOCK} > n.begin / {BLOCK}
"""
"""The SQL query for node rows. The alias ``n`` is the node, ``d`` its derivation and ``docs`` its
document."""


class Fields(NamedTuple):
    """The encoded metadata and search text of a document, which are stored with each derivation."""

    metadata: bytes | None = None
    search_text: bytes | None = None


NO_FIELDS = Fields()


class NodeSource(NamedTuple):
    """The document from which the nodes of a group were derived.

    Attributes:
        group: The name of the group.
        document_id: The id of the document.
        order: The position of the document among all documents.
        metadata: The metadata of the document.
        search_text: The search text of the document.
    """

    group: str
    document_id: str
    order: int
    metadata: Mapping[str, Any]
    search_text: SearchText | None


class NodeRows:
    """Converts database rows to nodes, and nodes to rows.

    Args:
        values: The converter for metadata and content.
    """

    def __init__(self, values: ValueColumns) -> None:
        self._values = values
        self._metadata = lru_cache(_CACHED)(self._read_metadata)
        self._search_text = lru_cache(_CACHED)(self._read_search_text)
        self._inherited = lru_cache(_CACHED)(self._merged_metadata)

    # Reading

    def source(self, row: NodeRow, group: str) -> NodeSource:
        """Return the document to which a row belongs.

        Raises:
            TypeError: If a column has the wrong type.
            ValueError: If the position of the document is invalid.
        """
        _check_number(row.document, _MAX_DOCUMENTS)
        search_text = None
        if row.document_search_text is not None:
            search_text = self._search_text(row.document_search_text)
        return NodeSource(
            group=group,
            document_id=from_id(row.document_id),
            order=row.document * DOCUMENT_STRIDE,
            metadata=self._metadata(row.document_metadata),
            search_text=search_text,
        )

    def node(self, row: NodeRow, text: str, source: NodeSource, graph: Any) -> Node:
        """Convert a row to a node.

        Args:
            row: The row to convert.
            text: The text of the node.
            source: The document to which the row belongs.
            graph: The graph to which the node belongs.

        Raises:
            TypeError: If a column has the wrong type.
            ValueError: If a number is invalid.
        """
        content = None if row.content is None else self._values.read(row.content)
        if content is None:
            content = text
        _check_number(row.place, DOCUMENT_STRIDE)
        end = None
        if row.start is not None:
            check_numbers(row.start, abs(row.offset or 0))
            end = row.start + len(text)
        if source.group == ROOT:
            return node_of_fields(
                text=text,
                own_metadata=source.metadata,
                content=content,
                start=row.start,
                end=end,
                id=source.document_id,
                group=source.group,
                document_id=source.document_id,
                parent_id=None,
                offset=row.offset,
                order=source.order + row.place,
                inherited=NO_METADATA,
                search_text=source.search_text,
                inherited_search_text=None,
                graph=graph,
            )
        own = NO_METADATA if row.metadata is None else self._metadata(row.metadata)
        inherited = source.metadata
        if row.beyond is not None:
            inherited = self._inherited(row.document_metadata, row.beyond)
        search_text = None
        if row.search_text is not None:
            search_text = self._search_text(row.search_text)
        above = source.search_text
        if row.inherited_search_text is not None:
            above = self._search_text(row.inherited_search_text)
        parent_id = source.document_id or None
        if row.parent is not None:
            parent_id = from_id(row.parent)
        return node_of_fields(
            text=text,
            own_metadata=own,
            content=content,
            start=row.start,
            end=end,
            id=from_id(row.id),
            group=source.group,
            document_id=source.document_id,
            parent_id=parent_id,
            offset=row.offset,
            order=source.order + row.place,
            inherited=inherited,
            search_text=search_text,
            inherited_search_text=above,
            graph=graph,
        )

    def _read_search_text(self, column: bytes | None) -> SearchText | None:
        if column is None or column == _NO_SEARCH_TEXT:
            return None
        return SearchText.from_row(self._values.read(column))

    def _read_metadata(self, column: bytes | None) -> Mapping[str, Any]:
        if column is None or column == NO_FIELD:
            return NO_METADATA
        return self._values.read_metadata(column)

    def _merged_metadata(self, shared: bytes | None, beyond: bytes) -> Mapping[str, Any]:
        return {**self._metadata(shared), **self._metadata(beyond)}

    # Writing

    def root_node(self, document: Document, key: int, fields: Fields, graph: Any) -> Node:
        """Return the node of a new document, as it will be read from the store.

        Args:
            document: The document.
            key: The database key of the document.
            fields: The encoded metadata and search text of the document.
            graph: The graph to which the node belongs.
        """
        text = str.__str__(document.text)  # a plain string, even if the text has another class
        return node_of_fields(
            text=text,
            own_metadata=self._metadata(fields.metadata),
            content=text,
            start=0,
            end=len(text),
            id=document.id,
            group=ROOT,
            document_id=document.id,
            parent_id=None,
            offset=None,
            order=key * DOCUMENT_STRIDE,
            inherited=NO_METADATA,
            search_text=self._search_text(fields.search_text),
            inherited_search_text=None,
            graph=graph,
        )

    def fields(self, document: Document) -> Fields:
        """Encode the metadata and the search text of a document, which all its derivations share.

        Raises:
            TypeError: If the metadata contains a value that cannot be stored.
        """
        return Fields(
            self._values.write_metadata(document.metadata, f"document {document.id!r}"),
            self._write_search_text(document.search_text),
        )

    def new_rows(self) -> NewRows:
        """Return a converter for the new nodes of one transaction."""
        return NewRows(self)

    def check(self, nodes: Iterable[Node]) -> None:
        """Check that the nodes can be stored.

        Raises:
            TypeError: If a node contains a value that cannot be stored.
        """
        if self._values.objects is None:
            for node in nodes:
                self._write_metadata(node)
                self._write_content(node)

    def _write_metadata(self, node: Node) -> bytes | None:
        if not node.own_metadata:
            return None
        owner = f"node {node.text!r:.40} of document {node.document_id!r}"
        return self._values.write_metadata(node.own_metadata, owner)

    def _write_search_text(self, search_text: SearchText | None) -> bytes | None:
        return None if search_text is None else self._values.write(search_text.to_row())

    def _write_content(self, node: Node) -> bytes | None:
        """Encode the content of a node. Return None if the content equals the text."""
        content = node.content
        if content is node.text or (type(content) is str and content == node.text):
            return None
        return self._values.write(content)


class NewRows:
    """Converts new nodes to rows. Metadata that several nodes share is encoded only once.

    An object must be used only while the metadata of the nodes does not change.

    Args:
        rows: The converter of the store.
    """

    def __init__(self, rows: NodeRows) -> None:
        self._rows = rows
        # The mappings are kept, so that their object ids stay valid.
        self._own: dict[int, tuple[Mapping[str, Any], bytes | None]] = {}
        self._beyond: dict[tuple[int, int], tuple[object, bytes | None]] = {}

    def of(
        self,
        key: int,
        derivation: int,
        revision: int,
        nodes: Iterable[Node],
        fields: Fields,
        has_span: Callable[[Node], bool],
    ) -> Iterator[Row]:
        """Convert the nodes that were derived from one document to rows.

        Args:
            key: The database key of the first node.
            derivation: The database key of the derivation.
            revision: The revision of the group.
            nodes: The nodes to convert.
            fields: The encoded metadata and search text of the document.
            has_span: A function that returns whether the text of a node is stored as a reference to
                the document's text.

        Raises:
            TypeError: If a node contains a value that cannot be stored.
        """
        shared = self._rows._metadata(fields.metadata)
        declared = self._rows._search_text(fields.search_text)
        siblings = shared
        beyond = None
        for node in nodes:
            parent = None
            if node.parent_id is not None and node.parent_id != node.document_id:
                parent = to_id(node.parent_id)
            is_span = has_span(node)
            metadata = search_text = above = None
            # The columns of a document itself are stored as the fields of its derivation.
            if node.group != ROOT:
                if node.inherited is not siblings:
                    siblings = node.inherited
                    beyond = self._write_beyond(siblings, shared)
                metadata = self._write_own(node)
                search_text = self._rows._write_search_text(node.search_text)
                if node.inherited_search_text != declared:
                    above = self._rows._write_search_text(node.inherited_search_text)
                    above = above or _NO_SEARCH_TEXT
            yield (
                key,
                to_id(node.id),
                derivation,
                node.order % DOCUMENT_STRIDE,
                revision,
                parent,
                node.start,
                node.offset,
                metadata,
                beyond,
                search_text,
                above,
                self._rows._write_content(node),
                None if is_span else to_words(node.text),
                len(node.text) if is_span else None,
            )
            key += 1

    def _write_own(self, node: Node) -> bytes | None:
        """Encode the metadata that the transform of a node has set."""
        own = node.own_metadata
        if not own:
            return None
        known = self._own.get(id(own))
        if known is None:
            known = own, self._rows._write_metadata(node)
            self._own[id(own)] = known
        return known[1]

    def _write_beyond(
        self, inherited: Mapping[str, Any], shared: Mapping[str, Any]
    ) -> bytes | None:
        """Encode the inherited metadata that does not come from the document."""
        key = (id(inherited), id(shared))
        known = self._beyond.get(key)
        if known is None:
            beyond = {
                name: value
                for name, value in inherited.items()
                if name not in shared or shared[name] != value
            }
            column = self._rows._values.write_metadata(beyond, "a parent")
            known = (inherited, shared), column
            self._beyond[key] = known
        return known[1]


def _check_number(number: object, end: int) -> None:
    """Check that a number in a row is an integer that is at least 0 and less than ``end``.

    Raises:
        ValueError: If the number is not an integer or is out of range.
    """
    if type(number) is not int or not 0 <= number < end:
        raise ValueError(f"a position must be a number below {end}, got {number!r:.20}")
