"""Use a graph as a LangChain document index: upsert, get, delete, search by any retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import DeleteResponse, DocumentIndex, UpsertResponse
from pydantic import model_validator

from ...nodegraph.graph import NodeGraph
from ..frameworks import document_search
from .documents import check_kwargs, delete_documents, existing_nodes, put_documents, to_document
from .retriever import NodeGraphRetriever


class NodeGraphIndex(NodeGraphRetriever, DocumentIndex):
    """Write to a graph by ``langchain_core.indexing.index``, which synchronizes it with a loader.

    It is a ``NodeGraphRetriever`` that can be written to. ``index(loader, record_manager, it,
    cleanup="incremental")`` adds new documents, and removes those that the loader no longer
    gives, with the nodes below them; only what changed is derived and embedded again.

    LangChain calls its ``DocumentIndex`` beta, so its interface may change. Its async methods run
    the others in a thread.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``.

    Key init args:
        graph: The node graph to write to.
        retriever: How to search it; by default its documents, by a ``DefaultRetriever``. The
            other arguments are its own.

    Instantiate:
        >>> from nodekin.nodegraph import split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", target="ROOT")
        >>> documents = NodeGraphIndex(graph=graph, retriever=search, k=1)

    Usage:
        >>> documents.upsert([Document("Tea is green. Tea is hot.", id="tea")])
        {'succeeded': ['tea'], 'failed': []}
        >>> [document.id for document in documents.invoke("green tea")]
        ['tea']
        >>> documents.delete(["tea", "coffee"])["succeeded"]
        ['tea']

        With LangChain's record manager, what a loader no longer gives is removed:

        >>> from langchain_core.indexing import InMemoryRecordManager, index
        >>> records = InMemoryRecordManager(namespace="tea")
        >>> records.create_schema()
        >>> settings = {"cleanup": "full", "key_encoder": "sha256"}
        >>> result = index([Document("Tea."), Document("Milk.")], records, documents, **settings)
        >>> index([Document("Tea.")], records, documents, **settings)["num_deleted"]
        1
    """

    graph: NodeGraph
    """The node graph to write to."""

    @model_validator(mode="before")
    @classmethod
    def _search_documents(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("retriever") is None:
            graph = values.get("graph")
            if isinstance(graph, NodeGraph):
                return {**values, "retriever": document_search(graph)}
        return values

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Add documents, or update those whose id exists, all or none.

        A document without an id gets one, a hash of its text and metadata.

        Raises:
            ValueError: If two different documents have one id; nothing is changed then.
        """
        check_kwargs("upsert", kwargs)
        return {"succeeded": put_documents(self.graph, items), "failed": []}

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Remove documents and the nodes below them; ids that do not exist are skipped.

        Raises:
            ValueError: If no ids are given, or one is that of a node below a document.
        """
        check_kwargs("delete", kwargs)
        deleted = delete_documents(self.graph, ids)
        return {"num_deleted": len(deleted), "num_failed": 0, "succeeded": deleted, "failed": []}

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Return the documents that exist as they were put in, in the order of the ids."""
        check_kwargs("get", kwargs)
        return [to_document(node) for node in existing_nodes(self.graph, ids)]
