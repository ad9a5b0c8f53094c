"""Convert nodes to LangChain documents and back. Read and write documents by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Literal, TypeAlias

from langchain_core.documents import Document

from ...nodegraph.document import Document as SourceDocument
from ...nodegraph.document import declared_search_text
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...retrievers.foreign.outputs import ForeignNode
from ...retrievers.results import ScoredNode
from ...retrievers.validation import whole
from ..frameworks import (
    copied_metadata,
    different_text,
    evidence_dicts,
    inherited_fields,
    restore_inherited,
)

NODE_KEY = "nodekin"
"""The metadata field of nodekin's own, where it is asked for. All others are the user's."""

DOCUMENT_ID_KEY = "nodekin_document_id"
"""The metadata field in which a graph keeps what ``NodeGraphStore`` needs. Never a document's."""

Details: TypeAlias = Literal[False, True, "nested"]
"""What a result's document says of it besides: nothing, four flat fields, or everything."""

_POSITION = ("group", "document_id", "parent_id", "start", "end", "offset", "order")


def to_document(item: Node | ScoredNode, *, details: Details = False) -> Document:
    """Convert a node or a retrieval result to a LangChain document that shares nothing with it.

    The page content is the node's content (as a text, if it is none), the id the node's, the
    metadata the node's own and inherited fields. So a node's document is the same for every query,
    and that of a document of the graph is the one that was added.

    Args:
        item: The node or result.
        details: What the metadata has besides. True: of a result its ``score`` (a float, higher
            is better) and the text of its best match as ``evidence``, and where in the document
            that is (``start``, ``end``), as plain values that JSON and vector stores can hold.
            Of a node where it is. ``"nested"``: one field, ``metadata["nodekin"]``, with the
            score, all evidence, the position in the graph, and what ``from_document`` needs to
            restore the node.

    Raises:
        TypeError: If the item is neither.
        ValueError: If one of the four flat fields would replace one of the node's.

    Example:
        >>> node = Node("Tea is a drink.", {"page": 3}, id="n1", group="line")
        >>> to_document(node)
        Document(id='n1', metadata={'page': 3}, page_content='Tea is a drink.')
        >>> to_document(ScoredNode(node, 1.5), details=True).metadata
        {'page': 3, 'score': 1.5}
        >>> to_document(node, details="nested").metadata["nodekin"]["group"]
        'line'
    """
    node = item.node if isinstance(item, ScoredNode) else item
    if not isinstance(node, Node):
        raise TypeError(f"a document is made of a Node or a ScoredNode, not {item!r:.80}")
    metadata = copied_metadata(node, node.metadata)
    metadata.pop(DOCUMENT_ID_KEY, None)
    content = node.content if isinstance(node.content, str) else str(node.content)
    if details == "nested":
        metadata = ResultMetadata(metadata, {NODE_KEY: _nested(item, node, content, metadata)})
    elif details:
        fields = _match_fields(item)
        if replaced := next((field for field in fields if field in metadata), None):
            raise ValueError(
                f"details=True would replace the field {replaced!r} of node {node.id!r}; give "
                f'details="nested", which puts all of it into metadata[{NODE_KEY!r}]'
            )
        metadata = ResultMetadata(metadata, fields)
    document = Document(content, id=_document_id(node))
    document.metadata = metadata  # the constructor would make a plain dict of it
    return document


class ResultMetadata(dict[str, Any]):
    """The metadata of a document that was found, with fields that say so.

    A document that is put into a graph again, edited or not, is put there without them.

    Args:
        metadata: The document's own fields, perhaps with some that were added before.
        added: The fields to add. They replace those of the same name.
    """

    def __init__(self, metadata: Mapping[str, Any], added: Mapping[str, Any]) -> None:
        super().__init__({**metadata, **added})
        fields = own_fields(metadata)
        self._added = frozenset({*added, *(field for field in metadata if field not in fields)})
        self._replaced = {name: fields[name] for name in self._added if name in fields}

    @property
    def own_fields(self) -> dict[str, Any]:
        """The fields of the document itself, with what was changed in them since."""
        unchanged = {field: value for field, value in self.items() if field not in self._added}
        return {**unchanged, **self._replaced}


def own_fields(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata without what a search added to it."""
    return metadata.own_fields if isinstance(metadata, ResultMetadata) else metadata


def _document_id(node: Node) -> str | None:
    """Return a document's id. None where it had none when a retriever of LangChain returned it."""
    original = node.original if isinstance(node, ForeignNode) else None
    return original.id if isinstance(original, Document) else node.id or None


def _match_fields(item: Node | ScoredNode) -> dict[str, Any]:
    """Return the score and the best match of a result, as flat fields. Only what it has."""
    fields: dict[str, Any] = {}
    match: Node | None = None
    if isinstance(item, Node):
        match = item
    else:
        fields["score"] = float(item.score)
        if item.evidence:
            match = item.evidence[0].node
            fields["evidence"] = match.text
    if match is not None and match.start is not None and match.end is not None:
        fields |= {"start": match.start, "end": match.end}
    return fields


def _nested(
    item: Node | ScoredNode, node: Node, content: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all that a document itself does not say of a node or a result."""
    inherited, overridden = inherited_fields(node)
    restore = {"inherited": inherited, "overridden": overridden, **different_text(node, content)}
    if NODE_KEY in metadata:
        restore["replaced"] = metadata[NODE_KEY]
    position = {name: getattr(node, name) for name in _POSITION}
    if not isinstance(item, ScoredNode):
        return {**position, "evidence": [], "restore": restore}
    evidence = evidence_dicts(item)
    return {"score": float(item.score), **position, "evidence": evidence, "restore": restore}


def nested_details(document: Document) -> dict[str, Any] | None:
    """Return what ``to_document(..., details="nested")`` added to a document, None for others."""
    details = document.metadata.get(NODE_KEY)
    is_nested = isinstance(details, dict) and details.keys() >= {*_POSITION, "evidence", "restore"}
    return details if is_nested else None


def from_document(document: Document) -> Node | SourceDocument:
    """Convert a LangChain document back to its node, or to a source document.

    A document of ``to_document(..., details="nested")`` gives the node (without a graph:
    ``graph.node(node.id)`` is the one in the graph). Fields that were added to its metadata since
    become the node's own. Any other document gives a nodekin ``Document``, which can be added to
    a graph.

    Example:
        >>> node = Node("Tea", {"page": 3}, id="n1", group="line")
        >>> from_document(to_document(node, details="nested"))
        Node('Tea', group='line', id='n1')
        >>> from_document(Document("Tea is a drink.", id="tea"))
        Document(text='Tea is a drink.', metadata={}, id='tea')
    """
    if nested_details(document) is None:
        return SourceDocument(
            document.page_content,
            deepcopy(own_fields(document.metadata)),
            id=document.id or None,
            search_text=declared_search_text(document),
        )
    metadata = deepcopy(dict(document.metadata))
    details = metadata.pop(NODE_KEY)
    restore = details["restore"]
    if "replaced" in restore:
        metadata[NODE_KEY] = restore["replaced"]
    inherited = restore_inherited(metadata, restore["inherited"], restore["overridden"])
    return Node(
        restore.get("text", document.page_content),
        metadata,
        restore.get("content", document.page_content),
        id=document.id or "",
        inherited=inherited,
        **{name: details[name] for name in _POSITION},
    )


def text_documents(
    texts: Iterable[str], metadatas: Sequence[dict[str, Any]] | None = None
) -> list[Document]:
    """Make a document of each text, with its metadata where there is any.

    Raises:
        TypeError: If ``texts`` is one text, whose letters would be the texts.
        ValueError: If there are not as many metadatas as texts.
    """
    if isinstance(texts, str):
        raise TypeError(f"texts is a list of texts, not {texts!r:.80}; write [text]")
    texts = list(texts)
    fields = [{} for _ in texts] if metadatas is None else list(metadatas)
    check_same_length("texts", texts, "metadatas", fields)
    return [Document(t, metadata=m) for t, m in zip(texts, fields, strict=True)]


def put_documents(
    graph: NodeGraph, documents: Iterable[Document], ids: Sequence[str | None] | None = None
) -> list[str]:
    """Add documents, or update those whose id exists, all or none. Return their ids.

    Args:
        graph: The node graph.
        documents: Whose text, metadata (copied) and id are used.
        ids: One for each, instead of the documents' own. None for a document's own.

    Raises:
        TypeError: If they are no list, or one is no document of LangChain.
        ValueError: If there are not as many ids as documents, or two documents have one id.
    """
    if isinstance(documents, str | Document):
        raise TypeError(
            f"documents is a list of LangChain documents, not {documents!r:.80}; write [document]"
        )
    documents = list(documents)
    for document in documents:
        if not hasattr(document, "page_content"):
            raise TypeError(
                f"documents are LangChain documents, not {document!r:.80}; for texts there are "
                "from_texts and add_texts"
            )
    ids = [None] * len(documents) if ids is None else list(ids)
    check_same_length("documents", documents, "ids", ids)
    return graph.add(
        [
            SourceDocument(
                document.page_content,
                deepcopy(own_fields(document.metadata)),
                id=new_id or document.id or None,
                search_text=declared_search_text(document),
            )
            for document, new_id in zip(documents, ids, strict=True)
        ]
    )


def existing_nodes(graph: NodeGraph, ids: Iterable[str], group: str | None = None) -> list[Node]:
    """Return the nodes that exist, in the order of the ids, each once.

    Args:
        graph: The node graph.
        ids: Ids of nodes. Those that do not exist are skipped.
        group: The group they must be of, built where it is not. None for any.
    """
    ids = list(dict.fromkeys(ids))
    with graph.reader.reading(*(() if group is None else [group])):
        try:
            nodes = graph.reader.nodes_by_id(ids)
        except LookupError:  # some are missing: one by one
            nodes = []
            for id in ids:
                with suppress(LookupError):
                    nodes.append(graph.node(id))
    return [node for node in nodes if group is None or node.group == group]


def delete_documents(graph: NodeGraph, ids: Iterable[str] | None) -> list[str]:
    """Remove documents and all nodes below them. Return the ids of those that existed.

    Raises:
        ValueError: If there are no ids, or one is that of a node below a document. Nothing is
            removed.
    """
    if ids is None:  # LangChain's interfaces allow it, for all documents
        raise ValueError("delete() takes the ids of the documents to remove; give a list")
    ids = list(ids)
    while True:
        nodes = existing_nodes(graph, ids)
        for node in nodes:
            if node.group != ROOT:
                raise ValueError(
                    f"{node.id!r} is a node of the group {node.group!r}, which was made from the "
                    f"document {node.document_id!r}; remove or change that document"
                )
        existing = [node.id for node in nodes]
        try:
            graph.remove(existing)
        except LookupError:  # another thread removed one meanwhile
            continue
        return existing


def check_same_length(name: str, some: Sequence[Any], other: str, others: Sequence[Any]) -> None:
    """Check that two lists go together.

    Raises:
        ValueError: If one is longer.
    """
    if len(some) != len(others):
        raise ValueError(
            f"there are {len(some)} {name} and {len(others)} {other}; give as many of both"
        )


def check_kwargs(method: str, kwargs: Iterable[str], allowed: Collection[str] = ()) -> None:
    """Check that a call has no keyword that the method does not know.

    Raises:
        TypeError: If there is one.
    """
    for name in kwargs:
        if name not in allowed:
            there_is = f"; there is {', '.join(allowed)}" if allowed else ""
            raise TypeError(f"{method}() has no argument {name!r}{there_is}")


def check_count(name: str, value: int | None) -> None:
    """Check a number of documents, by the name that it has in LangChain.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is below 1.
    """
    if value is not None:
        whole(value, name, 1)
