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

    Every class that holds a retriever calls this function, so the class takes each of:

    - a retriever of this package, or an adapter class around one: the retriever itself;
    - a LangChain retriever;
    - a LlamaIndex retriever;
    - a function from a query to texts, mappings with a ``text``, documents, pairs of a document
      and a score, or an answer; with a parameter ``k`` or ``top_k`` it gets the number of results;
    - a ``NodeGraph``: a ``DefaultRetriever``;
    - a ``QueryEngine``: the answer is the only result, with the evidence of its sources.

    Wrap anything else (a vector store, a chain, a tool, a query engine) in a function. No
    framework is imported. See ``ForeignRetriever`` for scores, ``top_k`` and conditions.

    Args:
        source: The retriever.
        what: What errors call it.
        name: What evidence and traces call a retriever of another framework; None for the name of
            its class, or its own.
        score_key: The metadata field of documents that may have a score; None for none.
        push_filters: A function from conditions to search options of the store:
            ``{"filter": ...}`` for a LangChain retriever over a vector store, ``{"filters":
            MetadataFilters(...)}`` for a LlamaIndex retriever; ``{}`` if the store can't express
            the conditions. The function gets all conditions, a tenant's too, as one mapping of
            fields; further conditions on the same field are under ``"and"``. Results are checked
            again, so the options may be weaker than the conditions.

    Raises:
        TypeError: If the source is none of these, or conditions can't be pushed into it. A
            retriever with its own conditions is refused, since they would be replaced.

    Example:
        >>> texts = {"Tea": 0.5, "Tee": 0.25}
        >>> def search(query: str, k: int = 4) -> list[tuple[str, float]]:
        ...     return [*texts.items()][:k]
        >>> print(as_retriever(search).retrieve("tea?", top_k=2)[0].explain())
        0.5000    "Tea"
          0.5000    search for "tea?": itself
    """
    ours = _ours(source)
    calls = adapt_retriever(source) if ours is None else None
    if push_filters is not None and (calls is None or calls.with_options is None):
        raise TypeError(
            "push_filters requires a LangChain retriever over a vector store or a LlamaIndex "
            f"retriever, without conditions of its own, got {source!r:.80}"
        )
    if ours is not None:
        return ours
    if calls is None:
        remedy = "wrap anything else in a function: lambda query: ..."
        if isinstance(source, Mapping | list | tuple):
            remedy = "several with names go into SubQuestionRetriever, RouterRetriever or a fusion"
        raise TypeError(
            f"{what} must be an object with retrieve() and aretrieve() that take a query, top_k "
            "and filters, a retriever of LangChain or LlamaIndex, a function of a query, or a "
            f"NodeGraph, got {source!r:.80}; {remedy}"
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
