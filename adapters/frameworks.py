"""Functions of both framework adapters: conversion of nodes and results, default search."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from functools import wraps
from typing import Any, TypeVar

from ..nodegraph.document import Document
from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import ROOT, Node
from ..retrievers.composite.default_retriever import DefaultRetriever
from ..retrievers.protocols import RetrieverProtocol
from ..retrievers.results import Evidence, ScoredNode
from ..retrievers.retriever import Retriever
from ..retrievers.similarities.registry import get_similarity
from ..retrievers.validation import with_settings

R = TypeVar("R")


def node_of(document: Document) -> Node:
    """Return a node without a graph for a document, with its search text."""
    search_text = document.search_text
    return Node(document.text, document.metadata, id=document.id, search_text=search_text)


def evidence_dicts(result: ScoredNode) -> list[dict[str, Any]]:
    """Return the evidence of a result as JSON values, best match first.

    A match has the node's ``id``, ``group``, ``text``, ``start`` and ``end``, and the ``score``,
    ``similarity`` and ``query`` of the match. It also has ``embed_key`` if vectors were compared,
    ``share`` if retrievers were fused, ``searched_with`` (metadata fields that were compared with
    the text), and ``variants`` (``query``, ``strategy``, ``note``) if a strategy changed the query.
    """
    return [*map(_evidence_dict, result.evidence)]


def _evidence_dict(match: Evidence) -> dict[str, Any]:
    node = match.node
    fields: dict[str, Any] = {
        "id": node.id,
        "group": node.group,
        "text": node.text,
        "start": node.start,
        "end": node.end,
        **page_fields(node),
        "score": float(match.score),
        "similarity": match.similarity,
        "query": match.query,
    }
    if match.embed_key is not None:
        fields["embed_key"] = match.embed_key
    if match.share is not None:
        fields["share"] = float(match.share)
    if searched := match.searched_with:
        fields["searched_with"] = [*searched]
    if match.variants:
        fields["variants"] = [asdict(form) for form in match.variants]
    return fields


def copied_metadata(node: Node, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of metadata, with the page fields of the node."""
    return {**page_fields(node), **deepcopy(dict(metadata))}


def page_fields(node: Node) -> dict[str, str]:
    """Return the ``page_label`` and ``place`` of a node, if its file has pages.

    Examples: ``"12"`` or ``"12-13"``, and ``"report.pdf, page 12, 3.2 Results"``.
    """
    pages = node.pages
    if pages is None:
        return {}
    first, last = pages
    return {"page_label": f"{first}" if first == last else f"{first}-{last}", "place": node.place}


def input_positions(
    reranked: Iterable[ScoredNode], candidates: Sequence[ScoredNode]
) -> list[int | None]:
    """Return the position of each result of a reranker among the candidates. None: a new node.

    Candidates are compared by the node object, then by the node's id, since one node can be a
    candidate twice.
    """
    by_id = {candidate.node.id: at for at, candidate in enumerate(candidates)}
    by_object = {id(candidate.node): at for at, candidate in enumerate(candidates)}
    return [by_object.get(id(result.node), by_id.get(result.node.id)) for result in reranked]


def own_metadata(metadata: Mapping[str, Any], inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a chunk without the fields of its parent.

    Fields are compared by value and type: 1 is not True.
    """
    return {
        name: value
        for name, value in metadata.items()
        if name not in inherited or inherited[name] != value or repr(inherited[name]) != repr(value)
    }


def default_similarity(graph: NodeGraph) -> str:
    """Return the similarity of a single group: cosine if the graph has a model, otherwise BM25."""
    return "cosine" if graph.embeddings.embedders else "bm25"


def document_search(
    graph: NodeGraph,
    *,
    target: str | None = None,
    group: str | None = None,
    similarity: Any = None,
    **options: Any,
) -> RetrieverProtocol:
    """Return a ``DefaultRetriever`` of a graph's documents, or a single ``Retriever``.

    A similarity, a group, a lowest score or ``lift`` selects a single ``Retriever`` with the scores
    of its similarity. It searches the group, the words of documents, or the vectors of sentences.

    Args:
        graph: The node graph.
        target: The group to return. None: documents.
        group: The group to search.
        similarity: As in ``Retriever``.
        **options: Other options of ``DefaultRetriever`` or ``Retriever``.

    Raises:
        UnknownGroupError: If the graph has no such group.
        TypeError: If the class has no such option.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is steamed. Black tea is fermented.", "Rivers run."])
        >>> (result,) = document_search(graph).retrieve("fermented")
        >>> result.node.text, result.evidence[0].node.text
        ('Green tea is steamed. Black tea is fermented.', 'Black tea is fermented.')
    """
    target = ROOT if target is None else target
    single = ("similarity_cut_off", "lift")
    if group is None and similarity is None and options.keys().isdisjoint(single):
        return DefaultRetriever(graph, target, **options)
    named = get_similarity(default_similarity(graph) if similarity is None else similarity)
    if group is None:
        is_lifted = named.mode == "embedding" or "lift" in options
        group = DefaultRetriever(graph, target).sentences if is_lifted else target
    return Retriever(graph, group, named, target=target, **with_settings(Retriever, options))


def in_thread(method: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """Return an async version of a method that runs in a thread."""

    @wraps(method)
    async def call(self: object, *args: Any, **kwargs: Any) -> R:
        overridden: Callable[..., R] = getattr(self, method.__name__)
        return await asyncio.to_thread(overridden, *args, **kwargs)

    call.__doc__ = f"Async version of ``{method.__name__}``, in a thread."
    return call
