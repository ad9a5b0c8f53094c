"""Convert retrievers of any framework to retrievers of this package."""

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
"""The property of framework adapter classes that returns the wrapped native retriever."""

_STORE_K = 4  # LangChain's default number of results


def as_retriever(
    source: Any,
    what: str = "a retriever",
    *,
    name: str | None = None,
    score_key: str | None = "relevance_score",
    push_filters: PushFilters | None = None,
) -> RetrieverProtocol:
    """Convert a retriever of any framework to a retriever of this package.

    Every class with an inner retriever calls this function and accepts:

    - a retriever of this package, or an adapter around such a retriever: the retriever itself;
    - a LangChain retriever;
    - a LlamaIndex retriever;
    - a function from a query to texts, mappings with a ``text``, documents, pairs of a document
      and a score, or an answer; a parameter ``k`` or ``top_k`` receives the number of results;
    - a ``NodeGraph``: a ``DefaultRetriever``;
    - a ``QueryEngine``: the answer is the only result, with the evidence of its sources.

    Wrap anything else (a vector store, a chain, a tool, a query engine) in a function. No
    framework is imported. See ``ForeignRetriever`` for scores, ``top_k`` and conditions.

    Args:
        source: The retriever.
        what: The description of the source in errors.
        name: The name of a foreign retriever in evidence and traces. Defaults to its own name or
            the name of its class.
        score_key: The metadata field of documents with a score. None: no field.
        push_filters: A function from conditions to search options of the store:
            ``{"filter": ...}`` for a LangChain retriever over a vector store, ``{"filters":
            MetadataFilters(...)}`` for a LlamaIndex retriever; ``{}`` if the store can't express
            the conditions. The function receives all conditions, including the conditions of a
            restriction, as one mapping of fields. Further conditions on a field are under
            ``"and"``. Results are checked again, so the options may be weaker than the conditions.

    Raises:
        TypeError: If the source has none of these types, or does not accept pushed conditions. A
            retriever with its own conditions is rejected, because pushed conditions would replace
            them.

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
    """Return the native retriever of a source: itself, its adapter's or its graph's retriever."""
    if hasattr(type(source), FACE):  # a Runnable may forward attributes of its inner object
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
    """Return whether a LangChain retriever only searches its vector store."""
    kinds = ("k", "filter")
    return source.search_type == "similarity" and all(key in kinds for key in source.search_kwargs)
