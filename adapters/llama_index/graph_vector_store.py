"""Use the nodes of an index as a LlamaIndex vector store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from fsspec import AbstractFileSystem  # type: ignore[import-untyped]
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores import MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from ...nodegraph.errors import explain_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.filters import DOCUMENT_ID, Filters, all_of
from ..frameworks import check_names, in_thread
from .metadata_filters import as_filters
from .nodes import NamedByClass, to_results
from .query_modes import QueryModeRetriever

logger = logging.getLogger(__name__)


class IndexOfNodes(Protocol):
    """The attributes and methods of a ``NodeGraphIndex`` that a vector store needs."""

    @property
    def graph(self) -> NodeGraph:
        """The graph, which contains each node as a document."""

    @property
    def docstore(self) -> BaseDocumentStore:
        """The docstore that contains the nodes."""

    def nodes_of(self, *ref_doc_ids: str) -> list[str]:
        """Return the ids of the nodes that belong to the given source documents."""

    def search_of_mode(
        self,
        mode: VectorStoreQueryMode | str,
        *,
        top_k: int,
        alpha: float | None = None,
        mmr_threshold: float | None = None,
        sparse_top_k: int | None = None,
        hybrid_top_k: int | None = None,
    ) -> QueryModeRetriever:
        """Return a retriever for a query mode."""

    def put_nodes(self, nodes: Sequence[BaseNode]) -> None:
        """Add nodes to the index."""

    def delete_nodes(self, node_ids: list[str], delete_from_docstore: bool) -> None:
        """Delete nodes from the index."""

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool) -> None:
        """Delete the nodes of a source document."""


class NodeGraphVectorStore(NamedByClass, BasePydanticVectorStore):
    """A LlamaIndex vector store that searches and changes the nodes of a ``NodeGraphIndex``.

    Use ``index.vector_store`` to pass an index to components that require a vector store, such as
    ``VectorIndexAutoRetriever``, ``VectorIndexRetriever``, ``IngestionPipeline`` and
    ``VectorStoreIndex.from_vector_store``. Changes to the vector store are changes to the index.

    The query modes are ``"default"`` (cosine), ``"text_search"`` and ``"sparse"`` (both BM25),
    ``"hybrid"`` and ``"mmr"``. If the index has no embedding model, all modes search words. A query
    with neither a text nor a vector lists all nodes that match its filters.

    Args:
        index: The index. It is not included in ``to_dict()`` and pickles. After loading, set it
            with ``rebind``.
        stores_text: Only present because it is a field of ``to_dict()``.
        is_embedding_query: Only present because it is a field of ``to_dict()``. The index
            determines the value.
        class_name: Ignored. It is only accepted because ``to_dict()`` adds it.

    Attributes:
        stores_text: Always True, because results are complete nodes.
        is_embedding_query: Whether the index has an embedding model.

    Example:
        >>> from llama_index.core import Document
        >>> from llama_index.core.vector_stores import VectorStoreQuery
        >>> from nodekin.adapters.llama_index import NodeGraphIndex
        >>> documents = [Document(text="Green tea is steamed.", id_="g"), Document(text="Rivers.")]
        >>> index = NodeGraphIndex.from_documents(documents, similarity="bm25")
        >>> query = VectorStoreQuery(query_str="steamed tea", mode="text_search")
        >>> [node.text for node in index.vector_store.query(query).nodes]
        ['Green tea is steamed.']
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    _index: IndexOfNodes | None = PrivateAttr(default=None)

    @explain_names
    def __init__(
        self,
        index: IndexOfNodes | None = None,
        *,
        stores_text: bool = True,
        is_embedding_query: bool = True,
        class_name: str = "",
    ) -> None:
        super().__init__(stores_text=stores_text, is_embedding_query=is_embedding_query)
        if index is not None:
            self.rebind(index)

    def rebind(self, index: IndexOfNodes) -> NodeGraphVectorStore:
        """Set the index, and return this vector store."""
        self._index = index
        self.is_embedding_query = bool(index.graph.embeddings.embedders)
        return self

    @property
    def index(self) -> IndexOfNodes:
        """The index whose nodes are searched.

        Raises:
            ValueError: If the index has not been set.
        """
        if self._index is None:
            raise ValueError(
                "the index is missing: to_dict() and pickles omit it; set it with rebind(index)"
            )
        return self._index

    @property
    def client(self) -> NodeGraph:
        """The node graph of the index."""
        return self.index.graph

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the nodes that match a query, best first.

        Args:
            query: The query. All of its fields are used except ``output_fields`` and
                ``embedding_field``. An empty list of ``node_ids`` selects all nodes, because
                ``VectorStoreIndex`` passes an empty list to stores that keep texts.
            **kwargs: The option ``mmr_threshold``, as in ``SimpleVectorStore``.

        Raises:
            TypeError: If an argument is unknown.
            ValueError: If the mode is not supported, or a number is out of range.
        """
        check_names("query", kwargs, ("mmr_threshold",))
        search = self.index.search_of_mode(
            query.mode,
            top_k=query.similarity_top_k,
            alpha=query.alpha,
            mmr_threshold=kwargs.get("mmr_threshold", query.mmr_threshold),
            sparse_top_k=query.sparse_top_k,
            hybrid_top_k=query.hybrid_top_k,
        )
        filters = all_of(
            as_filters(query.filters, self.index.nodes_of),
            self._ids_filter(query.node_ids or None, query.doc_ids),
        )
        results = search.search(query.query_str or "", query.query_embedding, None, filters)
        scores = [float(result.score) for result in results]
        nodes = [result.node for result in to_results(results)]
        ids = [node.node_id for node in nodes]
        return VectorStoreQueryResult(nodes=nodes, similarities=scores, ids=ids)

    def _ids_filter(
        self, node_ids: Sequence[str] | None, doc_ids: Sequence[str] | None
    ) -> Filters | None:
        """Create a filter that selects the given nodes and source documents."""
        conditions: Filters | None = None
        if node_ids is not None:
            conditions = {DOCUMENT_ID: {"in": [*node_ids]}}
        if doc_ids is not None:
            of_sources = self.index.nodes_of(*doc_ids)
            conditions = all_of(conditions, {DOCUMENT_ID: {"in": of_sources}})
        return conditions

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return the nodes with the given ids that match the filters, in the order of the ids."""
        conditions = all_of(
            as_filters(filters, self.index.nodes_of), self._ids_filter(node_ids, None)
        )
        results = self.index.search_of_mode("text_search", top_k=1).listed(None, conditions)
        return [result.node for result in to_results(results)]

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes and return their ids. Nodes with existing ids are replaced.

        Vectors that the nodes already have are kept, and missing vectors are computed.

        Args:
            nodes: The nodes.
            **kwargs: Ignored, because LlamaIndex passes the same arguments to all vector stores.
        """
        self.index.put_nodes(nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a source document."""
        self.index.delete_ref_doc(ref_doc_id, delete_from_docstore=True)

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete the nodes with the given ids that match the filters."""
        ids = [node.node_id for node in self.get_nodes(node_ids, filters)]
        self.index.delete_nodes(ids, delete_from_docstore=True)

    def clear(self) -> None:
        """Delete all nodes."""
        self.index.delete_nodes(self.client.reader.document_ids(), delete_from_docstore=True)

    aquery = in_thread(query)
    aget_nodes = in_thread(get_nodes)
    async_add = in_thread(add)
    adelete = in_thread(delete)
    adelete_nodes = in_thread(delete_nodes)
    aclear = in_thread(clear)

    def persist(self, persist_path: str, fs: AbstractFileSystem | None = None) -> None:
        """Save the vectors to a file that ``SimpleVectorStore`` can read.

        The nodes themselves are saved by ``index.storage_context.persist()``. An index with a
        ``store`` is saved continuously. Without an embedding model, a warning is logged.
        """
        graph = self.client
        if not graph.embeddings.embedders:
            logger.warning("the index has no vectors to persist; its words are with its nodes")
            return
        vectors = SimpleVectorStore()
        found = graph.nodes(ROOT)
        texts = graph.reader.searched_texts(found)
        key = graph.embeddings.key(None)
        nodes = self.index.docstore.get_nodes([node.id for node in found])
        for node, vector in zip(nodes, graph.embeddings.vectors(texts, key), strict=True):
            node.embedding = vector.tolist()
        vectors.add(nodes)
        vectors.persist(persist_path, fs)
