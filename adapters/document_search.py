"""The search that a graph of documents gets where nothing else is asked for."""

from __future__ import annotations

from typing import Any

from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import ROOT
from ..retrievers.composite.default_retriever import DefaultRetriever
from ..retrievers.protocols import RetrieverProtocol
from ..retrievers.retriever import Retriever
from ..retrievers.similarities.registry import DEFAULT, get_similarity, with_index


def default_similarity(graph: NodeGraph) -> str:
    """Return what one group is searched by: meaning where the graph has a model, else words."""
    return "cosine" if graph.embeddings.embedders else "bm25"


def document_search(
    graph: NodeGraph,
    *,
    target: str | None = None,
    group: str | None = None,
    similarity: Any = None,
    **options: Any,
) -> RetrieverProtocol:
    """Return a ``DefaultRetriever`` of a graph's documents, or the one search that is named.

    A similarity of words takes the place of BM25, and embeddings are left out. A group, a
    similarity of embeddings, a least score or a way of lifting is one ``Retriever``: of the
    group, or of sentences.

    Args:
        graph: The node graph.
        target: The group to answer with; None for the documents.
        group: The group to search, alone.
        similarity: As in ``Retriever``.
        **options: The others of ``DefaultRetriever``, or of ``Retriever``.

    Raises:
        UnknownGroupError: If the graph has no such group.
        TypeError: If an option is unknown, or of the other kind of search.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is steamed. Black tea is fermented.", "Rivers run."])
        >>> (result,) = document_search(graph).retrieve("fermented")
        >>> result.node.text, result.evidence[0].node.text
        ('Green tea is steamed. Black tea is fermented.', 'Black tea is fermented.')
    """
    target = ROOT if target is None else target
    named = None if similarity is None else get_similarity(similarity)
    one = group is not None or not options.keys().isdisjoint(_OF_ONE)
    if not one and named is None:
        return DefaultRetriever(graph, target, **options)
    if not one and named is not None and named.mode == "text":
        words = with_index(named, options.pop("index", DEFAULT))
        return DefaultRetriever(graph, target, words=words, embed_keys=[], **options)
    if group is None:
        group = DefaultRetriever(graph, target).sentences
    return Retriever(graph, group, named or default_similarity(graph), target=target, **options)


_OF_ONE = frozenset({"similarity_cut_off", "lift"})
"""The options of ``Retriever`` that a fusion of several has not."""
