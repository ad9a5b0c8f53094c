"""The retriever of a vector store, which adds the filter of a call to its own."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever

from .filter_operators import merge_filters


class NodeGraphVectorStoreRetriever(VectorStoreRetriever):
    """Search a ``NodeGraphVectorStore``; ``as_retriever`` of the store makes it.

    The ``filter`` of a call is added to that of ``search_kwargs``, where LangChain's own class
    replaces it: a condition that was set holds for every call.
    """

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return super()._get_relevant_documents(
            query, run_manager=run_manager, **self._with_own_filter(kwargs)
        )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await super()._aget_relevant_documents(
            query, run_manager=run_manager, **self._with_own_filter(kwargs)
        )

    def _with_own_filter(self, options: dict[str, Any]) -> dict[str, Any]:
        if "filter" not in options:
            return options
        filter = merge_filters(self.search_kwargs.get("filter"), options["filter"])
        return {**options, "filter": filter}
