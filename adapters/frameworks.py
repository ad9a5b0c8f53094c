"""What the adapters of LangChain and LlamaIndex share: conversion, default search, tracing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import asdict
from functools import wraps
from typing import Any, TypeVar

from ..nodegraph.concurrency import context_value
from ..nodegraph.document import Document
from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import ROOT, Node
from ..retrievers.composite.default_retriever import DefaultRetriever
from ..retrievers.protocols import RetrieverProtocol
from ..retrievers.results import Evidence, ScoredNode
from ..retrievers.retriever import Retriever
from ..retrievers.similarities.registry import get_similarity
from ..retrievers.tracing import Observer, observe
from ..retrievers.validation import with_settings

ObserverT = TypeVar("ObserverT", bound=Observer)

R = TypeVar("R")

_ATOMIC = frozenset((str, int, float, bool, type(None)))


def node_of(document: Document) -> Node:
    """Make a node of a document that is in no graph, searched as its framework would."""
    search_text = document.search_text
    return Node(document.text, document.metadata, id=document.id, search_text=search_text)


def evidence_dicts(result: ScoredNode) -> list[dict[str, Any]]:
    """Return a result's evidence as dicts that JSON can hold, the best match first.

    Each has the matching node's ``id``, ``group``, ``text``, ``start`` and ``end``, the ``score``
    and ``similarity`` of the match, and the form of the ``query`` that was searched for,
    ``embed_key`` where embeddings were compared, ``share`` where retrievers were fused,
    ``searched_with`` (names of metadata fields) where these were compared with the text,
    ``variants`` (dicts of ``query``, ``strategy``, ``note``) where strategies changed the query.
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
    """Return a copy of a node's metadata, or of a part of it, with its page where it has one."""
    fields = {
        name: value if type(value) in _ATOMIC else deepcopy(value)
        for name, value in metadata.items()
    }
    return {**page_fields(node), **fields}


def page_fields(node: Node) -> dict[str, str]:
    """Return the ``page_label`` and ``place`` of a node whose file has pages, else nothing.

    Examples: ``"12"`` or ``"12-13"`` (from 1, as both frameworks' readers of PDF write it), and
    ``"report.pdf, page 12, 3.2 Results"``.
    """
    pages = node.pages
    if pages is None:
        return {}
    first, last = pages
    return {"page_label": f"{first}" if first == last else f"{first}-{last}", "place": node.place}


def explain_match(match: Mapping[str, Any]) -> list[str]:
    """Return in words what one of ``evidence_dicts`` says: a line, and one for each variant."""
    key = "" if match.get("embed_key") is None else f" ({match['embed_key']})"
    share = "" if match.get("share") is None else f", which gave {match['share']:.4f}"
    lines = [
        f"  {match['score']:.4f}  {match['group']}  {match['similarity']}{key} for "
        f"{shorten(match['query'])}: {shorten(match['text'])}{share}"
    ]
    for variant in reversed(match.get("variants", [])):
        note = "" if variant["note"] is None else f" ({variant['note']})"
        lines.append(f"    {variant['strategy']} of {shorten(variant['query'])}{note}")
    return lines


def shorten(text: str) -> str:
    """Return a text in quotation marks on one line, cut after 60 characters."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= 60 else f'"{line[:57]}..."'


def input_positions(
    reranked: Iterable[ScoredNode], candidates: Sequence[ScoredNode]
) -> list[int | None]:
    """Return where each result of a reranker was among the candidates. None for a new one.

    Candidates are known by their node object, so that one node can be there twice, or else by
    the node's id.
    """
    by_id = {candidate.node.id: at for at, candidate in enumerate(candidates)}
    by_object = {id(candidate.node): at for at, candidate in enumerate(candidates)}
    return [by_object.get(id(result.node), by_id.get(result.node.id)) for result in reranked]


def restore_inherited(
    metadata: dict[str, Any], names: Iterable[str], overridden: Mapping[str, Any]
) -> dict[str, Any]:
    """Take the inherited fields out of a node's metadata. Return all that the node inherited."""
    inherited = {field: metadata.pop(field) for field in names if field in metadata}
    return {**inherited, **overridden}


def different_text(node: Node, content: str) -> dict[str, Any]:
    """Return what ``content``, a node's content as a text, loses: ``text`` and ``content``."""
    text = {} if node.text == content else {"text": node.text}
    return text if isinstance(node.content, str) else {**text, "content": deepcopy(node.content)}


def own_metadata(metadata: Mapping[str, Any], inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that a splitter's part does not have from the node it was split from.

    Values are the same if they are equal and of the same type: 1 is not True.
    """
    return {
        name: value
        for name, value in metadata.items()
        if name not in inherited or inherited[name] != value or repr(inherited[name]) != repr(value)
    }


def is_start(start: Any, part: str, text: str) -> bool:
    """Return whether a part of a text starts where a splitter says."""
    return isinstance(start, int) and start >= 0 and text.startswith(part, start)


def default_similarity(graph: NodeGraph) -> str:
    """Return how a single group is searched: by meaning if the graph has a model, else by words."""
    return "cosine" if graph.embeddings.embedders else "bm25"


def document_search(
    graph: NodeGraph,
    *,
    target: str | None = None,
    group: str | None = None,
    similarity: Any = None,
    **options: Any,
) -> RetrieverProtocol:
    """Return the ``DefaultRetriever`` of a graph's documents, or the one search that is named.

    With a similarity, a group, a cut-off or a way of lifting it is a single ``Retriever``, whose
    scores are those of the similarity. It searches the group, the words of the documents, or the
    vectors of their sentences.

    Args:
        graph: The node graph.
        target: The group to answer with. None for the documents.
        group: The only group to search.
        similarity: As in ``Retriever``.
        **options: Other options of ``DefaultRetriever``, or of ``Retriever``.

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
    single = ("similarity_cut_off", "lift")
    if group is None and similarity is None and options.keys().isdisjoint(single):
        return DefaultRetriever(graph, target, **options)
    named = get_similarity(default_similarity(graph) if similarity is None else similarity)
    if group is None:
        is_lifted = named.mode == "embedding" or "lift" in options
        group = DefaultRetriever(graph, target).sentences if is_lifted else target
    return Retriever(graph, group, named, target=target, **with_settings(Retriever, options))


@contextmanager
def observe_once(
    current: ContextVar[ObserverT | None], create: Callable[[], ObserverT]
) -> Iterator[ObserverT]:
    """Observe the spans of the block, unless an outer block already does.

    A query engine and the retriever in it both observe. Each span is reported once.

    Args:
        current: Holds the observer of the outermost block. None outside of such blocks.
        create: Creates the observer, in the outermost block only.

    Yields:
        The observer of the outermost block.
    """
    observer = current.get()
    if observer is not None:
        yield observer
        return
    observer = create()
    with context_value(current, observer), observe(observer):
        yield observer


def in_thread(method: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """Return the async version of a method, which runs it in a thread."""

    @wraps(method)
    async def call(self: object, *args: Any, **kwargs: Any) -> R:
        overridden: Callable[..., R] = getattr(self, method.__name__)
        return await asyncio.to_thread(overridden, *args, **kwargs)

    call.__doc__ = f"Async version of ``{method.__name__}``, in a thread."
    return call
