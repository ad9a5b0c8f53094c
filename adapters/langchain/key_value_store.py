"""Use one group of a graph as a LangChain key-value store: documents by their id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from .documents import DOCUMENT_ID_KEY, Details, delete_documents, existing_nodes, to_document


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
