"""Take a retriever of any framework as one of this package, wherever one is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...nodegraph.graph import NodeGraph
from .. import default_search
from ..protocols import RetrieverProtocol
from .foreign_retriever import (
    ConfiguredRetriever,
    ForeignRetriever,
    PushFilters,
    adapt_retriever,
    is_native,
)

FACE = "native_retriever"
"""The property of this package's classes in a framework that has what they are made of."""

_STORE_K = 4  # how many documents LangChain's vector stores return


def as_retriever(
    source: Any,
    what: str = "a retriever",
    *,
    name: str | None = None,
    score_key: str | None = "relevance_score",
    push_filters: PushFilters | None = None,
) -> RetrieverProtocol:
    """Return a retriever of any framework as a retriever of this package.

    Every retriever, strategy, fusion, reranker, router, reference and query engine that holds a
    retriever calls it: whatever it takes can be held as it is. Taken are

    - retrievers of this package, and their faces in LangChain and LlamaIndex: the retriever itself;
    - of LangChain: a retriever, a vector store, any other Runnable from a text to documents or an
      answer, a tool with one argument;
    - of LlamaIndex: a retriever, an index, a query engine, and the tools of these;
    - a function from a query to texts, mappings with a ``text``, documents, or an answer;
    - a ``NodeGraph``: a ``DefaultRetriever``, which answers with passages;
    - a ``QueryEngine``: its answer is the only result, with the evidence of its sources.

    They are known by their methods; no framework is imported. See ``ForeignRetriever`` for what
    becomes of scores, ``top_k`` and conditions.

    Args:
        source: The retriever.
        what: What errors call it.
        name: What evidence and traces call a retriever of another framework; None for the name of
            its class, or its own.
        score_key: The metadata field of documents that may have a score; None for none.
        push_filters: Returns the conditions of a call in the terms of a store: keywords for the
            search of a LangChain vector store (``{"filter": ...}``), ``{"filters":
            MetadataFilters(...)}`` for a LlamaIndex retriever or index; ``{}`` for what it can't
            say. It gets all conditions, a tenant's too, as one mapping of fields, further ones
            of the same field under ``"and"``. What comes back is checked in any case, so that it
            may say less than the conditions, never more.

    Raises:
        TypeError: If it is none of these, or conditions can't be pushed into it: one with
            conditions of its own, which would be replaced.

    Example:
        >>> from types import SimpleNamespace
        >>> documents = [SimpleNamespace(page_content=t, metadata={}, id=t) for t in ("Tea", "Tee")]
        >>> class Store:  # has the methods of LangChain's vector stores
        ...     def similarity_search_with_score(self, query, k=4):
        ...         return [(documents[0], 0.5), (documents[1], 0.25)][:k]
        ...     def similarity_search(self, query, k=4): ...
        ...     def as_retriever(self): ...
        >>> print(as_retriever(Store()).retrieve("tea?", top_k=1)[0].explain())
        0.5000    "Tea"
          0.5000    Store for "tea?": itself
    """
    ours = _ours(source)
    calls = adapt_retriever(source) if ours is None else None
    if push_filters is not None and (calls is None or calls.with_options is None):
        raise TypeError(
            "push_filters is for a vector store of LangChain, or a retriever or index of "
            f"LlamaIndex without conditions of its own, not for {source!r:.80}"
        )
    if ours is not None:
        return ours
    if calls is None:
        remedy = ""
        if isinstance(source, Mapping | list | tuple):
            remedy = (
                "; several with names go into SubQuestionRetriever, RouterRetriever or a fusion"
            )
        raise TypeError(
            f"{what} is an object with retrieve() and aretrieve() that take a query, top_k and "
            "filters, a function of a query, or a retriever, vector store, index or query "
            f"engine of LangChain or LlamaIndex, not {source!r:.80}{remedy}"
        )
    calls = calls if name is None else replace(calls, name=name)
    return ForeignRetriever(source, calls, score_key=score_key, push_filters=push_filters)


def _ours(source: Any) -> RetrieverProtocol | None:
    """Return a retriever of this package, that of its face elsewhere, or the one of a graph."""
    if hasattr(type(source), FACE):  # a Runnable around one may show the attributes of it, too
        native: RetrieverProtocol = getattr(source, FACE)
        return native
    if hasattr(type(getattr(source, "vectorstore", None)), FACE) and _only_searches(source):
        store, options = source.vectorstore, source.search_kwargs
        return ConfiguredRetriever(
            getattr(store, FACE),
            top_k=options.get("k", _STORE_K),
            filters=store.native_filters(options.get("filter")),
        )
    if isinstance(source, NodeGraph):
        return default_search.make_default(source)
    return source if is_native(source) else None


def _only_searches(source: Any) -> bool:
    """Return whether a retriever of LangChain does no more than to search its vector store."""
    kinds = ("k", "filter")
    return source.search_type == "similarity" and all(key in kinds for key in source.search_kwargs)
