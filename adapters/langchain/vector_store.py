"""One group of a graph as a LangChain vector store."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from typing_extensions import Self

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.filters import DOCUMENT_ID, Filters
from ...retrievers.protocols import Similarity
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever
from ...retrievers.validation import parameters_of
from ..frameworks import check_names
from .documents import default_similarity, put_documents, text_documents, to_document
from .filter_translation import as_filters

_RETRIEVER = ("search_type", "search_kwargs", "tags", "metadata", "name")


class NodeGraphVectorStore(VectorStore):
    """A LangChain vector store over one group of a graph, for code that requires a vector store.

    For other code, ``NodeGraphRetriever`` searches better: by words, vectors and links.

    Documents are added. With a group below them, such as ``"MediumChunk"``, the nodes of this group
    are searched and returned, or their documents with ``target="ROOT"``. A changed document is
    updated in all groups. Texts are embedded at the first search, each once.

    Setup:
        ``pip install "nodekin[langchain]"``

    Key init args:
        embedding: The embedding model, for a new graph. Or a ``NodeGraph``; a graph without a model
            is searched by words.
        group: The group to search.
        similarity: As in ``Retriever``. None: ``"cosine"``, or ``"bm25"`` without a model.
        store: The path of a file for the new graph. None: in memory.
        filter: Conditions on metadata for all searches. Conditions of a search are added.
        score_key: The metadata field for scores. None: unchanged documents.
        relevance_score_fn: Converts a score to a number from 0 to 1. Defaults to the score
            itself for ``"cosine"``, and ``score / (1 + score)`` for ``"bm25"``.
        options: Other options of ``Retriever``, such as ``target`` and ``index``.

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
        TypeError: If ``embedding`` is neither a model nor a graph, or an argument is unknown.
        UnknownGroupError: If the graph has no group ``group``.
    """

    def __init__(
        self,
        embedding: object = None,
        group: str = ROOT,
        *,
        similarity: str | Similarity | None = None,
        store: str | Path | None = None,
        filter: Mapping[str, Any] | None = None,
        score_key: str | None = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        **options: Any,
    ) -> None:
        names = {*parameters_of(NodeGraphVectorStore.__init__), *parameters_of(Retriever.__init__)}
        check_names(type(self).__name__, options, names)
        if not isinstance(embedding, NodeGraph):
            embedding = NodeGraph(embed=embedding, store=store)
        elif store is not None:
            raise TypeError("store= is for a new graph; give it to NodeGraph(store=...)")
        self.graph: NodeGraph = embedding
        similarity = similarity or default_similarity(self.graph)
        filters = as_filters(filter)
        self.retriever = Retriever(self.graph, group, similarity, filters=filters, **options)
        self._score_key = score_key
        self._relevance_score_fn = relevance_score_fn

    @property
    def native_retriever(self) -> Retriever:
        """The nodekin retriever of the group."""
        return self.retriever

    @property
    def embeddings(self) -> Embeddings | None:
        """The LangChain model of the graph. None: no model, or a model of another kind."""
        keys = self.retriever.embed_keys
        embed = self.graph.embeddings.embedder(keys[0]).embed if keys else None
        model = getattr(embed, "__self__", None)
        return model if isinstance(model, Embeddings) else None

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: object = None,
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **options: Any,
    ) -> Self:
        """Create a vector store of texts. ``options`` are arguments of the class."""
        vector_store = cls(embedding, **options)
        vector_store.add_texts(texts, metadatas, ids=ids)
        return vector_store

    def save_local(self, folder_path: str | Path, index_name: str = "index") -> None:
        """Write the graph with all vectors to a file in a folder, as ``FAISS.save_local`` does."""
        if keys := self.retriever.embed_keys:
            self.graph.build(self.retriever.group, embed=keys)
        Path(folder_path).mkdir(parents=True, exist_ok=True)
        self.graph.reader.copy_to(Path(folder_path, f"{index_name}.nodekin"))

    @classmethod
    def load_local(
        cls,
        folder_path: str | Path,
        embedding: object = None,
        index_name: str = "index",
        **options: Any,
    ) -> Self:
        """Open the file of ``save_local``. Changes of the store are changes of the file.

        Args:
            folder_path: The folder.
            embedding: The embedding model.
            index_name: The name of the file without its suffix.
            **options: Arguments of the class. ``allow_dangerous_deserialization`` of FAISS is
                ignored, since nothing is unpickled.

        Raises:
            FileNotFoundError: If the folder has no such file.
        """
        path = Path(folder_path, f"{index_name}.nodekin")
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; pass a folder that save_local wrote")
        options.pop("allow_dangerous_deserialization", None)
        return cls(embedding, store=path, **options)

    # Documents

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, or update documents with an existing id, all or none. Return their ids.

        Args:
            documents: The documents. They are copied.
            ids: Ids instead of the documents' own. The default id is a hash of text and metadata.
            batch_size: An argument of ``index()``. Ignored: all documents are added together.
            **kwargs: Not allowed, except for ``current_time`` of LangChain's time-weighted
                retriever, whose documents have the time in their metadata.

        Raises:
            TypeError: If an argument is unknown.
            ValueError: If the numbers of documents and ids differ, or two documents have one id.
        """
        check_names("add_documents", kwargs, ("current_time",))
        return put_documents(self.graph, documents, ids)

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
        if ids is None:  # LangChain's interface allows it, for all documents
            raise ValueError("delete() requires the ids of the documents to remove, got None")
        nodes = self.graph.reader.existing_nodes(ids)
        for node in nodes:
            if node.group != ROOT:
                raise ValueError(
                    f"{node.id!r} is a node of the group {node.group!r}, derived from the document "
                    f"{node.document_id!r}; remove or change that document"
                )
        self.graph.remove([node.id for node in nodes])
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the existing nodes as documents, in the order of the ids."""
        return [to_document(node) for node in self.graph.reader.existing_nodes(ids)]

    # Searches. LangChain runs the sync methods in a thread for the other async methods.

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

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Async version of ``similarity_search_with_score``."""
        filters = _listing_filters(query, filter)
        results = await self.retriever.aretrieve(query, top_k=k, filters=filters)
        return await asyncio.to_thread(self._scored, results)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the best documents, best first. See ``similarity_search_with_score``."""
        return _documents(self.similarity_search_with_score(query, k, **kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Async version of ``similarity_search``."""
        return _documents(await self.asimilarity_search_with_score(query, k, **kwargs))

    def similarity_search_by_vector(
        self, embedding: Sequence[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the documents that are nearest to a vector. ``kwargs`` is the ``filter``."""
        return _documents(self._scored(self._nearest(embedding, k, **kwargs)))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return diverse documents similar to a query.

        Args:
            query: The query.
            k: The maximum number of documents.
            fetch_k: The number of documents to select from.
            lambda_mult: 1: only similarity to the query counts. 0: only diversity counts.
            **kwargs: The ``filter``: conditions on metadata, checked before ranking.

        Raises:
            ValueError: If the store has no embedding model.
        """
        key = self._embed_key()
        if not query.strip():
            return self.similarity_search(query, k, **kwargs)
        vector = self.graph.embeddings.query_vectors([query], key)[0]
        search = self.max_marginal_relevance_search_by_vector
        return search(vector.tolist(), k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """Return diverse documents similar to a vector."""
        results = self._nearest(embedding, max(k, fetch_k), **kwargs)
        key, matches = self._embed_key(), [result.evidence[0].node for result in results]
        vectors: Any = [self.graph.embedding(match, key) for match in matches]
        positions = maximal_marginal_relevance(np.asarray(embedding), vectors, lambda_mult, k)
        return _documents(self._scored([results[at] for at in positions]))

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return a retriever. A call's filter is added to the filter in ``search_kwargs``.

        Args:
            **kwargs: ``search_type``, ``search_kwargs``, ``tags``, ``metadata`` and ``name``.

        Raises:
            TypeError: If an argument is unknown, such as ``k``, which LangChain ignores.
        """
        check_names("as_retriever", kwargs, _RETRIEVER)
        search_kwargs = dict(kwargs.get("search_kwargs") or {})
        filters = as_filters(self.retriever.filters, search_kwargs.pop("filter", None))
        bound = copy.copy(self)
        bound.retriever = self.retriever.with_filters(filters)
        return VectorStore.as_retriever(bound, **{**kwargs, "search_kwargs": search_kwargs})

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

    def _nearest(self, embedding: Sequence[float], k: int, filter: Any = None) -> list[ScoredNode]:
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
