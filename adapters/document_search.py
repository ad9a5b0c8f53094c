"""The search that a graph of documents gets where nothing else is asked for."""

from __future__ import annotations

from typing import Any

from ..nodegraph import ROOT, NodeGraph, split_sentences
from ..retrievers import FusionRetriever, Retriever, RetrieverProtocol, get_similarity

SENTENCES = "sentence"
"""The group that is searched by default."""


def default_similarity(graph: NodeGraph) -> str:
    """Return what a graph is searched by: meaning where it has an embedding model, else words."""
    return "cosine" if graph.embeddings.embedders else "bm25"


def document_search(
    graph: NodeGraph,
    *,
    base: str = ROOT,
    group: str | None = None,
    target: str | None = None,
    similarity: Any = None,
    **options: Any,
) -> RetrieverProtocol:
    """Return a search of small nodes that answers with the documents of a graph.

    By default sentences are searched. A vector of a long text says less than those of its
    sentences. By words the documents themselves are searched, too, and the two are fused: better
    than either, for documents of one paragraph and of twenty.

    Args:
        graph: The node graph; a group ``"sentence"`` is declared where it has none.
        base: The group that takes the place of the documents: its nodes are the results.
        group: The group to search instead; it is searched alone.
        target: The group to answer with; None for the documents (``base``).
        similarity: As in ``Retriever``; None for meaning where the graph has an embedding model,
            else for words.
        **options: The others of ``Retriever``.

    Raises:
        UnknownGroupError: If the graph has no such group.
        TypeError: If an option is unknown.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is steamed. Black tea is fermented.", "Rivers run."])
        >>> (result,) = document_search(graph).retrieve("fermented")
        >>> result.node.text, result.evidence[0].node.text
        ('Green tea is steamed. Black tea is fermented.', 'Black tea is fermented.')
    """
    similarity = get_similarity(default_similarity(graph) if similarity is None else similarity)
    options |= {"similarity": similarity, "target": base if target is None else target}
    if group is not None:
        return Retriever(graph, group, **options)
    if SENTENCES not in graph.groups:
        graph.create_node_group(SENTENCES, split_sentences, parent=base)
    sentences = Retriever(graph, SENTENCES, **options)
    if target is not None or similarity.mode == "embedding":
        return sentences
    top_k, sentences.top_k = sentences.top_k, max(sentences.top_k, _DEPTH)
    documents = Retriever(graph, base, **{**options, "top_k": sentences.top_k})
    return FusionRetriever([sentences, documents], mode="relative", top_k=top_k)


_DEPTH = 10
"""How many results of each are fused at least; the figures in the README are of as many."""
