"""Use a group of a graph as a LangChain vector store."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from typing_extensions import Self

from ...nodegraph.errors import explain_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.filters import DOCUMENT_ID, Filters
from ...retrievers.protocols import Similarity
from ...retrievers.ranking import Lift
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever
from ...retrievers.similarities.registry import MakeIndex
from ..argument_types import Embedding
from ..frameworks import check_names
from .documents import (
    default_similarity,
    put_documents,
    remove_documents,
    text_documents,
    to_document,
)
from .filter_translation import as_filters
from .graph_search import document_keys

SearchType = Literal["similarity", "mmr", "similarity_score_threshold"]
"""The search types of LangChain's ``VectorStoreRetriever``."""


class NodeGraphVectorStore(VectorStore):
    """A LangChain vector store that is backed by one node group of a graph.

    Use it for code that requires a vector store. Otherwise, prefer ``NodeGraphRetriever``, which
    combines words, vectors and links and therefore finds more.

    By default, whole documents are searched. If ``group`` is a smaller unit, such as
    ``"MediumChunk"``, its nodes are searched and returned. To search small units but return whole
    documents, add ``target="ROOT"``. If a document changes, its nodes in all groups are updated.
    Documents are embedded when they are added, and the nodes of other groups at the first search.
    Each text is embedded only once.

    Setup:
        ``pip install "nodekin[langchain]"``

    Key init args:
        embedding: The embedding model. If None, words are searched. To use an existing graph, call
            ``NodeGraphVectorStore.from_graph(graph)``.
        group: The group to search.
        similarity: The similarity, as in ``Retriever``. Defaults to ``"cosine"``, or to ``"bm25"``
            without an embedding model.
        store: The path of a file for the new graph. If None, the graph is in memory.
        filter: Conditions on metadata for all searches. They are combined with the filter of each
            search.
        score_key: The metadata field for scores. If None, documents are returned unchanged.
        relevance_score_fn: A function that converts a score to a number from 0 to 1. Defaults to
            the score itself for ``"cosine"``, and ``score / (1 + score)`` for ``"bm25"``.
        target: The group to return. Defaults to ``group``.
        score_threshold: The minimum score.
        index: The index of vectors, such as ``as_index(vector_store)``. Defaults to the built-in
            index.
        embed_keys: The keys of the embedding models to search with.
        lift: How the scores of several matches in the same returned node are combined: ``"max"``,
            ``"sum"`` or ``"mean"``.
        fetch_k: The number of matching nodes to fetch before they are replaced by nodes of
            ``target``. If None, as many are fetched as ``k`` documents require.

    Instantiate:
        >>> from langchain_core.documents import Document
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = NodeGraphVectorStore(DeterministicFakeEmbedding(size=64))

    Usage:
        >>> store.add_documents([Document("banana", id="1"), Document("lemon tree", id="2")])
        ['1', '2']
        >>> store.similarity_search("banana", k=1)
        [Document(id='1', metadata={}, page_content='banana')]
        >>> store.delete(["1"])
        True

    Use within a chain:
        >>> retriever = store.as_retriever(search_kwargs={"k": 1})
        >>> [document.id for document in retriever.invoke("melon")]
        ['2']

    Raises:
        TypeError: If ``embedding`` is not an embedding model, or an argument is unknown.
        UnknownGroupError: If the graph does not have the given group.
    """

    @explain_names
    def __init__(
        self,
        embedding: Embedding | None = None,
        group: str = ROOT,
        *,
        store: str | Path | None = None,
        similarity: str | Similarity | None = None,
        target: str | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        score_key: str | None = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift | None = None,
        fetch_k: int | None = None,
    ) -> None:
        if isinstance(embedding, NodeGraph):
            raise TypeError(
                "embedding must be an embedding model, got a NodeGraph; write "
                f"{type(self).__name__}.from_graph(graph)"
            )
        self._set_up(
            NodeGraph(embed=embedding, store=store),
            group=group,
            similarity=similarity,
            target=target,
            filter=filter,
            score_threshold=score_threshold,
            score_key=score_key,
            relevance_score_fn=relevance_score_fn,
            index=index,
            embed_keys=embed_keys,
            lift=lift,
            fetch_k=fetch_k,
        )

    def _set_up(
        self,
        graph: NodeGraph,
        group: str,
        *,
        similarity: str | Similarity | None,
        filter: Mapping[str, Any] | None,
        score_key: str | None,
        relevance_score_fn: Callable[[float], float] | None,
        score_threshold: float | None,
        **options: Any,
    ) -> None:
        given = {name: value for name, value in options.items() if value is not None}
        self.graph = graph
        self.retriever = Retriever(
            graph,
            group,
            similarity or default_similarity(graph),
            filters=as_filters(filter),
            min_score=score_threshold,
            **given,
        )
        self._score_key = score_key
        self._relevance_score_fn = relevance_score_fn

    @classmethod
    @explain_names
    def from_graph(
        cls,
        graph: NodeGraph,
        *,
        group: str = ROOT,
        similarity: str | Similarity | None = None,
        target: str | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        score_key: str | None = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift | None = None,
        fetch_k: int | None = None,
    ) -> Self:
        """Create a vector store from a group of an existing graph. See the class for all arguments.

        Args:
            graph: The graph. If it has no embedding model, words are searched.
            group: The group to search.
            similarity: The similarity measure.
            target: The group to return.
            filter: Conditions on metadata for all searches.
            score_threshold: The minimum score.
            score_key: The metadata field for scores.
            relevance_score_fn: A function that converts a score to a number from 0 to 1.
            index: The index of vectors.
            embed_keys: The keys of the embedding models.
            lift: How the scores of several matches in the same returned node are combined.
            fetch_k: The number of matching nodes to fetch.

        Raises:
            TypeError: If ``graph`` is not a ``NodeGraph``, or an argument is unknown.
            UnknownGroupError: If the graph does not have the given group.

        Example:
            >>> graph = NodeGraph()
            >>> ids = graph.add(["Green tea is steamed.", "Rivers run."])
            >>> store = NodeGraphVectorStore.from_graph(graph)
            >>> [document.page_content for document in store.similarity_search("rivers")]
            ['Rivers run.']
        """
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        vector_store = cls.__new__(cls)
        vector_store._set_up(
            graph,
            group=group,
            similarity=similarity,
            target=target,
            filter=filter,
            score_threshold=score_threshold,
            score_key=score_key,
            relevance_score_fn=relevance_score_fn,
            index=index,
            embed_keys=embed_keys,
            lift=lift,
            fetch_k=fetch_k,
        )
        return vector_store

    @property
    def native_retriever(self) -> Retriever:
        """The nodekin retriever that searches the group."""
        return self.retriever

    @property
    def embeddings(self) -> Embeddings | None:
        """The LangChain embedding model of the graph.

        This is None if the graph has no model, or if its model is not a LangChain model.
        """
        keys = self.retriever.embed_keys
        embed = self.graph.embeddings.embedder(keys[0]).embed if keys else None
        model = getattr(embed, "__self__", None)
        return model if isinstance(model, Embeddings) else None

    @classmethod
    @explain_names
    def from_documents(  # type: ignore[override]
        cls,
        documents: Iterable[Document],
        embedding: Embedding | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        group: str = ROOT,
        similarity: str | Similarity | None = None,
        target: str | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        score_key: str | None = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift | None = None,
        fetch_k: int | None = None,
    ) -> Self:
        """Create a vector store from documents. See the class for the remaining arguments."""
        vector_store = cls(
            embedding,
            store=store,
            group=group,
            similarity=similarity,
            target=target,
            filter=filter,
            score_threshold=score_threshold,
            score_key=score_key,
            relevance_score_fn=relevance_score_fn,
            index=index,
            embed_keys=embed_keys,
            lift=lift,
            fetch_k=fetch_k,
        )
        vector_store.add_documents(documents, ids=ids)
        return vector_store

    @classmethod
    @explain_names
    def from_texts(  # type: ignore[override]
        cls,
        texts: Iterable[str],
        embedding: Embedding | None = None,
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        group: str = ROOT,
        similarity: str | Similarity | None = None,
        target: str | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        score_key: str | None = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift | None = None,
        fetch_k: int | None = None,
    ) -> Self:
        """Create a vector store from texts. See the class for the remaining arguments."""
        return cls.from_documents(
            text_documents(texts, metadatas),
            embedding,
            ids=ids,
            store=store,
            group=group,
            similarity=similarity,
            target=target,
            filter=filter,
            score_threshold=score_threshold,
            score_key=score_key,
            relevance_score_fn=relevance_score_fn,
            index=index,
            embed_keys=embed_keys,
            lift=lift,
            fetch_k=fetch_k,
        )

    def save_local(self, folder_path: str | Path, index_name: str = "index") -> None:
        """Save the graph with all vectors to a file in a folder, like ``FAISS.save_local``."""
        if keys := self.retriever.embed_keys:
            self.graph.build(self.retriever.group, embed=keys)
        Path(folder_path).mkdir(parents=True, exist_ok=True)
        self.graph.reader.copy_to(Path(folder_path, f"{index_name}.nodekin"))

    @classmethod
    @explain_names
    def load_local(
        cls,
        folder_path: str | Path,
        embedding: Embedding | None = None,
        index_name: str = "index",
        *,
        allow_dangerous_deserialization: bool | None = None,
        group: str = ROOT,
        similarity: str | Similarity | None = None,
        target: str | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        score_key: str | None = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift | None = None,
        fetch_k: int | None = None,
    ) -> Self:
        """Open a vector store that was saved with ``save_local``.

        Later changes are saved to the file.

        Args:
            folder_path: The folder.
            embedding: The embedding model.
            index_name: The name of the file in the folder, without its suffix.
            allow_dangerous_deserialization: An argument of ``FAISS.load_local`` that is ignored,
                because nothing is unpickled.
            group: The group to search. The class describes this argument and all following
                arguments.
            similarity: The similarity measure.
            target: The group to return.
            filter: Conditions on metadata for all searches.
            score_threshold: The minimum score.
            score_key: The metadata field for scores.
            relevance_score_fn: A function that converts a score to a number from 0 to 1.
            index: The index of vectors.
            embed_keys: The keys of the embedding models.
            lift: How the scores of several matches in the same returned node are combined.
            fetch_k: The number of matching nodes to fetch.

        Raises:
            FileNotFoundError: If the folder does not contain this file.
        """
        path = Path(folder_path, f"{index_name}.nodekin")
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; pass a folder that save_local wrote")
        return cls(
            embedding,
            store=path,
            group=group,
            similarity=similarity,
            target=target,
            filter=filter,
            score_threshold=score_threshold,
            score_key=score_key,
            relevance_score_fn=relevance_score_fn,
            index=index,
            embed_keys=embed_keys,
            lift=lift,
            fetch_k=fetch_k,
        )

    # Documents

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, or update documents with existing ids, and return the ids.

        Args:
            documents: The documents, which are copied. Either all of them are added or none.
            ids: Ids that replace the ids of the documents. The default id is a hash of the text and
                the metadata.
            batch_size: An argument that LangChain's ``index()`` passes. It is ignored, because all
                documents are added together.
            **kwargs: Only ``current_time`` is accepted, because LangChain's time-weighted retriever
                passes it. The metadata of its documents already contains the time.

        Raises:
            EmbeddingError: If the embedding model fails. In this case, no document is added.
            TypeError: If an argument is unknown.
            ValueError: If the numbers of documents and ids differ, or two documents have the same
                id.
        """
        check_names("add_documents", kwargs, ("current_time",))
        keys = document_keys(self.retriever, self.graph)
        return put_documents(self.graph, documents, ids, embed_keys=keys)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts as documents, and return their ids. See ``add_documents``."""
        return self.add_documents(text_documents(texts, metadatas), ids=ids, **kwargs)

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their derived nodes. Unknown ids are ignored.

        Raises:
            ValueError: If ``ids`` is None, or if an id belongs to a derived node.
        """
        check_names("delete", kwargs, ())
        return remove_documents(self.graph, ids)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the nodes with the given ids as documents, in the order of the ids.

        Unknown ids are ignored.
        """
        return [to_document(node) for node in self.graph.reader.existing_nodes(ids)]

    # Searches. LangChain implements the remaining async methods by running the sync methods in a
    # thread.

    @explain_names
    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Return the most similar documents with their scores. Higher scores are better.

        Args:
            query: The query. A blank query lists all documents, or all documents that match the
                filter.
            k: The maximum number of documents.
            filter: Conditions on metadata, which are checked before ranking.
        """
        filters = _listing_filters(query, filter)
        return self._scored(self.retriever.retrieve(query, top_k=k, filters=filters))

    @explain_names
    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Async version of ``similarity_search_with_score``."""
        filters = _listing_filters(query, filter)
        results = await self.retriever.aretrieve(query, top_k=k, filters=filters)
        return await asyncio.to_thread(self._scored, results)

    @explain_names
    def similarity_search(  # type: ignore[override]
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None
    ) -> list[Document]:
        """Return the most similar documents, best first. See ``similarity_search_with_score``."""
        return _documents(self.similarity_search_with_score(query, k, filter=filter))

    @explain_names
    async def asimilarity_search(  # type: ignore[override]
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None
    ) -> list[Document]:
        """Async version of ``similarity_search``."""
        return _documents(await self.asimilarity_search_with_score(query, k, filter=filter))

    @explain_names
    def similarity_search_by_vector(  # type: ignore[override]
        self,
        embedding: Sequence[float],
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        """Return the documents that are most similar to a vector, best first.

        Args:
            embedding: The vector.
            k: The maximum number of documents.
            filter: Conditions on metadata, which are checked before ranking.
        """
        return _documents(self._scored(self._nearest(embedding, k, filter)))

    @explain_names
    def max_marginal_relevance_search(  # type: ignore[override]
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        """Return documents that are similar to a query but different from each other.

        Args:
            query: The query.
            k: The maximum number of documents.
            fetch_k: The number of most similar documents from which the result is selected.
            lambda_mult: The balance between similarity to the query (1) and diversity (0).
            filter: Conditions on metadata, which are checked before ranking.

        Raises:
            ValueError: If the store has no embedding model.
        """
        key = self._embed_key()
        if not query.strip():
            return self.similarity_search(query, k, filter=filter)
        vector = self.graph.embeddings.query_vectors([query], key)[0]
        search = self.max_marginal_relevance_search_by_vector
        return search(vector.tolist(), k, fetch_k, lambda_mult, filter=filter)

    @explain_names
    def max_marginal_relevance_search_by_vector(  # type: ignore[override]
        self,
        embedding: Sequence[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        """Return documents that are similar to a vector but different from each other.

        See ``max_marginal_relevance_search`` for the arguments.
        """
        results = self._nearest(embedding, max(k, fetch_k), filter)
        key = self._embed_key()
        matches = [result.evidence[0].node for result in results]
        vectors: Any = [match.embedding(key) for match in matches]
        positions = maximal_marginal_relevance(np.asarray(embedding), vectors, lambda_mult, k)
        return _documents(self._scored([results[at] for at in positions]))

    @explain_names
    def as_retriever(  # type: ignore[override]
        self,
        *,
        search_type: SearchType = "similarity",
        search_kwargs: Mapping[str, Any] | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> VectorStoreRetriever:
        """Return a LangChain retriever that searches this store.

        Args:
            search_type: ``"similarity"``, ``"mmr"`` or ``"similarity_score_threshold"``.
            search_kwargs: Arguments for each search: ``k``, ``filter``, ``score_threshold``,
                ``fetch_k`` and ``lambda_mult``. The filter is combined with the filter of each
                call.
            tags: The tags of the retriever's runs.
            metadata: The metadata of the retriever's runs.
            name: The name of the retriever's runs.

        Raises:
            TypeError: If an argument is unknown. For example, ``k`` must be given in
                ``search_kwargs``.
        """
        options = dict(search_kwargs or {})
        filters = as_filters(self.retriever.filters, options.pop("filter", None))
        bound = copy.copy(self)
        bound.retriever = self.retriever.with_filters(filters)
        return VectorStore.as_retriever(
            bound,
            search_type=search_type,
            search_kwargs=options,
            tags=tags,
            metadata=metadata,
            name=name,
        )

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        if self._relevance_score_fn is not None:
            return self._relevance_score_fn
        similarity = self.retriever.similarity
        if similarity.mode == "embedding" or self.retriever.score_range == (0.0, 1.0):
            return lambda score: min(1.0, max(0.0, score))
        if similarity.name == "bm25":
            return lambda score: score / (1 + score)
        raise ValueError(
            f"the range of {similarity.name!r} scores is unknown; pass relevance_score_fn="
        )

    def _embed_key(self) -> str:
        if not self.retriever.embed_keys:
            raise ValueError(
                f"a search by vector requires an embedding model and similarity='cosine', got "
                f"{self.retriever.similarity.name!r}"
            )
        return self.retriever.embed_keys[0]

    def _nearest(
        self, embedding: Sequence[float], k: int, filter: Mapping[str, Any] | None
    ) -> list[ScoredNode]:
        self._embed_key()
        filters = as_filters(filter)
        return self.retriever.search_vector("a vector", embedding, top_k=k, filters=filters)

    def _scored(self, results: Sequence[ScoredNode]) -> list[tuple[Document, float]]:
        return [(to_document(r, score_key=self._score_key), float(r.score)) for r in results]


def _documents(scored: Sequence[tuple[Document, float]]) -> list[Document]:
    return [document for document, _ in scored]


def _listing_filters(query: str, filter: Any) -> Filters | None:
    """Return the filter of a search, in which a blank query lists documents.

    A blank query without a filter lists all documents.
    """
    if filters := as_filters(filter):
        return filters
    return None if query.strip() else {DOCUMENT_ID: {"exists": True}}
