"""A retriever that implements the query modes of LlamaIndex vector stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.filters import DOCUMENT_ID, Filters
from ...retrievers.plans.effects import find_one
from ...retrievers.plans.plan import Do, gather
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.ranking import fuse
from ...retrievers.results import Results
from ...retrievers.retriever import Retriever
from ...retrievers.similarities.registry import DEFAULT, MakeIndex
from ...retrievers.tracing import start_span
from ...retrievers.validation import number

MODES = ("default", "text_search", "sparse", "hybrid", "mmr")

_WORDS = ("text_search", "sparse")

_CANDIDATES = 2_000  # number of nearest nodes from which the mode "mmr" selects

_FUSED = 32  # minimum number of results of each search that the mode "hybrid" combines


class QueryModeRetriever(BaseRetriever):
    """A retriever for one of the query modes that LlamaIndex defines for vector stores.

    - ``"default"``: the cosine of vectors.
    - ``"text_search"`` and ``"sparse"``: words, using BM25.
    - ``"hybrid"``: words and vectors, fused by their relative scores. Without ``alpha``, the
      default search is used.
    - ``"mmr"``: diverse nodes, using LlamaIndex's maximal marginal relevance among the 2,000
      nearest nodes. Results are in the order of their selection.

    If the graph has no embedding model, all modes search words.

    Args:
        graph: The graph, whose documents are searched.
        default: The default search, which is used for ``"hybrid"`` without ``alpha``.
        mode: The query mode.
        top_k: The maximum number of results.
        alpha: The weight of vectors in the mode ``"hybrid"``, from 0 to 1. The weight of words is
            ``1 - alpha``.
        mmr_threshold: The balance between relevance (1) and diversity (0) in the mode ``"mmr"``.
            Defaults to 0.5.
        sparse_top_k: The number of results of the word search that ``"hybrid"`` combines with the
            vector search.
        hybrid_top_k: The number of results of ``"hybrid"``. Defaults to ``top_k``.
        index: The vector index, as in ``Retriever``.

    Raises:
        ValueError: If the mode is unknown, or a number is out of range.
    """

    name = "query mode"

    def __init__(
        self,
        graph: NodeGraph,
        default: RetrieverProtocol,
        mode: VectorStoreQueryMode | str,
        *,
        top_k: int,
        alpha: float | None = None,
        mmr_threshold: float | None = None,
        sparse_top_k: int | None = None,
        hybrid_top_k: int | None = None,
        index: str | MakeIndex = DEFAULT,
    ) -> None:
        super().__init__(top_k=top_k)
        self.mode = getattr(mode, "value", mode)
        if self.mode not in MODES:
            raise ValueError(
                f"vector_store_query_mode must be one of {', '.join(MODES)}, got {self.mode!r:.80}"
            )
        self.alpha = _share(alpha, "alpha")
        self.mmr_threshold = _share(mmr_threshold, "mmr_threshold")
        self.sparse_top_k = sparse_top_k
        self.hybrid_top_k = hybrid_top_k
        self._graph = graph
        self._default = default
        self._words = Retriever(graph, ROOT, "bm25")
        self._keys = list(graph.embeddings.embedders)[:1]
        self._nearest = self._words
        if self._keys:
            self._nearest = Retriever(graph, ROOT, "cosine", embed_keys=self._keys, index=index)

    def __repr__(self) -> str:
        return f"QueryModeRetriever({self.mode!r})"

    @property
    def is_ranked_by_score(self) -> bool:
        """Whether the results are sorted by score."""
        return self.mode != "mmr"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results for each query."""
        with start_span(self.name, mode=self.mode, queries=queries) as span:
            results = await gather(
                [partial(self._found, query, limit, filters) for query in queries]
            )
            span.set_results(results)
        return results

    async def _found(self, query: str, limit: int | None, filters: Filters | None) -> Results:
        if not query.strip():
            return []
        if self._uses_default_search:
            return await find_one(self._default, query, self._limit(limit), filters)
        return await Do(partial(self.search, query, None, limit, filters), kind="work")

    def search(
        self,
        query: str,
        vector: Sequence[float] | None,
        limit: int | None,
        filters: Filters | None,
    ) -> Results:
        """Return the results for a query.

        Args:
            query: The text of the query. If both the text and the vector are missing, all nodes are
                listed.
            vector: The vector of the query. If it is None and the mode compares vectors, the vector
                is computed from the text.
            limit: The maximum number of results. Defaults to ``top_k``.
            filters: Conditions on metadata.
        """
        count = self._limit(limit)
        if vector is None and not query.strip():
            return self.listed(count, filters)
        if self.mode in _WORDS or not self._keys:
            return self._words.retrieve(query, top_k=count, filters=filters)
        if self._uses_default_search and query.strip():
            return self._default.retrieve(query, top_k=count, filters=filters)
        if vector is None:
            vector = self._graph.embeddings.query_vectors([query], self._keys[0])[0].tolist()
        if self.mode == "mmr":
            return self._diverse(query, vector, count, filters)
        if self.mode == "hybrid" and self.alpha is not None:
            return self._fused(query, vector, count, filters)
        return self._nearest.search_vector(query, vector, top_k=count, filters=filters)

    def listed(self, limit: int | None, filters: Filters | None) -> Results:
        """Return all nodes that match the filters, in document order."""
        conditions = filters or {DOCUMENT_ID: {"exists": True}}
        count = limit or max(1, len(self._graph.reader.document_ids()))
        return self._words.retrieve("", top_k=count, filters=conditions)

    @property
    def _uses_default_search(self) -> bool:
        return self.mode == "hybrid" and self.alpha is None and bool(self._keys)

    def _limit(self, limit: int | None) -> int:
        if limit is None:
            limit = self.top_k or 1
        if self.mode == "hybrid" and self.hybrid_top_k is not None:
            return self.hybrid_top_k
        return limit

    def _fused(
        self, query: str, vector: Sequence[float], count: int, filters: Filters | None
    ) -> Results:
        """Combine the results of a word search and a vector search, weighted by ``alpha``."""
        alpha = self.alpha or 0.0
        depth = max(count, _FUSED)
        nearest = self._nearest.search_vector(query, vector, top_k=depth, filters=filters)
        words = self._words.retrieve(query, top_k=self.sparse_top_k or depth, filters=filters)
        return fuse([words, nearest], "relative", [1 - alpha, alpha], top_k=count)

    def _diverse(
        self, query: str, vector: Sequence[float], count: int, filters: Filters | None
    ) -> Results:
        """Return diverse results, in the order in which they were selected."""
        candidates = max(count, _CANDIDATES)
        near = self._nearest.search_vector(query, vector, top_k=candidates, filters=filters)
        places = {node_id: at for at, node_id in enumerate(self._graph.reader.document_ids())}
        near.sort(key=lambda result: places.get(result.node.id, 0))
        texts = self._graph.reader.searched_texts([result.node for result in near])
        vectors = self._graph.embeddings.vectors(texts, self._keys[0])
        scores, positions = get_top_k_mmr_embeddings(
            [*vector],
            [*vectors],
            similarity_top_k=count,
            mmr_threshold=self.mmr_threshold,
        )
        chosen = zip(positions, scores, strict=True)
        return [replace(near[at], score=float(score)) for at, score in chosen]


def _share(value: float | None, name: str) -> float | None:
    """Check that a number is between 0 and 1, or None, and return it."""
    if value is None:
        return None
    share = number(value, name)
    if not 0 <= share <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
    return share
