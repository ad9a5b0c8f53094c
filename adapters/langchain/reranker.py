"""Use a nodekin reranker as a LangChain document compressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import ConfigDict, Field, SkipValidation

from ...nodegraph.errors import explain_names
from ...nodegraph.foreign_documents import as_document
from ...retrievers.protocols import RerankerProtocol
from ...retrievers.rerankers.reranker import Reranker
from ...retrievers.results import ScoredNode
from ..frameworks import check_names, node_of
from .callbacks import child_runs
from .documents import SCORE_KEY


class NodeGraphReranker(BaseDocumentCompressor):
    """A LangChain document compressor that reranks documents with a nodekin reranker.

    Setup:
        ``pip install "nodekin[langchain]"``

    Key init args:
        reranker: A ``Reranker``, the name of a reranker without required options, a function
            registered with ``@register_reranker``, or an object with ``name`` and ``rerank``.
        top_n: The maximum number of documents. Defaults to the reranker's ``top_k``.
        score_key: The metadata field for scores. It is read from the input documents and written to
            the returned documents. If None, scores are neither read nor written.

    Instantiate:
        >>> from langchain_core.documents import Document
        >>> from langchain_core.runnables import RunnableLambda
        >>> from nodekin.retrievers import Reranker
        >>> def relevance(query, texts):
        ...     return [float("green" in text) for text in texts]
        >>> model = Reranker("ModuleReranker", model=relevance)
        >>> reranker = NodeGraphReranker(model, top_n=1)

    Usage:
        >>> documents = [Document("black tea", id="1"), Document("green tea", id="2")]
        >>> reranker.compress_documents(documents, "Which is green?")
        [Document(id='2', metadata={'relevance_score': 1.0}, page_content='green tea')]

    Use within a chain:
        >>> step = RunnableLambda(lambda x: reranker.compress_documents(x["documents"], x["query"]))
        >>> [d.id for d in step.invoke({"query": "Which is green?", "documents": documents})]
        ['2']

        The reranker can also be the ``base_compressor`` of a ``ContextualCompressionRetriever``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    reranker: Annotated[Reranker, SkipValidation]
    top_n: int | None = Field(default=None, ge=1, strict=True)
    score_key: str | None = Field(default=SCORE_KEY, min_length=1)

    @explain_names
    def __init__(
        self,
        reranker: Reranker | RerankerProtocol | str | Callable[..., Any],
        *,
        top_n: int | None = None,
        score_key: str | None = SCORE_KEY,
        **data: Any,
    ) -> None:
        check_names(type(self).__name__, data, type(self).model_fields)
        if not isinstance(reranker, Reranker):
            reranker = Reranker(reranker)
        data["reranker"] = reranker
        data["top_n"] = top_n
        data["score_key"] = score_key
        super().__init__(**data)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Rerank documents, and return copies of the best documents, best first.

        Raises:
            RerankError: If the reranker fails.
        """
        inputs = {"query": query, "documents": list(documents)}
        return self._runnable.invoke(inputs, {"callbacks": callbacks})

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Async version of ``compress_documents``."""
        inputs = {"query": query, "documents": list(documents)}
        return await self._runnable.ainvoke(inputs, {"callbacks": callbacks})

    @property
    def _runnable(self) -> Runnable[dict[str, Any], list[Document]]:
        return RunnableLambda(self._rerank, self._arerank, name=type(self).__name__)

    def _rerank(self, inputs: dict[str, Any], config: RunnableConfig) -> list[Document]:
        given = self._candidates(inputs["documents"])
        with child_runs(config):
            results = self.reranker.rerank(given, inputs["query"], top_k=self.top_n)
        return self._documents(inputs["documents"], given, results)

    async def _arerank(self, inputs: dict[str, Any], config: RunnableConfig) -> list[Document]:
        given = self._candidates(inputs["documents"])
        with child_runs(config):
            results = await self.reranker.arerank(given, inputs["query"], top_k=self.top_n)
        return self._documents(inputs["documents"], given, results)

    def _candidates(self, documents: Sequence[Document]) -> list[ScoredNode]:
        """Convert the documents to search results whose ids are their positions in the list."""
        candidates = []
        for position, document in enumerate(documents):
            node = node_of(as_document(document.model_copy(update={"id": str(position)})))
            score: Any = document.metadata.get(self.score_key) if self.score_key else None
            is_number = isinstance(score, int | float)
            candidates.append(ScoredNode(node, float(score) if is_number else 0.0))
        return candidates

    def _documents(
        self,
        documents: Sequence[Document],
        candidates: Sequence[ScoredNode],
        results: Sequence[ScoredNode],
    ) -> list[Document]:
        """Return copies of the documents that were selected, with their new scores."""
        reranked = []
        for result in results:
            position = int(result.node.id)
            document = documents[position].model_copy(deep=True)
            is_scored = result.evidence or result.score != candidates[position].score
            if self.score_key is not None and is_scored:
                document.metadata[self.score_key] = float(result.score)
            reranked.append(document)
        return reranked
