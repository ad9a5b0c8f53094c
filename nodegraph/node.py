"""A piece of content in one group, knowing its kin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from .search_text import DEFAULT, SearchText, as_stored_search_text, file_name_of, headings_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .locations import Location

ROOT = "ROOT"
"""The group of the documents themselves: the root of every other group."""

_NAMED_ELSEWHERE = {
    "get_text": "text",
    "get_content": "content",
    "page_content": "text",
    "root_node": "root",
    "node_id": "id",
}
"""What LazyLLM, LangChain and LlamaIndex call attributes of a node, and their names here."""

NO_METADATA: Mapping[str, Any] = MappingProxyType({})


class Named(Protocol):
    """Something with a name: a group, to who only wants to know where it stands."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def by_span(self) -> bool:
        """Whether its nodes are kin only of nodes that stand where they do."""


class KinReader(Protocol):
    """What those read who walk from node to node; ``GraphReader`` has more."""

    def reading(self, *groups: str) -> AbstractContextManager[None]:
        """Hold one state in which the groups are built."""

    def lineage(self, name: str) -> Sequence[Named]:
        """Return the groups from the first below ``ROOT`` down to this one."""

    def children_in(self, group: str, node: Node) -> list[Node]:
        """Return a node's children in one group."""

    def searched_texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return what is searched and embedded of each node."""

    def searched_sources(self, node: Node) -> tuple[str, ...]:
        """Return what is searched beside a node's text."""

    def locations(self, node: Node) -> list[Location]:
        """Return where a node stands in its file."""

    def existing_documents(self, ids: Collection[str]) -> Collection[str]:
        """Return the ids of the documents that exist."""


class Kin(Protocol):
    """What a node's graph offers to the node, and to those who walk from node to node."""

    @property
    def reader(self) -> KinReader:
        """What is read of a whole graph."""

    def node(self, id: str) -> Node:
        """Return one node by its id."""

    def children(self, node: Node) -> dict[str, list[Node]]:
        """Return a node's children by group."""

    def links(self, node: Node) -> list[Link]:
        """Return the links from a node."""

    def find(self, group: str) -> Callable[[Any], list[Node]]:
        """Return a function that takes nodes to their kin in a group."""

    def linked(self, node: Node, type: str | None = None, *, incoming: bool = False) -> list[Node]:
        """Return the nodes that a node is linked to."""

    def place(self, node: Node) -> str:
        """Say where a node stands in its file."""

    def pages(self, node: Node) -> tuple[int, int] | None:
        """Return the first and the last page that a node stands on."""

    def embedding(self, node: Node, key: str | None = None) -> npt.NDArray[np.float32]:
        """Return a node's vector, (dimension,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Hold a piece of content and its place in the graph.

    A transform may return nodes of its own, ``Node("text", {...})``; everything below
    ``end`` is filled in by the graph. Two nodes are equal when their ids are.

    Attributes:
        text: The text, which offsets count in; see ``searched_text`` for what is searched.
        content: What is returned; the text, unless a transform says otherwise.
        own_metadata: What the transform attached to this node; ``metadata`` has the parents' too.
        start: Where the text begins in its document, in characters: ``document.text[start:end]``
            is the text. None when the text was not cut out of the document (a summary). In a
            node that a transform returns it counts from the beginning of the parent's text.
        end: Where the text ends, exclusive.
        id: Made from the document's id, the group, the content and its occurrence: the same
            after edits elsewhere in the document, a re-run, on another machine.
        group: Name of the group.
        document_id: Id of the document, which is also the id of its node in ``ROOT``.
        parent_id: Id of the parent, None in ``ROOT``.
        offset: Where the text begins in its parent's text, None like ``start``.
        order: Place in document order, to sort by.
        inherited: The metadata of the parent.
        search_text: What of the metadata is searched with the text, here and in the nodes below,
            as long as graph and group declare nothing; see ``SearchText``. None for what the
            parent has.
        inherited_search_text: That of the parent.

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
    graph: Kin | None = field(default=None, repr=False)

    if not TYPE_CHECKING:  # which would then take any attribute for known

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property, which raised an error of its own
                return object.__getattribute__(self, name)
            hint = _NAMED_ELSEWHERE.get(name)
            what = f"; it is called {hint!r} here" if hint else ""
            raise AttributeError(f"a node has no {name!r}{what}", name=name, obj=self)

    def __post_init__(self) -> None:
        if self.search_text is not None and not isinstance(self.search_text, SearchText):
            object.__setattr__(self, "search_text", as_stored_search_text(self.search_text))
        if self.content is None:
            object.__setattr__(self, "content", self.text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return self is other or (bool(self.id) and self.id == other.id)

    def __hash__(self) -> int:
        return hash(self.id) if self.id else object.__hash__(self)

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return f"Node({text!r}, group={self.group!r}, id={self.id!r})"

    def __reduce__(self) -> tuple[Callable[..., Node], tuple[Any, ...]]:
        # Without the graph: a node travels alone, and a graph attaches its own nodes again.
        return _restore, (
            *(self.text, dict(self.own_metadata), self.content, self.start, self.end, self.id),
            *(self.group, self.document_id, self.parent_id, self.offset, self.order),
            dict(self.inherited),
            *(self.search_text, self.inherited_search_text),
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """The document's metadata, the ancestors' and the node's own, the nearest winning."""
        own, inherited = self.own_metadata, self.inherited
        if not own:  # like most nodes
            return dict(inherited) if inherited else {}
        return {**inherited, **own}

    @property
    def searched_text(self) -> str:
        """What is searched and embedded: the text, and what ``search_text`` adds to it.

        Raises:
            ValueError: If a function of the user's fails.
        """
        if self.graph is not None:
            return self.graph.reader.searched_texts([self])[0]
        return (self.search_text or self.inherited_search_text or DEFAULT)(self)

    @property
    def searched_sources(self) -> tuple[str, ...]:
        """Names of the metadata fields and groups of which ``searched_text`` has more than text."""
        if self.graph is not None:
            return self.graph.reader.searched_sources(self)
        return (self.search_text or self.inherited_search_text or DEFAULT).sources(self)

    @property
    def parent(self) -> Node | None:
        """The node this one was made from; None for a node of ``ROOT``."""
        return None if self.parent_id is None else self._graph().node(self.parent_id)

    @property
    def root(self) -> Node:
        """The document this node comes from, as a node of ``ROOT``.

        Raises:
            ValueError: If the node was made from a whole group, so from several documents.
        """
        if not self.document_id and self.graph is not None:
            raise ValueError(
                f"{self!r} was made from several documents; its links lead to their nodes"
            )
        return self._graph().node(self.document_id)

    @property
    def place(self) -> str:
        """Where it stands in its file, for people: ``report.pdf, page 12, 3.2 Results``.

        The page, slide, sheet or cell where the file has such; the nearest heading above it; of a
        program the function, class or method.
        """
        if self.graph is not None:
            return self.graph.place(self)
        parts = [file_name_of(self.metadata) or "", *headings_of(self.metadata)[-1:]]
        return ", ".join(filter(None, parts))

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first and the last page that it stands on in its file, from 1.

        Slides, sheets, cells and chapters count as pages. None for files without pages, for whole
        documents, and for what was not cut out of one.
        """
        if "page_unit" not in self.inherited and "page_unit" not in self.own_metadata:
            return None
        if self.graph is None:
            return None
        return self.graph.pages(self)

    @property
    def locations(self) -> list[Location]:
        """Where it stands in its file, exactly: pages with rectangles, lines, or cells.

        Of a PDF the page and the rectangle of each line, of a sheet its cells, of a text file its
        lines; of other files the pages, where they have such. Empty for what was not cut out of a
        document. Files that were indexed by an older nodekin have no rectangles before they are
        read again.
        """
        return [] if self.graph is None else self.graph.reader.locations(self)

    @property
    def children(self) -> dict[str, list[Node]]:
        """The nodes made from this one, in document order, by group.

        Only of groups that something has needed already: ask for another one by name,
        ``graph.find("sentence")(node)``, and it is built.
        """
        return self._graph().children(self)

    @property
    def links(self) -> list[Link]:
        """The links from this node, in the order they were put; see ``graph.linked``."""
        return self._graph().links(self)

    def embedding(self, key: str | None = None) -> npt.NDArray[np.float32]:
        """Return the vector of the searched text, (dimension,) float32, embedded if need be.

        Args:
            key: Which embedding of the graph; None where it has but one.

        Raises:
            LookupError: If the graph has no such embedding.
            EmbeddingError: If the model fails.
        """
        return self._graph().embedding(self, key)

    def _graph(self) -> Kin:
        if self.graph is None:
            raise ValueError(f"{self!r} belongs to no graph yet, so it has no kin")
        return self.graph


def _restore(text: str, metadata: dict[str, Any], *fields: Any) -> Node:
    return Node(text, metadata or NO_METADATA, *fields)


MEMBER = "member"
"""The type of the links from a node made of several to those it was made of."""


@dataclass(frozen=True, slots=True)
class Link:
    """Join two nodes, from one to the other: a reference, a mention, a membership.

    Attributes:
        source: Id of the node it starts from.
        target: Id of the node it leads to.
        type: What it means; between two nodes there is one link of a type.
        weight: How much it counts for those who follow it.
        metadata: Anything else.
        derived: Whether a transform put it. Such a link belongs to what the transform made: it
            is there whenever both nodes are, also when one of them has been away.
    """

    source: str
    target: str
    type: str = "related"
    weight: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA, compare=False)
    derived: bool = field(default=False, compare=False, repr=False)

    def __reduce__(self) -> tuple[Callable[..., Link], tuple[Any, ...]]:
        metadata = dict(self.metadata)
        return Link, (self.source, self.target, self.type, self.weight, metadata, self.derived)


@dataclass(frozen=True, slots=True)
class LinkedText:
    """An item that a transform returns, with links to existing nodes.

    A transform that sees a whole group says by it which nodes each item comes from.

    Args:
        item: A text, a ``Node``, or whatever else a transform may return for one node.
        to: The nodes to link it to.
        type: The type of the links.

    Example:
        >>> LinkedText("About tea", [Node("Green tea.", id="a"), Node("Black tea.", id="b")]).type
        'member'
    """

    item: Any
    to: Sequence[Node]
    type: str = MEMBER
