"""Convert between nodes and LangChain documents, and add or remove documents of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from langchain_core.documents import Document

from ...nodegraph.document import Document as SourceDocument
from ...nodegraph.foreign_documents import as_document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import SearchText
from ...nodegraph.source_names import file_name_of, source_title
from ...retrievers.results import ScoredNode
from ..frameworks import evidence_dicts, node_of, page_fields

SCORE_KEY = "relevance_score"
"""The metadata field in which other LangChain components store scores."""

# fields that are added to the metadata of a result, in addition to the score
_ADDED = ("place", "page_label", "evidence")


def to_document(
    item: Node | ScoredNode,
    *,
    score_key: str | None = None,
    place: bool = False,
    evidence: bool = False,
    span: bool = False,
) -> Document:
    """Convert a node or a search result to a new LangChain document with the same id and metadata.

    Args:
        item: The node or search result.
        score_key: The metadata field for the score of a result, which is a float. Higher scores are
            better. If None, no score is added.
        place: Whether to add the ``place`` of the best match to the metadata, such as ``report.pdf,
            page 12, 3.2 Results``. It is empty if the text has no source.
        evidence: Whether to add ``evidence`` to the metadata: a list of the matches as dictionaries
            with ``id``, ``text``, ``start``, ``end``, ``score``, ``similarity`` and ``query``.
        span: Whether to add the ``place``, ``start`` and ``end`` of the text in its source document
            to the metadata. This is meant for windows, which are excerpts of documents.

    Example:
        >>> node = Node("Tea is a drink.", {"page": 3}, id="n1")
        >>> to_document(node)
        Document(id='n1', metadata={'page': 3}, page_content='Tea is a drink.')
        >>> to_document(ScoredNode(node, 1.5), score_key="score", place=True).metadata
        {'place': '', 'page': 3, 'score': 1.5}
    """
    result = item if isinstance(item, ScoredNode) else ScoredNode(item, 0.0)
    node = result.node
    if span:
        added: dict[str, Any] = _span(node)
    elif place and result is item:
        added = _places(result)
    else:
        added = page_fields(node)
    metadata = {**added, **deepcopy(node.metadata)}
    if score_key is not None and result is item:
        metadata[score_key] = float(result.score)
    if evidence:
        metadata["evidence"] = evidence_dicts(result)
    original = getattr(node, "original", None)  # a document of another LangChain retriever
    id = original.id if isinstance(original, Document) else node.id
    return Document(str(node.content), metadata=metadata, id=id or None)


def _span(node: Node) -> dict[str, Any]:
    """Return the place of a node, and its start and end offsets in the source document."""
    place = node.place if source_title(node.metadata) else ""
    start: int | None = node.start
    end: int | None = node.end
    if node.group == ROOT:
        start = 0
        end = len(node.text)
    return {"place": place, "start": start, "end": end, **page_fields(node)}


def _places(result: ScoredNode) -> dict[str, str]:
    """Return the place of the best match of a result, and its page if the file has pages."""
    if not source_title(result.node.metadata):
        return {"place": ""}
    match = result.best_match
    return {"place": match.place, **page_fields(match)}


def text_documents(
    texts: Iterable[str], metadatas: Sequence[dict[str, Any]] | None = None
) -> list[Document]:
    """Create a document from each text and its metadata.

    Raises:
        TypeError: If ``texts`` is a single string.
        ValueError: If the numbers of texts and metadata dictionaries differ.
    """
    if isinstance(texts, str):
        raise TypeError(f"texts must be a list of texts, got {texts!r:.80}; write [text]")
    texts = list(texts)
    fields = [{} for _ in texts] if metadatas is None else list(metadatas)
    _check_same_length("texts", texts, "metadatas", fields)
    return [Document(t, metadata=m) for t, m in zip(texts, fields, strict=True)]


def put_documents(
    graph: NodeGraph,
    documents: Iterable[Document],
    ids: Sequence[str | None] | None = None,
    score_key: str | None = SCORE_KEY,
    embed_keys: Sequence[str] = (),
) -> list[str]:
    """Add documents to a graph, replacing documents with the same ids, and return their ids.

    All documents are embedded before the graph changes, so either all of them are added or none.

    If a document was retrieved from this graph, the metadata fields that the retrieval added are
    removed. Retrieved chunks are not added, because they are already part of a document.

    Args:
        graph: The node graph.
        documents: The documents. Their texts, metadata and ids are copied.
        ids: Ids that replace the ids of the documents. If None, each document keeps its id. A
            document without an id gets a hash of its text and metadata.
        score_key: The metadata field for the score.
        embed_keys: The keys of the embeddings of whole documents that searches use.

    Raises:
        EmbeddingError: If a model fails. In this case, no document is added.
        TypeError: If ``documents`` is not a list of LangChain documents.
        ValueError: If the numbers of documents and ids differ, two documents have the same id, or
            an id belongs to a chunk with a different text.
    """
    documents = list(documents)
    ids = [None] * len(documents) if ids is None else list(ids)
    _check_same_length("documents", documents, "ids", ids)
    for document in documents:
        if not isinstance(document, Document):
            raise TypeError(
                f"documents must be LangChain documents, got {document!r:.80}; for texts, use "
                "from_texts or add_texts"
            )
    existing = graph.reader.existing_nodes([d.id for d in documents if d.id])
    known = {node.id: node for node in existing}
    sources = []
    stored_ids = []
    for document, new_id in zip(documents, ids, strict=True):
        node = known.get(document.id or "")
        metadata = deepcopy(document.metadata)
        if node is not None:
            metadata = _without_added(metadata, node, score_key)
        id = new_id or document.id
        source = as_document(Document(document.page_content, metadata=metadata, id=id))
        is_chunk = node is not None and node.group != ROOT and node.text == source.text
        if not is_chunk or new_id:
            sources.append(source)
        stored_ids.append(source.id)
    _embed(graph, sources, embed_keys)
    graph.add(sources)
    return stored_ids


def _embed(graph: NodeGraph, documents: Sequence[SourceDocument], keys: Sequence[str]) -> None:
    """Embed the texts of documents that are not in the graph yet.

    If the search text of a document depends on the graph, it is embedded at the first search
    instead.
    """
    if not keys:
        return
    nodes = [
        node_of(document)
        for document in documents
        if _is_known(graph.reader.search_rule(ROOT) or document.search_text)
    ]
    texts = graph.reader.searched_texts(nodes)
    for key in keys:
        graph.embeddings.embed(texts, key, "documents")


def _is_known(rule: object) -> bool:
    """Return whether a search text can be computed before its document is in the graph."""
    return rule is None or (isinstance(rule, SearchText) and not rule.groups)


def remove_documents(graph: NodeGraph, ids: Sequence[str] | None) -> bool:
    """Remove documents and their derived nodes from a graph. Unknown ids are ignored.

    Raises:
        ValueError: If ``ids`` is None, or if an id belongs to a derived node.
    """
    if ids is None:  # in LangChain's interface, None means all documents
        raise ValueError("delete() requires the ids of the documents to remove, got None")
    if isinstance(ids, str):
        raise TypeError(f"ids must be a list of ids, got {ids!r:.80}; write [id]")
    nodes = graph.reader.existing_nodes(ids)
    for node in nodes:
        if node.group != ROOT:
            raise ValueError(
                f"{node.id!r} is a node of the group {node.group!r}, derived from the document "
                f"{node.document_id!r}; remove or change that document"
            )
    graph.remove([node.id for node in nodes])
    return True


def _without_added(metadata: dict[str, Any], node: Node, score_key: str | None) -> dict[str, Any]:
    """Return the metadata of a retrieved document without the fields that the retrieval added.

    Fields of the original node are kept, and so are fields whose values cannot come from a
    retrieval.
    """
    file_name = file_name_of(node.metadata) or "/"
    pages = page_fields(node)
    kept: dict[str, Any] = {}
    has_score = score_key in metadata and score_key not in node.metadata
    for name, value in metadata.items():
        is_added = name == score_key or (has_score and name in _ADDED)
        if name == "place":
            is_added |= value == "" or str(value).startswith(file_name)
        elif name == "evidence":
            is_added |= isinstance(value, list) and all(_is_match(item) for item in value)
        elif name == "page_label":
            is_added |= value == pages.get(name)
        if not is_added or name in node.metadata:
            kept[name] = value
    return kept


def _is_match(item: object) -> bool:
    return isinstance(item, Mapping) and {"id", "score", "similarity"} <= item.keys()


def default_similarity(graph: NodeGraph) -> str:
    """Return the default similarity: cosine if the graph has an embedding model, otherwise BM25."""
    return "cosine" if graph.embeddings.embedders else "bm25"


def _check_same_length(name: str, some: Sequence[Any], other: str, others: Sequence[Any]) -> None:
    if len(some) != len(others):
        raise ValueError(
            f"{name} and {other} must have the same length, got {len(some)} and {len(others)}"
        )
