"""Create the nodekin retriever that ``NodeGraphRetriever.from_graph`` uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.base_retriever import with_all_inner
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.composite.document_retriever import DocumentRetriever
from ...retrievers.protocols import RetrieverProtocol, Similarity
from ...retrievers.ranking import Lift
from ...retrievers.retriever import Retriever
from ...retrievers.similarities.registry import MakeIndex, get_similarity, has_other_index
from ..argument_types import Splitter
from .documents import default_similarity

TOP_K = 4  # the default of LangChain


def declare_group(
    graph: NodeGraph, name: str, splitter: Splitter | None, group: str | None, parent: str
) -> str | None:
    """Create a node group from a splitter, and return the name of the group to search.

    Without a splitter, the given group is returned.

    Raises:
        ValueError: If both a splitter and a group are given.
    """
    if splitter is None:
        return group
    if group is not None:
        raise ValueError(
            f"{name}_splitter cannot be combined with the group {group!r}; leave one out"
        )
    graph.create_node_group(name, splitter, parent=parent)
    return name


def required_keys(graph: NodeGraph) -> list[str] | None:
    """Return the keys of the embeddings that a default search needs, or None without a model.

    A search with these keys computes missing vectors first, as LangChain users expect.
    """
    return list(graph.embeddings.embedders) or None


def search_passages(graph: NodeGraph) -> RetrieverProtocol:
    """Return a retriever that searches the passages of a graph with the default strategy."""
    return DefaultRetriever(graph, embed_keys=required_keys(graph))


def document_keys(retriever: RetrieverProtocol, graph: NodeGraph) -> list[str]:
    """Return the keys of the embeddings with which a retriever compares whole documents.

    Retrievers with an external index are skipped, because the index embeds new documents itself.
    """
    keys: dict[str, None] = {}
    for inner in with_all_inner(retriever):
        if not isinstance(inner, Retriever) or has_other_index(inner.similarity):
            continue
        if inner.group == ROOT and graph in inner.graphs:
            keys.update(dict.fromkeys(inner.embed_keys))
    return list(keys)


def default_search(
    graph: NodeGraph, target: str, *, follow_links: bool | None, **options: Any
) -> RetrieverProtocol:
    """Create the default retriever of a graph."""
    options.setdefault("embed_keys", required_keys(graph))
    if follow_links is not None:
        options["follow_links"] = follow_links
    retriever = DefaultRetriever(graph, target, top_k=TOP_K, **options)
    if target != ROOT:
        return retriever
    return DocumentRetriever(retriever, graph, options)


def single_search(
    graph: NodeGraph,
    group: str | None,
    target: str,
    similarity: str | Similarity | None,
    *,
    lift: Lift | None,
    **options: Any,
) -> RetrieverProtocol:
    """Create a retriever that searches a single group.

    If no group is given, it searches the vectors of sentences or the words of documents.
    """
    if lift is not None:
        options["lift"] = lift
    chosen = get_similarity(similarity or default_similarity(graph))
    if group is None:
        by_meaning = chosen.mode == "embedding"
        group = DefaultRetriever(graph, target).sentences if by_meaning else target
    return Retriever(graph, group, chosen, target=target, top_k=TOP_K, **options)


def given_search(
    graph: NodeGraph,
    group: str | None,
    target: str,
    similarity: str | Similarity | None,
    *,
    follow_links: bool | None,
    lift: Lift | None,
    index: str | MakeIndex | None,
    embed_keys: Sequence[str] | None,
) -> RetrieverProtocol:
    """Create the retriever that the given options describe.

    Raises:
        TypeError: If an option is not supported by this kind of search.
    """
    options: dict[str, Any] = {}
    if index is not None:
        options["index"] = index
    if embed_keys is not None:
        options["embed_keys"] = embed_keys
    if group is None and similarity is None:
        if lift is not None:
            raise TypeError("lift= requires similarity=, group= or a splitter")
        return default_search(graph, target, follow_links=follow_links, **options)
    if follow_links is not None:
        raise TypeError(
            "follow_links= requires the default search; leave out similarity=, group= and splitters"
        )
    return single_search(graph, group, target, similarity, lift=lift, **options)
