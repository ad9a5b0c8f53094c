"""One group of a graph as a LangChain vector store."""

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
"""The kinds of search of LangChain's ``VectorStoreRetriever``."""


class NodeGraphVectorStore(VectorStore):
    """A LangChain vector store over one group of a graph, for code that requires a vector store.

    For other code, ``NodeGraphRetriever`` searches better, using words, vectors and links.

    By default, whole documents are searched. With a smaller ``group``, such as ``"MediumChunk"``,
    the nodes of this group are searched and returned, or their documents with ``target="ROOT"``. A
    changed document is updated in all groups. Documents are embedded when they are added, and nodes
    of other groups at the first search. Each text is embedded once.

    Setup:
        ``pip install "nodekin[langchain]"``

    Key init args:
        embedding: The embedding model. Without a model, words are searched. To use an existing
            graph, call ``NodeGraphVectorStore.from_graph(graph)``.
        group: The group to search.
        similarity: As in ``Retriever``. Defaults to ``"cosine"``, or to ``"bm25"`` without a model.
        store: The path of a file for the new graph. If None, the graph is in memory.
        filter: Conditions on metadata for all searches. The conditions of each search are added.
        score_key: The metadata field for scores. If None, documents are returned unchanged.
        relevance_score_fn: A function that converts a score to a number from 0 to 1. Defaults to
            the score itself for ``"cosine"``, and ``score / (1 + score)`` for ``"bm25"``.
        target: The group to return. Defaults to ``group``.
        score_threshold: The minimum score.
        index: The index of vectors, such as ``as_index(vector_store)``. Defaults to the built-in
            index.
        embed_keys: The keys of the embedding models to search with.
        lift: How the scores of hits in the same target are combined: ``"max"``, ``"sum"`` or
            ``"mean"``.
        fetch_k: The number of hits to consider before lifting. If None, as many as ``k`` documents
            require.

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
        TypeError: If ``embedding`` is not a model, or an argument is unknown.
        UnknownGroupError: If the graph has no group ``group``.
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
        """Create a vector store over a group of a graph. See the class for the other arguments.

        Args:
            graph: The graph. If it has no embedding model, words are searched.
            group: The group to search.
            similarity: The similarity.
            target: The group to return.
            filter: Conditions on metadata for all searches.
            score_threshold: The minimum score.
            score_key: The metadata field for scores.
            relevance_score_fn: A function that converts a score to a number from 0 to 1.
            index: The index of vectors.
            embed_keys: The keys of the embedding models.
            lift: How the scores of hits in the same target are combined.
            fetch_k: The number of hits to consider before lifting.

        Raises:
            TypeError: If ``graph`` is not a NodeGraph, or an argument is unknown.
            UnknownGroupError: If the graph has no group ``group``.

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
        """The nodekin retriever of the group."""
        return self.retriever

    @property
    def embeddings(self) -> Embeddings | None:
        """The graph's LangChain model, or None if it has no model or a different kind of model."""
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
        """Create a vector store for documents. See the class for the other arguments."""
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
        """Create a vector store for texts. See the class for the other arguments."""
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
        """Write the graph with all vectors to a file in a folder, as ``FAISS.save_local`` does."""
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
        """Open a file written by ``save_local``. Changes to the store are written to the file.

        ``index_name`` is the name of the file in the folder, without its suffix. FAISS's argument
        ``allow_dangerous_deserialization`` is ignored, since nothing is unpickled. See the class
        for the other arguments.

        Raises:
            FileNotFoundError: If the folder has no such file.
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
        """Add documents, or update those with an existing id. Return their ids.

        Args:
            documents: The documents. They are copied. Either all of them are added or none.
            ids: Ids that replace the documents' own ids. The default id is a hash of text and
                metadata.
            batch_size: An argument of ``index()``. It is ignored, since all documents are added
                together.
            **kwargs: Only ``current_time`` is allowed, which LangChain's time-weighted retriever
                passes. Its documents contain the time in their metadata.

        Raises:
            EmbeddingError: If the embedding model fails. No document is added.
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
        """Add texts. See ``add_documents``."""
        return self.add_documents(text_documents(texts, metadatas), ids=ids, **kwargs)

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their derived nodes. Unknown ids are skipped.

        Raises:
            ValueError: If ``ids`` is None, or an id belongs to a derived node.
        """
        check_names("delete", kwargs, ())
        return remove_documents(self.graph, ids)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the existing nodes as documents, in the order of the ids."""
        return [to_document(node) for node in self.graph.reader.existing_nodes(ids)]

    # Searches. LangChain runs the sync methods in a thread for the other async methods.

    @explain_names
    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Return the best documents with their scores. Higher scores are better.

        Args:
            query: A blank query lists all documents, or the documents that meet the filter.
            k: The maximum number of documents.
            filter: Conditions on metadata, checked before ranking.
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
        """Return the best documents, best first. See ``similarity_search_with_score``."""
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
        """Return the documents that are nearest to a vector.

        Args:
            embedding: The vector.
            k: The maximum number of documents.
            filter: Conditions on metadata, checked before ranking.
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
        """Return diverse documents similar to a query.

        Args:
            query: The query.
            k: The maximum number of documents.
            fetch_k: The number of documents to select from.
            lambda_mult: If 1, only similarity to the query counts. If 0, only diversity counts.
            filter: Conditions on metadata, checked before ranking.

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
        """Return diverse documents similar to a vector."""
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
        """Return a retriever. A call's filter is added to the filter in ``search_kwargs``.

        Args:
            search_type: ``"similarity"``, ``"mmr"`` or ``"similarity_score_threshold"``.
            search_kwargs: Arguments of each search: ``k``, ``filter``, ``score_threshold``,
                ``fetch_k`` and ``lambda_mult``.
            tags: The tags of the retriever's runs.
            metadata: The metadata of the retriever's runs.
            name: The name of the retriever's runs.

        Raises:
            TypeError: If an argument is unknown, such as ``k``, which belongs to ``search_kwargs``.
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
    """Return the filters of a search. A blank query without filters lists all documents."""
    if filters := as_filters(filter):
        return filters
    return None if query.strip() else {DOCUMENT_ID: {"exists": True}}
