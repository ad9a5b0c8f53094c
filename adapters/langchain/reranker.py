"""Use any nodekin reranker as a LangChain document compressor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import ConfigDict, Field, SkipValidation, field_validator

from ...nodegraph.node import Node
from ...retrievers.protocols import RerankerProtocol
from ...retrievers.rerankers.reranker import Reranker
from ...retrievers.results import ScoredNode
from ..frameworks import evidence_dicts, input_positions, node_of
from .callbacks import achild_runs, child_runs
from .documents import ResultMetadata, from_document, nested_details

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RerankerFields(TypedDict, total=False):
    """Fields of a ``NodeGraphReranker``, to type ``**fields``. See there."""

    top_n: int | None
    score_key: str | None


class NodeGraphReranker(BaseDocumentCompressor):
    """Use any nodekin reranker in LangChain, for documents of any kind.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``.

    Key init args:
        reranker: A ``Reranker``, or its argument: a name that needs no options, a function
            below ``@register_reranker``, an object with ``name`` and ``rerank``.
        top_n: How many documents to return at most. None for the reranker's own ``top_k``.
        score_key: The metadata field for the score, a float, higher is better, of the
            input documents too. None leaves the metadata as it is.

    Instantiate:
        >>> def relevance(query, texts):
        ...     return [float("green" in text) for text in texts]
        >>> from nodekin.retrievers import Reranker
        >>> model = Reranker("ModuleReranker", model=relevance)
        >>> reranker = NodeGraphReranker(reranker=model, top_n=1)

    Usage:
        >>> documents = [Document("black tea", id="1"), Document("green tea", id="2")]
        >>> reranker.compress_documents(documents, "Which is green?")
        [Document(id='2', metadata={}, page_content='green tea')]

        Documents are copies, with all that they have. Only in those with nested details, of
        ``NodeGraphRetriever(details="nested")``, the reranker's score becomes the ``score``, and
        the first of the ``evidence``. A trace shows one run, with a child run for each span. A
        reranker that fails raises ``RerankError``.

    Use within a chain:
        >>> from langchain_core.runnables import RunnablePassthrough
        >>> chain = RunnablePassthrough.assign(
        ...     documents=lambda x: reranker.compress_documents(x["documents"], x["question"])
        ... )
        >>> output = chain.invoke({"question": "Which is green?", "documents": documents})
        >>> [document.id for document in output["documents"]]
        ['2']

        It is also what ``ContextualCompressionRetriever`` of ``langchain-classic`` takes.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    reranker: Annotated[Reranker, SkipValidation]
    """The reranker."""

    top_n: int | None = Field(default=None, ge=1, strict=True)
    """How many documents to return at most. None for the reranker's own ``top_k``."""

    score_key: str | None = Field(default=None, min_length=1)
    """The metadata field for the score. None leaves the metadata as it is."""

    def __init__(
        self,
        reranker: Reranker | RerankerProtocol | str | Callable[..., Any],
        **fields: Unpack[RerankerFields],
    ) -> None:
        values: dict[str, Any] = {"reranker": reranker, **fields}
        super().__init__(**values)

    @field_validator("reranker", mode="before")
    @classmethod
    def _check_reranker(cls, value: Any) -> Reranker:
        return value if isinstance(value, Reranker) else Reranker(value)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Return copies of the documents that stay, best first.

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

    def _rerank(self, inputs: dict[str, Any]) -> list[Document]:
        with child_runs():
            candidates = self._candidates(inputs["documents"])
            results = self.reranker.rerank(candidates, inputs["query"], top_k=self.top_n)
        return self._documents(inputs["documents"], candidates, results)

    async def _arerank(self, inputs: dict[str, Any]) -> list[Document]:
        documents = inputs["documents"]
        async with achild_runs():
            candidates = await asyncio.to_thread(self._candidates, documents)
            results = await self.reranker.arerank(candidates, inputs["query"], top_k=self.top_n)
        return await asyncio.to_thread(self._documents, documents, candidates, results)

    def _candidates(self, documents: Sequence[Document]) -> list[ScoredNode]:
        """Return documents as results, with the scores they have."""
        candidates = []
        for id, document in zip(_unique_ids(documents), documents, strict=True):
            source = from_document(document)
            node = source if isinstance(source, Node) else node_of(source)
            score = (nested_details(document) or {}).get("score")
            if self.score_key is not None:
                score = document.metadata.get(self.score_key, score)
            if not isinstance(score, int | float) or isinstance(score, bool):
                score = 0.0
            candidates.append(ScoredNode(replace(node, id=id), float(score)))
        return candidates

    def _documents(
        self,
        documents: Sequence[Document],
        candidates: Sequence[ScoredNode],
        results: Sequence[ScoredNode],
    ) -> list[Document]:
        """Return copies of the documents that stay, best first."""
        reranked = []
        for result, position in zip(results, input_positions(results, candidates), strict=True):
            if position is None:
                raise LookupError(
                    f"the reranker returned {result.node!r:.80}, which it was not given"
                )
            document = deepcopy(documents[position])
            if result.evidence or result.score != candidates[position].score:
                self._add_score(result, document)
            reranked.append(document)
        return reranked

    def _add_score(self, result: ScoredNode, document: Document) -> None:
        score = float(result.score)
        if details := nested_details(document):
            evidence = evidence_dicts(result)
            for match in evidence:  # a window of a passage has no id
                match["id"] = match["id"] and (document.id or "")
            details["evidence"][:0] = evidence
            details["score"] = score
        if self.score_key is not None:
            document.metadata = ResultMetadata(document.metadata, {self.score_key: score})


def _unique_ids(documents: Sequence[Document]) -> list[str]:
    """Return the documents' ids. New ones for those that have none or that of an earlier one."""
    existing = {document.id for document in documents}
    ids: dict[str, None] = {}
    for position, document in enumerate(documents):
        id = document.id or ""
        if not id or id in ids:
            id = next(name for n in count() if (name := f"{position}.{n}") not in existing)
        ids[id] = None
    return list(ids)
