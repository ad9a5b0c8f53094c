"""Let a graph be LangChain's key-value store of documents, and ``index()``'s record manager."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import RecordManager
from langchain_core.stores import BaseStore

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ..frameworks import in_thread
from .documents import DOCUMENT_ID_KEY, Details, delete_documents, existing_nodes, to_document


class NodeGraphRecordManager(RecordManager):
    """Tell ``index()`` which documents a graph has, without a second database that may differ.

    It goes with a ``NodeGraphRetriever`` or ``NodeGraphVectorStore`` of the same graph. What was
    removed from the graph itself is added again by the next ``index()``, where a record manager of
    its own would skip it. When a document was indexed is known within the process that did it,
    which is what a cleanup asks for.

    Args:
        graph: The graph that ``index()`` writes to.
        source_id_key: As for ``index()``: the metadata field that names a document's source, or
            a function of the document.

    Raises:
        TypeError: If ``graph`` is no ``NodeGraph``.

    Example:
        >>> from langchain_core.indexing import index
        >>> from nodekin.adapters.langchain import NodeGraphRetriever
        >>> retriever = NodeGraphRetriever.from_documents([])
        >>> records = NodeGraphRecordManager(retriever.graph)
        >>> settings = {"cleanup": "full", "key_encoder": "sha256"}
        >>> result = index([Document("Tea."), Document("Milk.")], records, retriever, **settings)
        >>> index([Document("Tea.")], records, retriever, **settings)["num_deleted"]
        1
    """

    def __init__(
        self, graph: NodeGraph, source_id_key: str | Callable[[Document], str | None] = "source"
    ) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        super().__init__("nodekin")
        self.graph = graph
        self.source_id_key = source_id_key
        self._times: dict[str, float] = {}
        self._latest = 0.0

    def create_schema(self) -> None:
        """Do nothing: a graph has its tables."""

    def get_time(self) -> float:
        """Return the time in seconds, later each time, also where a clock was set back."""
        self._latest = max(time.time(), math.nextafter(self._latest, math.inf))
        return self._latest

    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Note that documents were indexed now; their sources are in their metadata."""
        self._times.update(dict.fromkeys(keys, max(self.get_time(), time_at_least or 0.0)))

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """Return which documents the graph has."""
        existing = {node.id for node in existing_nodes(self.graph, keys, ROOT)}
        return [key in existing for key in keys]

    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Return documents by when they were indexed, and by their sources."""
        keys = []
        for node in self.graph.nodes(ROOT):
            updated = self._times.get(node.id, 0.0)
            in_time = (before is None or updated < before) and (after is None or updated > after)
            if in_time and (group_ids is None or self._source(to_document(node)) in group_ids):
                keys.append(node.id)
        return keys[:limit]

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Remove documents from the graph, where they still are."""
        delete_documents(self.graph, keys)
        for key in keys:
            self._times.pop(key, None)

    def _source(self, document: Document) -> Any:
        if callable(self.source_id_key):
            return self.source_id_key(document)
        return document.metadata.get(self.source_id_key)

    acreate_schema = in_thread(create_schema)
    aget_time = in_thread(get_time)
    aupdate = in_thread(update)
    aexists = in_thread(exists)
    alist_keys = in_thread(list_keys)
    adelete_keys = in_thread(delete_keys)


class NodeGraphStore(BaseStore[str, Document]):
    """Get the nodes of one group by id: the parents, for code that wants them in a store.

    The async methods are LangChain's, which run the others in a thread.

    With the group of the documents (the default) it can also be written to, as ``docstore`` of
    LangChain's ``ParentDocumentRetriever`` for example. The value of a key becomes the document
    of that id in the graph, and the nodes below it are updated with it.

    Documents come back as they were put in, also with an id that is not the key, or without one.
    With ``details`` they have their position in the graph besides, as in ``to_document``.

    Args:
        graph: The node graph.
        group: The group whose nodes are the values.
        details: What the metadata has besides the document's own, as in ``to_document``.

    Raises:
        TypeError: If ``graph`` is no ``NodeGraph``.
        UnknownGroupError: If the graph has no such group.

    Example:
        >>> store = NodeGraphStore(NodeGraph())
        >>> store.mset([("tea", Document("Tea is a drink.")), ("河", Document("河流入海。"))])
        >>> [document and document.page_content for document in store.mget(["河", "none"])]
        ['河流入海。', None]
        >>> list(store.yield_keys(prefix="t"))
        ['tea']
    """

    def __init__(self, graph: NodeGraph, group: str = ROOT, *, details: Details = False) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        graph.reader.lineage(group)
        self.graph = graph
        self.group = group
        self.details = details

    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """Return the document of each key, None where there is none."""
        nodes = {node.id: node for node in existing_nodes(self.graph, keys, self.group)}
        return [self._document(nodes[key]) if key in nodes else None for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Set the documents of keys, all or none. The last one of a key counts.

        Raises:
            ValueError: If the group is not that of the documents.
        """
        self._check_writable("put there")
        documents = dict(key_value_pairs)
        self.graph.add([_with_key(key, document) for key, document in documents.items()])

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove documents and the nodes below them. Keys that do not exist are skipped.

        Raises:
            ValueError: If the group is not that of the documents.
        """
        self._check_writable("removed")
        existing = [node.id for node in existing_nodes(self.graph, keys, self.group)]
        delete_documents(self.graph, existing)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys in document order, those that begin with ``prefix``."""
        for node in self.graph.nodes(self.group):
            if prefix is None or node.id.startswith(prefix):
                yield node.id

    def _check_writable(self, what: str) -> None:
        if self.group != ROOT:
            raise ValueError(
                f"nodes of the group {self.group!r} are made from documents, and can't be {what}; "
                f"change the documents: NodeGraphStore(graph)"
            )

    def _document(self, node: Node) -> Document:
        document = to_document(node, details=self.details)
        if DOCUMENT_ID_KEY in node.own_metadata:
            document.id = node.own_metadata[DOCUMENT_ID_KEY]
        return document


def _with_key(key: str, document: Document) -> Document:
    """Return the document with the key as its id. Its own, if another or none, is kept in it."""
    metadata = deepcopy(document.metadata)
    if document.id != key:
        metadata[DOCUMENT_ID_KEY] = document.id
    return Document(document.page_content, metadata=metadata, id=key)
