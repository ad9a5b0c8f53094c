"""Return excerpts from source documents that were split into nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, MetadataMode

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...retrievers.call import Call
from ...retrievers.composite.document_retriever import DocumentRetriever
from ...retrievers.filters import DOCUMENT_ID
from ...retrievers.plans.plan import Do
from .docstore import PLACES, GraphRecords
from .graph_embedding import GraphEmbedding


class NodePlaces(NamedTuple):
    """The positions of nodes in the source document from which they were split.

    Attributes:
        starts: The start offset of each node by node id, in text order.
        gaps: The white space before each node that does not belong to any node, and finally the
            white space after the last node.
    """

    starts: dict[str, int]
    gaps: list[str]

    @property
    def is_split(self) -> bool:
        """Whether the document has several nodes, or white space outside its only node."""
        return len(self.starts) > 1 or any(self.gaps)

    def joined(self, texts: Iterable[str]) -> str | None:
        """Restore the text of the document from the texts of its nodes.

        Return None if the nodes have changed in the meantime.
        """
        whole = ""
        for text, start, gap in zip(texts, self.starts.values(), self.gaps, strict=False):
            whole += gap
            overlap = whole[start:]
            if len(whole) < start or not text.startswith(overlap):
                return None
            whole = whole[:start] + text
        return whole + self.gaps[-1]


def node_places(source: BaseNode, nodes: Sequence[BaseNode]) -> NodePlaces | None:
    """Return the positions of nodes in their source document.

    Return None if the nodes do not cover the complete text.
    """
    whole = source.get_content(MetadataMode.NONE)
    starts: dict[str, int] = {}
    gaps = []
    end = 0
    for node in sorted(nodes, key=_start):
        start = _start(node)
        text = node.get_content(MetadataMode.NONE)
        if start < 0 or not whole.startswith(text, start) or start + len(text) < end:
            return None
        starts[node.node_id] = start
        gaps.append(whole[end:start])
        end = start + len(text)
    gaps.append(whole[end:])
    return None if "".join(gaps).strip() else NodePlaces(starts, gaps)


def _start(node: BaseNode) -> int:
    """Return the start offset of a node in its source document, or -1 if it is unknown."""
    start = getattr(node, "start_char_idx", None)
    return -1 if start is None else int(start)


class PlaceRecords:
    """The stored positions of the nodes of an index in their source documents.

    Args:
        graph: The graph of the index, in which the positions are stored.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._records = GraphRecords(graph)

    def put(self, documents: Sequence[BaseNode], nodes: Sequence[BaseNode]) -> None:
        """Store the positions of nodes in the documents from which they were split."""
        nodes_of: dict[str | None, list[BaseNode]] = {}
        for node in nodes:
            nodes_of.setdefault(node.ref_doc_id, []).append(node)
        rows: dict[str, dict[str, Any]] = {}
        for document in documents:
            places = node_places(document, nodes_of.get(document.node_id, []))
            if places is not None:
                rows[document.node_id] = places._asdict()
        without = [document.node_id for document in documents if document.node_id not in rows]
        self._records.delete_many(without, PLACES)
        self._records.put_all([*rows.items()], PLACES)

    def read(self) -> dict[str, NodePlaces]:
        """Return the positions of nodes, keyed by the id of their source document."""
        rows = self._records.get_all(PLACES)
        return {source: NodePlaces(**row) for source, row in rows.items()}


class SourceDocuments:
    """An in-memory graph that contains the source documents of the nodes of an index.

    The text of each document is joined from its nodes, so it never includes nodes that were
    deleted. If the position of a node is unknown, or if the nodes of its document have changed, the
    node is treated as a document.

    Args:
        graph: The graph of the index.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._records = PlaceRecords(graph)
        self._lock = threading.Lock()
        self._revision: int | None = None
        self._source_of: dict[str, str] = {}
        models = {key: GraphEmbedding(graph, key) for key in graph.embeddings.embedders}
        self._sources = NodeGraph(embed=models or None, progress=False)

    def current(self) -> NodeGraph:
        """Return an up-to-date graph of the source documents.

        If no document was split, the graph of the index itself is returned.
        """
        with self._lock:
            revision = self._graph.reader.revision(ROOT)
            if revision != self._revision:
                self._follow()
                self._revision = revision
            return self._sources if self._source_of else self._graph

    def _follow(self) -> None:
        """Apply changes of the index to the source documents."""
        before = self._source_of
        places = self._records.read()
        if not before and not any(place.is_split for place in places.values()):
            return
        self._source_of = {i: source for source, place in places.items() for i in place.starts}
        changed = None
        if self._revision is not None and before:
            changed = self._graph.reader.changed_ids(ROOT, self._revision)
        if changed is None:
            ids = self._graph.reader.ids(ROOT)
            stale = {*self._sources.reader.document_ids()}
        else:
            ids, stale = self._touched({*changed[0], *changed[1]}, before, places)
        documents = self._documents(self._graph.reader.existing_nodes(ids), places)
        gone = self._sources.reader.existing_documents(stale - documents.keys())
        self._sources.remove([*gone])
        self._sources.add([*documents.values()])

    def _touched(
        self, changed: set[str], before: Mapping[str, str], places: Mapping[str, NodePlaces]
    ) -> tuple[list[str], set[str]]:
        """Return the ids of the nodes to read again, and of the documents that may contain them."""
        sources: set[str] = set()
        for source_of in (before, self._source_of):
            sources.update(source_of[i] for i in changed if i in source_of)
        nodes = dict.fromkeys(changed)
        for source in sources:
            nodes.update(dict.fromkeys(places[source].starts if source in places else ()))
        nodes.update(dict.fromkeys(i for i, source in before.items() if source in sources))
        return [*nodes], sources | nodes.keys()

    def _documents(
        self, nodes: Sequence[Node], places: Mapping[str, NodePlaces]
    ) -> dict[str, Document]:
        """Return a dictionary of the documents that contain the given nodes, keyed by id.

        Each document is either joined from several nodes or consists of a single node.
        """
        by_id = {node.id: node for node in nodes}
        joined: dict[str, Document | None] = {}
        documents = {}
        for node in nodes:
            source = self._source_of.get(node.id)
            if source is not None and source not in joined:
                parts = [by_id[i] for i in places[source].starts if i in by_id]
                joined[source] = _joined(source, parts, places[source])
            document = joined.get(source or "") or _document(node.id, node, node.text)
            documents[document.id or node.id] = document
        return documents


def _joined(source: str, nodes: Sequence[Node], places: NodePlaces) -> Document | None:
    """Merge the nodes of a source document into one document.

    Return None if a node is missing, if the text of a node has changed, or if the nodes do not all
    have the same metadata and search text.
    """
    if len(nodes) < len(places.starts):
        return None
    first = nodes[0]
    alike = [n for n in nodes if n.metadata == first.metadata and _searched(n) == _searched(first)]
    text = places.joined(node.text for node in nodes)
    if text is None or len(alike) < len(nodes):
        return None
    return _document(source, first, text)


def _document(document_id: str, node: Node, text: str) -> Document:
    return Document(text, node.metadata, id=document_id, search_text=_searched(node))


def _searched(node: Node) -> Any:
    return node.search_text or node.inherited_search_text


class NodeDocumentRetriever(DocumentRetriever):
    """A retriever of nodes that can return excerpts of their source documents within a token limit.

    If a filter contains a condition on ids, excerpts are taken from the nodes instead, because the
    ids are ids of nodes.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_passages": None}  # this in-memory graph can be created again

    async def searched_graph(self, call: Call) -> NodeGraph:
        """Return the graph that contains the source documents."""
        if "index" in self.options or _names_documents(call.conditions):
            return self.graph
        make = partial(SourceDocuments, self.graph)
        sources = self.graph.reader.shared("llama_index sources", make)
        return await Do(sources.current, kind="work")


def _names_documents(conditions: object) -> bool:
    """Return whether filters contain a condition on document ids."""
    if isinstance(conditions, Mapping):
        if DOCUMENT_ID in conditions:
            return True
        conditions = [*conditions.values()]
    if not isinstance(conditions, list | tuple):
        return False
    return any(_names_documents(condition) for condition in conditions)
