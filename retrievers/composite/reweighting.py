"""Other weights for a fusion, for one call, wherever in a retriever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base_retriever import inner_retrievers
from ..protocols import RetrieverProtocol


def with_weights(retriever: RetrieverProtocol, weights: Sequence[float]) -> RetrieverProtocol:
    """Return a copy of a retriever, in which the one fusion has other weights; it costs nothing.

    The fusion is the retriever itself, or the outermost one within: in a reranker, a strategy, a
    restriction. A ``DefaultRetriever`` is one of the words of sentences, those of its
    targets, and each embedding.

    Args:
        retriever: Any retriever; it is not changed.
        weights: The weight of each retriever that is fused.

    Raises:
        TypeError: If there is no fusion, or a weight is no number.
        ValueError: If there are several of which none is within another, or the weights are not
            as many as the retrievers, below 0, or all 0.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import FusionRetriever, RerankRetriever, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Green, green leaves."])
        >>> words, exact = Retriever(graph, "ROOT"), Retriever(graph, "ROOT", index="map")
        >>> fusion = FusionRetriever([words, exact])
        >>> reranked = RerankRetriever(fusion, "ModuleReranker", model=lambda q, t: [1.0] * len(t))
        >>> with_weights(reranked, [1, 0]).retrieve("tea")[0].node.text
        'Green tea.'
    """
    paths = _paths(retriever, (), ())
    if not paths:
        raise TypeError(
            f"weights are for a FusionRetriever or a DefaultRetriever, and there is none in "
            f"{retriever!r:.120}; leave them out"
        )
    if len(paths) > 1:
        names = [".".join(path) for path in paths]
        raise ValueError(
            f"weights are for one fusion, and {retriever!r:.120} has {len(paths)}, {names}; set "
            "those of each where it is made"
        )
    return _replaced(retriever, paths[0], weights)


def _paths(
    retriever: Any, path: tuple[str, ...], holders: tuple[object, ...]
) -> list[tuple[str, ...]]:
    """Return the names that lead to the outermost fusions."""
    if hasattr(type(retriever), "with_weights"):
        return [path]
    if any(retriever is holder for holder in holders) or not hasattr(
        type(retriever), "with_inner_retrievers"
    ):  # a node may refer back to a retriever that holds it
        return []
    inner = inner_retrievers(retriever)
    return [p for name, one in inner for p in _paths(one, (*path, name), (*holders, retriever))]


def _replaced(retriever: Any, path: Sequence[str], weights: Sequence[float]) -> RetrieverProtocol:
    if not path:
        changed: RetrieverProtocol = retriever.with_weights(weights)
        return changed
    name, *rest = path
    inner = dict(inner_retrievers(retriever))[name]
    copied: RetrieverProtocol = retriever.with_inner_retrievers(
        {name: _replaced(inner, rest, weights)}
    )
    return copied
