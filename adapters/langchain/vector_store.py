"""Use one group of a graph as a LangChain vector store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.passage_vectors import embed_ahead
from ...nodegraph.node import ROOT
from ...retrievers.filters import Filters
from ...retrievers.indexes.exact_index import Exact
from ...retrievers.plans.effects import find_one
from ...retrievers.plans.plan import Do, arun, run
from ...retrievers.protocols import Similarity
from ...retrievers.ranking import maximal_marginal_relevance
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever, RetrieverSettings
from ...retrievers.similarities.bm25 import Bm25
from ...retrievers.similarities.registry import DEFAULT, Cosine, MakeIndex
from ..frameworks import default_similarity
from .documents import (
    Details,
    check_count,
    check_kwargs,
    delete_documents,
    existing_nodes,
    put_documents,
    text_documents,
    to_document,
)
from .filter_translation import as_filters, listing, merge_filters

if TYPE_CHECKING:
    from typing_extensions import Unpack


class NodeGraphVectorStoreRetriever(VectorStoreRetriever):
    """Search a ``NodeGraphVectorStore``. ``as_retriever`` of the store makes it.

    The ``filter`` of a call is added to that of ``search_kwargs``, where LangChain's own class
    replaces it: a condition that was set holds for every call.
    """

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return super()._get_relevant_documents(
            query, run_manager=run_manager, **self._with_filter(kwargs)
        )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await super()._aget_relevant_documents(
            query, run_manager=run_manager, **self._with_filter(kwargs)
        )

    def _with_filter(self, options: dict[str, Any]) -> dict[str, Any]:
        if "filter" not in options:
            return options
        filter = merge_filters(self.search_kwargs.get("filter"), options["filter"])
        return {**options, "filter": filter}


StoreT = TypeVar("StoreT", bound="NodeGraphVectorStore")


_SEARCH = ("k", "filter")

_IN_A_FILE = (
    "a graph is kept in its file while it is used: NodeGraphVectorStore.from_documents(documents, "
    'embedding, store="corpus.nodekin"); the same line with [] opens it again'
)


class StoreOptions(TypedDict, total=False):
    """Arguments of a ``NodeGraphVectorStore``, to type ``**kwargs``. See there."""

    group: str
    similarity: str | Similarity | None
    target: str | None
    embed_key: str | None
    index: str | MakeIndex
    filter: Filters | None
    details: Details
    relevance_score_fn: Callable[[float], float] | None


_FIRST_LINE = ("ids", "store", *StoreOptions.__annotations__)

_DIVERSE = ("k", "fetch_k", "lambda_mult", "filter")
_RETRIEVER = ("search_type", "search_kwargs", "tags", "metadata", "name")


class NodeGraphVectorStore(VectorStore):
    """Give one group of a graph to code that requires a LangChain vector store.

    Choose ``NodeGraphRetriever`` for chains of your own: it takes any retriever, returns the
    evidence and traces its stages. This class is for code that requires a ``VectorStore``.

    Documents are added. With a group below them (``"MediumChunk"``, or one of your own) the
    nodes of that group are searched and returned, or with ``target="ROOT"`` their documents. A
    document with an existing id is updated in all groups and indexes. A deleted one is removed
    from all. Nothing is embedded before the first search, and no text twice.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``.

    Key init args:
        graph: The node graph. With an embedding model for search by meaning. One without is
            searched by its words. Or the embedding model, for a new graph.
        group: The group to search.
        similarity: As in ``Retriever``. None for ``"cosine"`` where the graph has an
            embedding model, else ``"bm25"``.
        target: The group to answer with. None for the group itself.
        embed_key: Which of the graph's embeddings, where it has several.
        index: As in ``Retriever``.
        filter: Conditions on metadata for all searches. Those of a search are added.
        details: What the metadata of a document has besides its own fields. See
            ``NodeGraphRetriever``. By default documents come back as they were added.
        relevance_score_fn: Turns a score into a number from 0 to 1. By default a negative cosine
            becomes 0, and a BM25 score ``score / (1 + score)``.

    Instantiate:
        >>> def letters(texts):
        ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
        >>> store = NodeGraphVectorStore(NodeGraph(embed=letters))

        ``NodeGraphVectorStore(embedding)`` is a new one of a LangChain model, in memory.

    Usage:
        >>> store.add_documents([Document("banana", id="1"), Document("lemon tree", id="2")])
        ['1', '2']
        >>> [document.id for document in store.similarity_search("papaya", k=1)]
        ['1']
        >>> store.delete(["1"])
        True
        >>> store.get_by_ids(["1", "2"])
        [Document(id='2', metadata={}, page_content='lemon tree')]

    Use within a chain:
        >>> retriever = store.as_retriever(search_kwargs={"k": 1})
        >>> retriever.invoke("melon")
        [Document(id='2', metadata={}, page_content='lemon tree')]

    Raises:
        TypeError: If ``graph`` is no ``NodeGraph`` and no embedding model.
        UnknownGroupError: If the graph has no such group.
        ValueError: If the similarity compares embeddings and the graph has none.
    """

    def __init__(
        self,
        graph: NodeGraph | Embeddings,
        group: str = ROOT,
        *,
        similarity: str | Similarity | None = None,
        target: str | None = None,
        embed_key: str | None = None,
        index: str | MakeIndex = DEFAULT,
        filter: Filters | None = None,
        details: Details = False,
        relevance_score_fn: Callable[[float], float] | None = None,
    ) -> None:
        if isinstance(graph, Embeddings):
            graph = NodeGraph(embed=graph)
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph or an embedding model, not {graph!r:.80}")
        if similarity is None:
            similarity = default_similarity(graph)
        self.graph = graph
        keys = None if embed_key is None else [embed_key]
        self.retriever = Retriever(
            graph,
            group,
            similarity,
            target=target,
            index=index,
            filters=as_filters(filter),
            settings=RetrieverSettings(embed_keys=keys),
        )
        self._key = embed_key
        self._details = details
        self._relevance_score_fn = relevance_score_fn

    @staticmethod
    def native_filters(filter: Any) -> Filters | None:
        """Return what a search of this store takes as a filter in nodekin's own words."""
        return as_filters(filter)

    @property
    def native_retriever(self) -> Retriever:
        """The retriever that searches the group: what ``as_retriever`` returns."""
        return self.retriever

    @property
    def embeddings(self) -> Embeddings | None:
        """The LangChain model of the graph, None where it has none, or one of another kind."""
        if not self.graph.embeddings.embedders:
            return None
        embed = self.graph.embeddings.embedder(self._embed_key()).embed
        model = getattr(embed, "__self__", None)
        return model if isinstance(model, Embeddings) else None

    # Documents. LangChain runs these methods in a thread for their async ones.

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        current_time: datetime | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents, or update those whose id exists, all or none. Return their ids.

        Args:
            documents: They are copied, and never changed.
            ids: Instead of the documents' own. Without any, a document's id is a hash of its text
                and metadata, so that the same document added twice is one.
            batch_size: What ``index()`` passes. All documents are added together, whatever it is.
            current_time: What ``TimeWeightedVectorStoreRetriever`` passes on, whose documents
                have it in their metadata. Not used.
            **kwargs: None are allowed.

        Raises:
            TypeError: If there is an unknown argument.
            ValueError: If there are not as many ids as documents, or two documents have one id.
        """
        check_kwargs("add_documents", kwargs)
        return put_documents(self.graph, documents, ids)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, with their metadata and ids where there are any. See ``add_documents``."""
        return self.add_documents(text_documents(texts, metadatas), ids=ids, **kwargs)

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and the nodes below them. Ids that do not exist are skipped.

        Raises:
            ValueError: If no ids are given, or one is that of a node below a document.
        """
        check_kwargs("delete", kwargs)
        delete_documents(self.graph, ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the nodes that exist as documents, in the order of the ids, each once."""
        nodes = existing_nodes(self.graph, ids)
        return [to_document(node, details=self._details) for node in nodes]

    # Searches

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filters | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the best documents, best first, and their scores: higher is better.

        Args:
            query: A blank one lists all, or what meets the filter, in the order of the documents.
            k: How many at most, counted as they are returned.
            filter: Conditions on metadata, checked before ranking.
            **kwargs: None are allowed.
        """
        _check("similarity_search_with_score", kwargs, k)
        return self._with_scores(
            self.retriever.retrieve(query, top_k=k, filters=self._filters(query, filter))
        )

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filters | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Async version of ``similarity_search_with_score``, with the model's async method."""
        _check("asimilarity_search_with_score", kwargs, k)
        filters = self._filters(query, filter)
        results = await self.retriever.aretrieve(query, top_k=k, filters=filters)
        return await asyncio.to_thread(self._with_scores, results)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the best documents, best first."""
        check_kwargs("similarity_search", kwargs, _SEARCH)
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Async version of ``similarity_search``."""
        check_kwargs("asimilarity_search", kwargs, _SEARCH)
        scored = await self.asimilarity_search_with_score(query, k, **kwargs)
        return [document for document, _ in scored]

    def similarity_search_with_score_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        *,
        filter: Filters | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return the documents that are nearest to a vector of the graph's model, and scores."""
        _check("similarity_search_with_score_by_vector", kwargs, k)
        return self._with_scores(self._nearest(embedding, k, filter))

    def similarity_search_by_vector(
        self, embedding: Sequence[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the documents that are nearest to a vector of the graph's model."""
        check_kwargs("similarity_search_by_vector", kwargs, _SEARCH)
        scored = self.similarity_search_with_score_by_vector(embedding, k, **kwargs)
        return [document for document, _ in scored]

    async def asimilarity_search_by_vector(
        self, embedding: Sequence[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Async version of ``similarity_search_by_vector``."""
        return await embed_ahead(partial(self.similarity_search_by_vector, embedding, k, **kwargs))

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filters | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents that are similar to the query and differ from each other.

        Args:
            query: A blank one lists all, or what meets the filter, in the order of the documents.
            k: How many at most.
            fetch_k: How many to choose them from.
            lambda_mult: 1 for similarity to the query only, 0 for variety only.
            filter: Conditions on metadata, checked before ranking.
            **kwargs: None are allowed.

        Raises:
            ValueError: If the graph has no embeddings, which measure similarity.
        """
        _check("max_marginal_relevance_search", kwargs, k, _DIVERSE)
        return run(partial(self._search_diverse, query, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filters | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Async version of ``max_marginal_relevance_search``."""
        _check("amax_marginal_relevance_search", kwargs, k, _DIVERSE)
        return await arun(partial(self._search_diverse, query, k, fetch_k, lambda_mult, filter))

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filters | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents that are similar to a vector and differ from each other."""
        _check("max_marginal_relevance_search_by_vector", kwargs, k, _DIVERSE)
        results = self._nearest(embedding, max(k, fetch_k), filter)
        return self._diverse(embedding, results, k, lambda_mult) if results else []

    def as_retriever(self, **kwargs: Any) -> NodeGraphVectorStoreRetriever:
        """Return a retriever of the store, to which a call's ``filter`` is added.

        Args:
            **kwargs: ``search_type``, ``search_kwargs`` (``{"k": 4, "filter": ...}``), ``tags``,
                ``metadata`` and ``name``, as in LangChain.

        Raises:
            TypeError: If there is an unknown argument, such as ``k``, which LangChain ignores.
        """
        check_kwargs("as_retriever", kwargs, _RETRIEVER)
        value_ids = kwargs.pop("tags", None) or [*self._get_retriever_tags()]
        return NodeGraphVectorStoreRetriever(vectorstore=self, tags=value_ids, **kwargs)

    def save_local(self, *args: Any, **kwargs: Any) -> None:
        """Say what to write: a graph is in its file from the beginning."""
        raise NotImplementedError(_IN_A_FILE)

    @classmethod
    def load_local(cls, *args: Any, **kwargs: Any) -> None:
        """Say what to write: a file is opened by ``store=``."""
        raise NotImplementedError(_IN_A_FILE)

    @classmethod
    def from_texts(  # type: ignore[override]  # LangChain's has **kwargs: Any
        cls: type[StoreT],
        texts: Iterable[str],
        embedding: Embeddings | None = None,
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        **kwargs: Unpack[StoreOptions],
    ) -> StoreT:
        """Create a graph of texts, and its vector store.

        Args:
            texts: The texts.
            embedding: The embedding model. None for a store that is searched by words.
            metadatas: One for each text.
            ids: One for each text.
            store: The path of a file to store the graph in. Memory by default.
            **kwargs: Arguments of the class: ``group``, ``target`` and others.

        Raises:
            TypeError: If there is an unknown argument, such as the place of another store.
        """
        cls._check_options("from_texts", kwargs)
        documents = text_documents(texts, metadatas)
        return cls.from_documents(documents, embedding, ids=ids, store=store, **kwargs)

    @classmethod
    def from_documents(  # type: ignore[override]
        cls: type[StoreT],
        documents: Iterable[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        **kwargs: Unpack[StoreOptions],
    ) -> StoreT:
        """Create a graph of documents, and its vector store.

        Args:
            documents: They are copied, and keep their ids.
            embedding: The embedding model. None for a store that is searched by words.
            ids: Instead of the documents' own.
            store: The path of a file to store the graph in. Memory by default.
            **kwargs: Arguments of the class: ``group``, ``target`` and others.
        """
        cls._check_options("from_documents", kwargs)
        vector_store = cls(NodeGraph(embed=embedding, store=store), **kwargs)
        vector_store.add_documents(documents, ids=ids)
        return vector_store

    @classmethod
    def _check_options(cls, method: str, options: Iterable[str]) -> None:
        if cls.__init__ is NodeGraphVectorStore.__init__:  # that of a subclass checks its own
            check_kwargs(method, options, _FIRST_LINE)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        if self._relevance_score_fn is not None:
            return self._relevance_score_fn
        similarity = self.retriever.similarity
        if isinstance(similarity, Cosine | Exact) or similarity.mode == "embedding":
            return lambda score: min(1.0, max(0.0, score))
        if isinstance(similarity, Bm25):
            return lambda score: score / (1 + score)
        raise ValueError(
            f"scores of the similarity {similarity.name!r} have no known range; give "
            "NodeGraphVectorStore(..., relevance_score_fn=...), which makes them 0 to 1"
        )

    def _filters(self, query: str, filter: Any) -> Filters | None:
        return listing(self.retriever, query, as_filters(filter))

    def _embed_key(self) -> str:
        if not self.graph.embeddings.embedders:
            raise ValueError(
                "the graph has no embeddings, by which likeness is measured; give it a model: "
                "NodeGraph(..., embed=...)"
            )
        return self.graph.embeddings.key(self._key)

    def _nearest(
        self, embedding: Sequence[float], k: int, filter: Filters | None
    ) -> list[ScoredNode]:
        """Search for a vector instead of a query."""
        self._embed_key()  # there has to be one
        retriever = self.retriever
        if retriever.similarity.mode != "embedding":
            raise ValueError(
                f"the store is searched by {retriever.similarity.name!r}, which compares texts; "
                'a vector is searched for with similarity="cosine"'
            )
        return retriever.batch_vectors(
            ["a vector"], lambda graph, key: [embedding], top_k=k, filters=as_filters(filter)
        )[0]

    async def _search_diverse(
        self, query: str, k: int, fetch_k: int, lambda_mult: float, filter: Filters | None
    ) -> list[Document]:
        embeddings, retriever, key = self.graph.embeddings, self.retriever, self._embed_key()
        results = await find_one(retriever, query, max(k, fetch_k), self._filters(query, filter))
        if not results or not query.strip():
            return [document for document, _ in self._with_scores(results[:k])]
        (vector,) = await Do(
            partial(embeddings.query_vectors, [query], key),
            partial(embeddings.aquery_vectors, [query], key),
        )
        return await Do(partial(self._diverse, vector, results, k, lambda_mult))

    def _diverse(
        self, vector: Any, results: Sequence[ScoredNode], k: int, lambda_mult: float
    ) -> list[Document]:
        """Choose among results by the nodes that matched, which may be below them."""
        matches = [result.evidence[0] if result.evidence else result for result in results]
        texts = self.graph.reader.searched_texts([match.node for match in matches])
        vectors = self.graph.embeddings.vectors(texts, self._embed_key())
        positions = maximal_marginal_relevance(vector, vectors, k, lambda_mult)
        return [document for document, _ in self._with_scores(results[at] for at in positions)]

    def _with_scores(self, results: Iterable[ScoredNode]) -> list[tuple[Document, float]]:
        return [
            (to_document(result, details=self._details), float(result.score)) for result in results
        ]


def _check(method: str, kwargs: Iterable[str], k: int, allowed: Collection[str] = _SEARCH) -> None:
    check_kwargs(method, kwargs, allowed)
    check_count("k", k)
