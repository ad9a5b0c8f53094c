"""Convert nodes to LangChain documents and back, losing nothing; read and write by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Annotated, Any

from langchain_core.documents import Document
from pydantic import AfterValidator

from ...nodegraph import ROOT, Node, NodeGraph
from ...nodegraph import Document as SourceDocument
from ...retrievers import ScoredNode
from ..conversion import different_text, evidence_dicts, inherited_fields, restore_inherited

NODE_KEY = "nodekin"
"""The metadata field of nodekin's own; the others are the user's, and the score."""


def _check_score_key(key: str | None) -> str | None:
    if key in ("", NODE_KEY):
        raise ValueError(
            f"score_key can't be {key!r}; give another name, or None to leave the score out"
        )
    return key


ScoreKey = Annotated[str | None, AfterValidator(_check_score_key)]
"""The metadata field for the score; None leaves it out."""

_POSITION = ("group", "document_id", "parent_id", "start", "end", "offset", "order")


def to_document(
    item: Node | ScoredNode, *, score_key: str | None = "relevance_score", details: bool = True
) -> Document:
    """Convert a node or a retrieval result to a LangChain document that shares nothing with it.

    The page content is the node's content (as a text, if it is none), the id the node's, the
    metadata the node's own and inherited fields, flat. All that only nodekin has is in one field,
    ``metadata["nodekin"]``: ``group``, ``document_id``,
    ``parent_id``, ``start``, ``end``, ``offset``, ``order``, for a result its ``evidence`` (the
    matches that led to it), and under ``restore`` what the way back needs besides: a text that
    differs from the content, which fields were inherited, fields that were replaced.

    Args:
        item: The node or result.
        score_key: The field for a result's score (a float, higher is better); None for none.
        details: Whether to add the field ``"nodekin"``. Without it there is no way back.

    Raises:
        TypeError: If the item is neither.
        ValueError: If the score would replace a field, which would be lost without details.

    Example:
        >>> document = to_document(Node("Tea is a drink.", {"page": 3}, id="n1", group="line"))
        >>> document.page_content, document.id, document.metadata["page"]
        ('Tea is a drink.', 'n1', 3)
        >>> document.metadata["nodekin"]["group"]
        'line'
    """
    node = item.node if isinstance(item, ScoredNode) else item
    if not isinstance(node, Node):
        raise TypeError(f"a document is made of a Node or a ScoredNode, not {item!r:.80}")
    metadata = deepcopy(node.metadata)
    added: dict[str, Any] = {}
    if isinstance(item, ScoredNode) and score_key is not None:
        added[score_key] = float(item.score)
    replaced = {field: metadata[field] for field in added if field in metadata}
    if not details and replaced:
        raise ValueError(
            f"the score would replace the field {next(iter(replaced))!r} of node {node.id!r}; give "
            "another score_key (None leaves the score out), or details=True, which keeps both"
        )
    content = node.content if isinstance(node.content, str) else str(node.content)
    if details:
        if NODE_KEY in metadata:
            replaced[NODE_KEY] = metadata[NODE_KEY]
        inherited, overridden = inherited_fields(node)
        restore = {
            "inherited": inherited,
            "overridden": overridden,
            "added": dict(added),
            "replaced": replaced,
            **different_text(node, content),
        }
        evidence = evidence_dicts(item) if isinstance(item, ScoredNode) else []
        position = {name: getattr(node, name) for name in _POSITION}
        metadata[NODE_KEY] = {**position, "evidence": evidence, "restore": restore}
    return Document(content, metadata={**metadata, **added}, id=node.id or None)


def to_documents(
    items: Iterable[Node | ScoredNode],
    *,
    score_key: str | None = "relevance_score",
    details: bool = True,
) -> list[Document]:
    """Make documents that all have the same metadata fields, None where a node lacks one.

    A prompt that names a field fails at a document without it; ``from_document`` removes the
    fields that were filled in.
    """
    documents = [to_document(item, score_key=score_key, details=details) for item in items]
    fields = dict.fromkeys(field for document in documents for field in document.metadata)
    for document in documents:
        missing = dict.fromkeys(field for field in fields if field not in document.metadata)
        document.metadata.update(missing)
        if details:
            document.metadata[NODE_KEY]["restore"]["added"].update(missing)
    return documents


def from_document(document: Document) -> Node | SourceDocument:
    """Convert a LangChain document back to its node, or to a source document.

    A document of ``to_document`` gives the node (without a graph; ``graph.node(node.id)``
    is the one in the graph). Fields that were added to its metadata since become the node's own.
    Any other document gives a nodekin ``Document``, which can be added to a graph.

    Example:
        >>> from_document(to_document(Node("Tea", {"page": 3}, id="n1", group="line")))
        Node('Tea', group='line', id='n1')
        >>> from_document(Document("Tea is a drink.", id="tea"))
        Document(text='Tea is a drink.', metadata={}, id='tea')
    """
    metadata = deepcopy(document.metadata)
    details = metadata.get(NODE_KEY)
    if not (isinstance(details, Mapping) and details.keys() >= {*_POSITION, "restore"}):
        return SourceDocument(document.page_content, metadata, id=document.id or None)
    del metadata[NODE_KEY]
    restore = details["restore"]
    for field, value in restore["added"].items():
        if field in metadata and metadata[field] == value:
            del metadata[field]
    metadata.update(restore["replaced"])
    inherited = restore_inherited(metadata, restore["inherited"], restore["overridden"])
    return Node(
        restore.get("text", document.page_content),
        metadata,
        restore.get("content", document.page_content),
        id=document.id or "",
        inherited=inherited,
        **{name: details[name] for name in _POSITION},
    )


def put_documents(
    graph: NodeGraph, documents: Iterable[Document], ids: Sequence[str | None] | None = None
) -> list[str]:
    """Add documents, or update those whose id exists, all or none; return their ids.

    Args:
        graph: The node graph.
        documents: Whose text, metadata (copied) and id are used.
        ids: In place of the documents' own, one for each; None for a document's own.

    Raises:
        ValueError: If there are not as many ids as documents, or two documents have one id.
    """
    documents = list(documents)
    ids = [None] * len(documents) if ids is None else list(ids)
    check_same_length("documents", documents, "ids", ids)
    return graph.add(
        [
            SourceDocument(
                document.page_content, deepcopy(document.metadata), id=own or document.id or None
            )
            for document, own in zip(documents, ids, strict=True)
        ]
    )


def existing_nodes(graph: NodeGraph, ids: Iterable[str], group: str | None = None) -> list[Node]:
    """Return the nodes that exist, in the order of the ids, each once.

    Args:
        graph: The node graph.
        ids: Ids of nodes; those that do not exist are skipped.
        group: The group they must be of, built where it is not; None for any.
    """
    ids = list(dict.fromkeys(ids))
    with graph.reading(*(() if group is None else [group])):
        try:
            nodes = graph.nodes_by_id(ids)
        except LookupError:  # some are missing: one by one
            nodes = []
            for id in ids:
                with suppress(LookupError):
                    nodes.append(graph.node(id))
    return [node for node in nodes if group is None or node.group == group]


def delete_documents(graph: NodeGraph, ids: Iterable[str] | None) -> list[str]:
    """Remove documents and all nodes below them; return the ids of those that existed.

    Raises:
        ValueError: If there are no ids, or one is that of a node below a document; nothing is
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


def merge_filters(
    own: Mapping[str, Any] | None, filter: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return own conditions with those of a call, which replace the ones on the same field."""
    return {**own, **filter} if own is not None and filter is not None else filter or own


def check_same_length(name: str, some: Sequence[Any], other: str, others: Sequence[Any]) -> None:
    """Check that two lists go together.

    Raises:
        ValueError: If one is longer.
    """
    if len(some) != len(others):
        raise ValueError(
            f"there are {len(some)} {name} and {len(others)} {other}; give as many of both"
        )


def check_no_kwargs(method: str, kwargs: Mapping[str, Any]) -> None:
    """Check that a call has no keyword that the method does not know.

    Raises:
        TypeError: If there is one.
    """
    if kwargs:
        raise TypeError(f"{method}() has no argument {next(iter(kwargs))!r}")
