"""Nodes of a graph, and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .foreign_names import missing_attribute
from .search_text import DEFAULT, SearchText, as_stored_search_text
from .source_names import file_name_of, headings_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .graph import NodeGraph
    from .locations import Location

ROOT = "ROOT"
"""The group of the documents. All other groups are derived from it."""

NO_METADATA: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A piece of content in one group of a graph.

    A transform can return nodes such as ``Node("text", {...})``. It can set ``text``,
    ``own_metadata``, ``content``, ``start``, ``end`` and ``search_text``. The graph sets the
    remaining fields. Nodes with equal ids are equal. A node without an id equals only itself.

    Attributes:
        text: The text. Offsets are character positions. ``searched_text`` is the text to search.
        content: The value returned to users. Defaults to the text.
        own_metadata: The metadata that the transform set. ``metadata`` includes the metadata of
            the ancestors.
        start: Start offset in characters: ``document.text[start:end] == text``. If None, the text
            is not part of the document, for example a summary. A transform returns offsets in the
            parent's text.
        end: End offset, exclusive.
        id: A hash of the document's id, the group, the content and its occurrence. The id does not
            change with edits elsewhere in the document, rebuilds or machines. In ``ROOT``, it is
            the id of the document.
        group: Name of the group.
        document_id: Id of the document and of its node in ``ROOT``. It is empty for a node derived
            from a whole group.
        parent_id: Id of the parent. If None, the node is a document or was derived from a whole
            group.
        offset: Start offset in the parent's text. If None, the text is not part of the parent's
            text.
        order: Position in document order, as a sort key.
        inherited: The metadata of the parent.
        search_text: The metadata to search with the text, for the node and its descendants.
            Settings of the group and the graph have priority. Defaults to
            ``inherited_search_text``.
        inherited_search_text: The search text of the parent.
        graph: The graph of the node. If None, the node does not belong to a graph.

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

    if not TYPE_CHECKING:  # a type checker reports missing attributes itself

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
        # A pickled node has no graph. The receiving graph attaches its nodes to itself.
        values = {name: getattr(self, name) for name in self.__slots__ if name != "graph"}
        values["own_metadata"] = dict(self.own_metadata)
        values["inherited"] = dict(self.inherited)
        return Node, tuple(values.values())

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the document, the ancestors and the node. The nearest value wins."""
        if not self.own_metadata:  # most nodes
            return dict(self.inherited)
        return {**self.inherited, **self.own_metadata}

    @property
    def searched_text(self) -> str:
        """The text to search and embed: the text with the additions that ``search_text`` selects.

        Raises:
            TypeError: If a user's search text function does not return a string.
            ValueError: If a user's search text function fails, or if the search text contains
                relatives and the node has no graph.
        """
        if self.graph is not None:
            return self.graph.reader.searched_texts([self])[0]
        return (self.search_text or self.inherited_search_text or DEFAULT)(self)

    @property
    def searched_sources(self) -> tuple[str, ...]:
        """Names of the metadata fields and groups that ``searched_text`` adds to the text."""
        if self.graph is not None:
            return self.graph.reader.searched_sources(self)
        return (self.search_text or self.inherited_search_text or DEFAULT).sources(self)

    @property
    def parent(self) -> Node | None:
        """The node that this node was derived from.

        It is None for a document, and for a node derived from a whole group, which has links to its
        members.
        """
        return None if self.parent_id is None else self._graph().node(self.parent_id)

    @property
    def root(self) -> Node:
        """The ``ROOT`` node of the document.

        Raises:
            ValueError: If the node has no graph, or was derived from a whole group.
        """
        if not self.document_id and self.graph is not None:
            raise ValueError(
                f"{self!r} was made from several documents; its links lead to their nodes"
            )
        return self._graph().node(self.document_id)

    @property
    def place(self) -> str:
        """The position in the file as text: ``report.pdf, page 12, 3.2 Results``.

        It contains the page, slide, sheet or cell if the file has pages, or the line of a text
        file, and the nearest heading above the node. For source code, it contains the function,
        class or method instead of a heading.
        """
        if self.graph is not None:
            return self.graph.reader.place(self)
        name = file_name_of(self.metadata)
        headings = headings_of(self.metadata)[-1:]
        return ", ".join([part for part in (name, *headings) if part])

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first and the last page of the node in its file, numbered from 1.

        Slides, sheets, cells and chapters count as pages. The value is None if the file has no
        pages, or if the node is a document, has no offsets or has no graph.
        """
        return None if self.graph is None else self.graph.reader.pages(self)

    @property
    def locations(self) -> list[Location]:
        """The exact locations in the file: pages with rectangles.

        For a PDF, they are the page and the rectangle of each line. For other files, they are the
        pages. The list is empty if the file has no pages, or if the node has no offsets or no
        graph.
        """
        return [] if self.graph is None else self.graph.reader.locations(self)

    @property
    def children(self) -> dict[str, list[Node]]:
        """The children in document order, keyed by group.

        Only groups that have been built before are included. Stale groups are rebuilt. To build a
        missing group, use ``graph.find("sentence")(node)``.

        Raises:
            LookupError: If the node was removed or changed.
            ValueError: If the node has no graph.
        """
        return self._graph().reader.children(self)

    @property
    def links(self) -> list[Link]:
        """The outgoing links, in insertion order. ``graph.linked`` returns the linked nodes.

        A removed node has no links.
        """
        return self._graph().reader.links_of([self.id])[0]

    def embedding(self, key: str | None = None) -> npt.NDArray[np.float32]:
        """Return the vector of the searched text, of shape (dimension,) and type float32.

        A missing vector is computed.

        Args:
            key: The key of the model. Defaults to the only model of the graph.

        Raises:
            EmbeddingError: If the model fails.
            LookupError: If the key is unknown, or if it is None and the graph does not have exactly
                one model.
            ValueError: If the node has no graph.
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


MEMBER = "member"
"""The type of the links from a node derived from several nodes to these nodes."""


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link between two nodes, such as a reference, a mention or a membership.

    Attributes:
        source: Id of the source node.
        target: Id of the target node.
        type: The meaning of the link. A pair of nodes has at most one link of each type.
        weight: The strength of the link. Searches count a weight above 1 as 1, and ignore a link
            with a weight of 0 or less.
        metadata: Additional data.
        derived: Whether a transform created the link. A derived link is deleted with its source.
            It exists whenever both nodes exist, even after the target was removed and added again.

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
    """A result of a transform, with links to existing nodes.

    A transform with ``scope="group"`` returns such a result to link it to its source nodes.

    Args:
        item: A text, a ``Node``, or another value that a transform can return for one node.
        to: The nodes to link the item to.
        type: The type of the links.

    Example:
        >>> LinkedText("About tea", [Node("Green tea.", id="a"), Node("Black tea.", id="b")]).type
        'member'
    """

    item: Any
    to: Sequence[Node]
    type: str = MEMBER
