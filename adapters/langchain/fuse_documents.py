"""Fuse lists of documents in a chain: the results of several queries or retrievers as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, Field

from ...retrievers.foreign.outputs import fuse_outputs
from .documents import Details, to_document

Mode: TypeAlias = Literal["rrf", "relative", "distribution", "concat"]


class FuseDocuments(RunnableSerializable[Any, list[Document]]):
    """Fuse lists of documents into one; see ``fuse_documents``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    mode: Mode = "rrf"
    weights: list[float] | None = None
    k: int | None = Field(default=None, ge=1, strict=True)
    rank_constant: float = Field(default=60, ge=0)
    merge_by: str | None = None
    details: Details = False

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """A step is configuration."""
        return True

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents of all lists, best first.

        Raises:
            TypeError: If the input is no list of lists of documents.
            ValueError: If there are not as many weights as lists.
        """
        return self._call_with_config(self._fuse, input, config, **kwargs)

    def _fuse(self, lists: Any) -> list[Document]:
        if isinstance(lists, Mapping):
            lists = list(lists.values())
        is_nested = isinstance(lists, Sequence) and not isinstance(lists, str)
        if not is_nested or any(isinstance(item, Document) for item in lists):
            raise TypeError(
                "fuse_documents takes lists of documents, what retriever.map() returns, or a "
                f"mapping to them, not {lists!r:.120}"
            )
        fused = fuse_outputs(
            [list(documents) for documents in lists],
            self.mode,
            self.weights,
            self.k,
            rank_constant=self.rank_constant,
            merge_by=self.merge_by,
        )
        return [to_document(result, details=self.details) for result in fused]


def fuse_documents(
    *,
    mode: Mode = "rrf",
    weights: Sequence[float] | None = None,
    k: int | None = None,
    merge_by: str | None = None,
    details: Details = False,
) -> FuseDocuments:
    """Return a step that fuses lists of documents: what ``retriever.map()`` ends in, as one list.

    A document is the same in two lists if its id is, or without an id its text and metadata.
    Documents come back as they were, each once. Choose ``FusionRetriever`` where the retrievers
    can be held: it queries them in parallel and keeps the evidence.

    Args:
        mode: ``"rrf"`` by ranks; ``"relative"``, ``"distribution"`` or ``"concat"`` by the
            documents' ``relevance_score``, by rank where they have none; see ``fuse``.
        weights: What each list counts; all the same by default.
        k: How many documents at most; None for all.
        merge_by: A metadata field by which documents are the same, in place of the id.
        details: Whether the metadata has the fused score; see ``to_document``.

    Raises:
        pydantic.ValidationError: If a mode is unknown or a number out of range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.runnables import RunnableLambda
        >>> from nodekin.adapters.langchain import decompose_query
        >>> texts = ["The Nile is long.", "The Amazon is long.", "Tea is a drink."]
        >>> documents = [Document(text, id=text.split()[1]) for text in texts]
        >>> retriever = RunnableLambda(
        ...     lambda query: [d for d in documents if d.id in query or "long" in d.page_content]
        ... )
        >>> model = FakeListChatModel(responses=["How long is the Nile?\\nHow long is the Amazon?"])
        >>> chain = decompose_query(model) | retriever.map() | fuse_documents(k=2)
        >>> [document.id for document in chain.invoke("Is the Nile longer than the Amazon?")]
        ['Nile', 'Amazon']

    Source:
        The reciprocal rank fusion of LangChain's RAG-Fusion template, which tells documents apart
        by their whole JSON.
    """
    return FuseDocuments(
        mode=mode,
        weights=None if weights is None else list(weights),
        k=k,
        merge_by=merge_by,
        details=details,
    )
