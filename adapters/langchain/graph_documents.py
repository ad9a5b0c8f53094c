"""Put LangChain documents into a graph, get them by id, and remove them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from langchain_core.documents import Document

from ...nodegraph import ROOT, Node, NodeGraph
from ...nodegraph import Document as SourceDocument


def put(
    graph: NodeGraph, documents: Iterable[Document], ids: Sequence[str | None] | None = None
) -> list[str]:
    """Add documents, or update those whose id is known, all or none; return their ids.

    Args:
        graph: The node graph.
        documents: Whose text, metadata (copied) and id are taken.
        ids: In place of the documents' own, one for each; None for a document's own.

    Raises:
        ValueError: If there are not as many ids as documents, or two documents have one id.
    """
    given = list(documents)
    chosen = [None] * len(given) if ids is None else list(ids)
    check_same_length("documents", given, "ids", chosen)
    return graph.add(
        [
            SourceDocument(each.page_content, deepcopy(each.metadata), id=own or each.id or None)
            for each, own in zip(given, chosen, strict=True)
        ]
    )


def nodes_there(graph: NodeGraph, ids: Iterable[str], group: str | None = None) -> list[Node]:
    """Return the nodes that are there, in the order of the ids, each once.

    Args:
        graph: The node graph.
        ids: Ids of nodes; those that are not there are passed over.
        group: The group they have to be of, built where it is not; None for any.
    """
    wanted = list(dict.fromkeys(ids))
    with graph.reading(*(() if group is None else [group])):
        try:
            nodes = graph.nodes_by_id(wanted)
        except LookupError:  # some are missing: one by one
            nodes = [node for each in wanted if (node := _node(graph, each)) is not None]
    return [node for node in nodes if group is None or node.group == group]


def drop(graph: NodeGraph, ids: Iterable[str]) -> list[str]:
    """Remove documents and all that was made from them; return the ids of those that were there.

    Raises:
        ValueError: If an id is that of a node that was made from a document; nothing is removed.
    """
    wanted = list(ids)
    while True:
        nodes = nodes_there(graph, wanted)
        for node in nodes:
            if node.group != ROOT:
                raise ValueError(
                    f"{node.id!r} is a node of the group {node.group!r}, which was made from the "
                    f"document {node.document_id!r}; remove or change that document"
                )
        there = [node.id for node in nodes]
        try:
            graph.remove(there)
        except LookupError:  # somebody else removed one meanwhile
            continue
        return there


def check_same_length(name: str, some: Sequence[Any], other: str, others: Sequence[Any]) -> None:
    """Check that two lists go together.

    Raises:
        ValueError: If one is longer.
    """
    if len(some) != len(others):
        raise ValueError(
            f"there are {len(some)} {name} and {len(others)} {other}; give as many of both"
        )


def check_all_known(method: str, kwargs: Mapping[str, Any]) -> None:
    """Check that a call had no keywords besides those it knows.

    Raises:
        TypeError: If there are any left.
    """
    if kwargs:
        raise TypeError(f"{method}() has no argument {next(iter(kwargs))!r}")


def _node(graph: NodeGraph, id: str) -> Node | None:
    try:
        return graph.node(id)
    except LookupError:
        return None
