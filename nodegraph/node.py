"""The nodes of a graph and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .foreign_names import missing_attribute
from .search_text import SearchText, as_stored_search_text, stored_search_text
from .source_names import file_name_of, headings_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .graph import NodeGraph
    from .locations import Location

ROOT = "ROOT"
"""The name of the group that contains the documents. All other groups are derived from it."""

NO_METADATA: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A piece of content, such as a document, a section or a sentence, in one group of a graph.

    A transform can return nodes such as ``Node("text", {...})``, and can set ``text``,
    ``own_metadata``, ``content``, ``start``, ``end`` and ``search_text``. The graph sets the other
    fields. Nodes are equal if their ids are equal. A node without an id is equal only to itself.

    Attributes:
        text: The text of the node. All offsets are character positions.
        content: The value that is returned to users. Defaults to the text.
        own_metadata: The metadata that the transform set. ``metadata`` includes the metadata of the
            ancestors.
        start: The start offset in the document, so that ``document.text[start:end] == text``. It is
            None if the text is not part of the document, for example if it is a summary. In the
            nodes that a transform returns, offsets refer to the text of the parent.
        end: The end offset (exclusive).
        id: The id of the node. It is a hash of the document's id, the group, the content and the
            number of the occurrence, so it stays the same after edits elsewhere in the document,
            after rebuilds and on other machines. In ``ROOT``, it is the id of the document.
        group: The name of the group.
        document_id: The id of the document. It is empty for a node that was derived from a whole
            group.
        parent_id: The id of the parent node. It is None for documents and for nodes that were
            derived from a whole group.
        offset: The start offset in the text of the parent. It is None if the text is not part of
            the parent's text.
        order: A sort key for document order.
        inherited: The metadata that is inherited from the parent.
        search_text: Determines which metadata is searched together with the text of the node and
            its descendants. Settings of the group and the graph take precedence. Defaults to
            ``inherited_search_text``.
        inherited_search_text: The search text of the parent.
        graph: The graph that contains the node, or None if it does not belong to a graph.

    Example:
        >>> Node("A short note.", {"page": 3}).text
        'A short note.'
    """

    text: str
    own_metadata: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)
    content: Any = None
    start: int | None = None
    end: int | None = None
    id: str = ""
    group: str = ""
    document_id: str = ""
    parent_id: str | None = None
    offset: int | None = None
    order: int = 0
    inherited: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA, repr=False)
    search_text: SearchText | None = field(default=None, repr=False)
    inherited_search_text: SearchText | None = field(default=None, repr=False)
    graph: NodeGraph | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.search_text is not None and not isinstance(self.search_text, SearchText):
            object.__setattr__(self, "search_text", as_stored_search_text(self.search_text))
        if self.content is None:
            object.__setattr__(self, "content", self.text)

    if not TYPE_CHECKING:  # Type checkers report missing attributes themselves.

        def __getattr__(self, name):
            raise missing_attribute(self, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return self is other or (bool(self.id) and self.id == other.id)

    def __hash__(self) -> int:
        return hash(self.id) if self.id else object.__hash__(self)

    def __repr__(self) -> str:
        text = self.text
        if len(text) > 60:
            text = f"{text[:57]}..."
        return f"Node({text!r}, group={self.group!r}, id={self.id!r})"

    def __reduce__(self) -> tuple[Callable[..., Node], tuple[Any, ...]]:
        # A pickled node has no graph. The graph that receives nodes attaches them to itself.
        values = {name: getattr(self, name) for name in self.__slots__ if name != "graph"}
        values["own_metadata"] = dict(self.own_metadata)
        values["inherited"] = dict(self.inherited)
        return Node, tuple(values.values())

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the document, the ancestors and the node.

        If a field is set several times, the value nearest to the node is used.
        """
        if not self.own_metadata:  # This is the case for most nodes.
            return dict(self.inherited)
        return {**self.inherited, **self.own_metadata}

    @property
    def searched_text(self) -> str:
        """The text that is indexed and embedded: the node's text and the selected metadata.

        Raises:
            TypeError: If a user-defined search text function does not return a string.
            ValueError: If a user-defined search text function fails, or if the search text includes
                related nodes and the node does not belong to a graph.
        """
        if self.graph is not None:
            return self.graph.reader.searched_texts([self])[0]
        return stored_search_text(self)(self)

    @property
    def searched_sources(self) -> tuple[str, ...]:
        """The names of the metadata fields and groups that are added to the text for searching."""
        if self.graph is not None:
            return self.graph.reader.searched_sources(self)
        return stored_search_text(self).sources(self)

    @property
    def parent(self) -> Node | None:
        """The node from which this node was derived.

        It is None for documents, and for nodes that were derived from a whole group. Such nodes
        have links to the nodes from which they were made.
        """
        return None if self.parent_id is None else self._graph().node(self.parent_id)

    @property
    def root(self) -> Node:
        """The node of the document from which this node was derived.

        Raises:
            ValueError: If the node does not belong to a graph, or was derived from a whole group.
        """
        if not self.document_id and self.graph is not None:
            raise ValueError(
                f"{self!r} was made from several documents; its links lead to their nodes"
            )
        return self._graph().node(self.document_id)

    @property
    def place(self) -> str:
        """A description of the position in the file, such as ``report.pdf, page 12, 3.2 Results``.

        It contains the nearest heading above the node, and the page, slide, sheet or cell. For text
        files, it contains the line instead of the page. For source code, it contains the function,
        class or method instead of the heading.
        """
        if self.graph is not None:
            return self.graph.reader.place(self)
        name = file_name_of(self.metadata)
        headings = headings_of(self.metadata)[-1:]
        return ", ".join([part for part in (name, *headings) if part])

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first and the last page that the node covers in its file. Pages are numbered from 1.

        Slides, sheets, cells and chapters count as pages. The value is None if the file has no
        pages, or if the node is a document, has no offsets or does not belong to a graph.
        """
        return None if self.graph is None else self.graph.reader.pages(self)

    @property
    def locations(self) -> list[Location]:
        """The exact locations in the file, as pages with rectangles.

        For a PDF, there is one location for each line. For other files, the locations contain only
        the pages. The list is empty if the file has no pages, or if the node has no offsets or does
        not belong to a graph.
        """
        return [] if self.graph is None else self.graph.reader.locations(self)

    @property
    def children(self) -> dict[str, list[Node]]:
        """The children of the node, keyed by group and sorted in document order.

        Only groups that have been built before are included. Outdated groups are rebuilt. To build
        a missing group, use ``graph.find("sentence")(node)``.

        Raises:
            LookupError: If the node was removed or changed.
            ValueError: If the node does not belong to a graph.
        """
        return self._graph().reader.children(self)

    @property
    def links(self) -> list[Link]:
        """The outgoing links of the node, in the order in which they were added.

        Use ``graph.linked`` to get the linked nodes. A node that was removed has no links.
        """
        return self._graph().reader.links_of([self.id])[0]

    def embedding(self, key: str | None = None) -> npt.NDArray[np.float32]:
        """Return the embedding of the node as a float32 array of shape (dimension,).

        The vector of ``searched_text`` is returned, and computed first if it is missing.

        Args:
            key: The key of the embedding model. It can be omitted if the graph has exactly one
                model.

        Raises:
            EmbeddingError: If the model fails.
            LookupError: If the key is unknown, or if it is None and the graph does not have exactly
                one model.
            ValueError: If the node does not belong to a graph.
        """
        graph = self._graph()
        texts = graph.reader.searched_texts([self])
        vector: npt.NDArray[np.float32] = graph.embeddings.vectors(
            texts, graph.embeddings.key(key)
        )[0]
        return vector

    def _graph(self) -> NodeGraph:
        if self.graph is None:
            raise ValueError(f"{self!r} has no graph, so it has no relatives")
        return self.graph


class _UnfinishedNode:
    """A node whose fields can still be assigned. Its slots are those of ``Node``."""

    __slots__ = Node.__slots__


def node_of_fields(
    text: str,
    own_metadata: Mapping[str, Any],
    content: Any,
    start: int | None,
    end: int | None,
    id: str,
    group: str,
    document_id: str,
    parent_id: str | None,
    offset: int | None,
    order: int,
    inherited: Mapping[str, Any],
    search_text: SearchText | None,
    inherited_search_text: SearchText | None,
    graph: NodeGraph | None,
) -> Node:
    """Create a node from all of its fields, which are not checked.

    This is several times as fast as the constructor of the frozen class ``Node``. Graphs create
    most of their nodes with this function.
    """
    node: Any = _UnfinishedNode()
    node.text = text
    node.own_metadata = own_metadata
    node.content = content
    node.start = start
    node.end = end
    node.id = id
    node.group = group
    node.document_id = document_id
    node.parent_id = parent_id
    node.offset = offset
    node.order = order
    node.inherited = inherited
    node.search_text = search_text
    node.inherited_search_text = inherited_search_text
    node.graph = graph
    node.__class__ = Node
    finished: Node = node
    return finished


MEMBER = "member"
"""The type of the links from a node that was made from several nodes to these nodes."""


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link between two nodes, such as a reference, a mention or a membership.

    Attributes:
        source: The id of the source node.
        target: The id of the target node.
        type: The type of the link, such as ``"cites"``. There is at most one link of each type
            between two nodes.
        weight: The strength of the link. Searches treat weights above 1 as 1, and ignore links
            whose weight is 0 or less.
        metadata: Additional fields that are stored with the link.
        derived: Whether the link was created by a transform. Such a link is deleted together with
            its source node. It exists whenever both nodes exist, even if the target was removed and
            added again.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("See Brewing.", id="tea"), Document("Brewing", id="brewing")])
        >>> graph.link("tea", "brewing", "cites")
        >>> graph.node("tea").links
        [Link(source='tea', target='brewing', type='cites', weight=1.0, metadata={})]
    """

    source: str
    target: str
    type: str = "related"
    weight: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)
    derived: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LinkedText:
    """A result of a transform that is to be linked to existing nodes.

    A transform with ``scope="group"`` can return such results to link them to their source nodes.

    Args:
        item: A text, a ``Node``, or any other value that a transform can return for one node.
        to: The nodes to which the item is linked.
        type: The type of the links.

    Example:
        >>> LinkedText("About tea", [Node("Green tea.", id="a"), Node("Black tea.", id="b")]).type
        'member'
    """

    item: Any
    to: Sequence[Node]
    type: str = MEMBER
