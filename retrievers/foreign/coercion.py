"""Convert retrievers of any framework to retrievers of this package."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.model_objects import has
from .. import default_search
from ..protocols import RetrieverProtocol
from ..validation import takes_any_keyword
from .foreign_retriever import (
    ForeignRetriever,
    FunctionRetriever,
    LangChainRetriever,
    LlamaIndexRetriever,
    bound_retriever,
    parameters_of,
)

FACE = "native_retriever"
"""The property of framework adapter classes that returns the wrapped native retriever."""


def as_retriever(
    source: Any, what: str = "a retriever", *, name: str | None = None
) -> RetrieverProtocol:
    """Convert a retriever of any framework to a retriever of this package.

    Every class with an inner retriever calls this function and accepts:

    - a retriever of this package, or an adapter around such a retriever: the retriever itself;
    - a LangChain retriever;
    - a LlamaIndex retriever;
    - a function from a query to texts, mappings with a ``text``, documents, pairs of a document
      and a score, or an answer; a parameter ``k`` or ``top_k`` receives the number of results, and
      a parameter ``filters`` receives the conditions, which the function has to apply;
    - a ``NodeGraph``: a ``DefaultRetriever``;
    - a ``QueryEngine``: the answer is the only result, with the evidence of its sources.

    Wrap anything else (a vector store, a chain, a tool, a query engine) in a function. No
    framework is imported. See ``ForeignRetriever`` for scores, ``top_k`` and conditions.

    Args:
        source: The retriever.
        what: The description of the source in errors.
        name: The name of a foreign retriever in evidence and traces. Defaults to its own name or
            the name of its class.

    Raises:
        TypeError: If the source has none of these types.

    Example:
        >>> texts = {"Tea": 0.5, "Tee": 0.25}
        >>> def search(query: str, k: int = 4) -> list[tuple[str, float]]:
        ...     return [*texts.items()][:k]
        >>> print(as_retriever(search).retrieve("tea?", top_k=2)[0].explain())
        0.5000    "Tea"
          0.5000    search for "tea?": itself
    """
    retriever = _ours(source)
    if retriever is not None:
        return retriever
    if (foreign := _foreign_type(source)) is not None:
        return foreign(source, name or _name_of(source))
    remedy = "wrap anything else in a function: lambda query: ..."
    if isinstance(source, Mapping | list | tuple):
        remedy = "several with names go into SubQuestionRetriever, RouterRetriever or a fusion"
    raise TypeError(
        f"{what} must be an object with retrieve() and aretrieve() that take a query, top_k "
        "and filters, a retriever of LangChain or LlamaIndex, a function of a query, or a "
        f"NodeGraph, got {source!r:.80}; {remedy}"
    )


def _foreign_type(source: Any) -> type[ForeignRetriever] | None:
    """Return the class for a function or a supported retriever. None: unsupported."""
    if inspect.isclass(source):
        return None
    if inspect.isroutine(source) or isinstance(source, partial):
        return FunctionRetriever
    if has(source, "invoke", "ainvoke") and bound_retriever(source) is not None:
        return LangChainRetriever
    if has(source, "query", "aquery") and "filters" in parameters_of(source.query):
        return FunctionRetriever  # a query engine of this package
    return LlamaIndexRetriever if has(source, "retrieve", "aretrieve", "_retrieve") else None


def _name_of(source: Any) -> str:
    if has(source, "get_name"):  # LangChain
        return str(source.get_name())
    return getattr(source, "__name__", type(source).__name__)


def _is_native(source: Any) -> bool:
    """Return whether an object's retriever methods take ``top_k`` and ``filters``."""
    if inspect.isclass(source) or not has(source, "retrieve", "aretrieve"):
        return False
    methods = (source.retrieve, source.aretrieve)
    return all(
        {"top_k", "filters"} <= parameters_of(method).keys() or takes_any_keyword(method)
        for method in methods
    )


def _ours(source: Any) -> RetrieverProtocol | None:
    """Return the native retriever of a source: itself, its adapter's or its graph's retriever."""
    if hasattr(type(source), FACE):  # a Runnable may forward attributes of its inner object
        native: RetrieverProtocol = getattr(source, FACE)
        return native
    if isinstance(source, NodeGraph):
        return default_search.make_default(source)
    return source if _is_native(source) else None
