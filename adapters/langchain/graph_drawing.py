"""Draw a retriever, and those it holds, into a LangChain graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.graph import Graph, Node

from ...retrievers import RetrieverProtocol
from ...retrievers.base_retriever import inner_retrievers

_SHOWN_ATTRIBUTES = ("group_name", "groups", "via", "target", "mode", "top_k", "filters")


def draw(retriever: RetrieverProtocol, graph: Graph, sources: list[Node]) -> list[Node]:
    """Draw the way of a query through a retriever; return the nodes where it ends.

    A retriever that calls a model comes before the retrievers it holds, others come after them,
    as results pass them.

    Args:
        retriever: Any retriever.
        graph: The graph to draw into.
        sources: The nodes that the query comes from.
    """
    node = graph.add_node(
        RunnableLambda(retriever.retrieve, retriever.aretrieve, name=type(retriever).__name__),
        metadata=_metadata(retriever) or None,
    )
    inner = inner_retrievers(retriever)
    comes_first = not inner or getattr(retriever, "calls_model", False)
    if comes_first:
        for source in sources:
            graph.add_edge(source, node)
        sources = [node]
    ends = [
        (end, name if len(inner) > 1 and not name.isdecimal() else None)
        for name, item in inner
        for end in draw(item, graph, sources)
    ]
    if comes_first:
        return [end for end, _ in ends] or [node]
    for end, name in ends:
        graph.add_edge(end, node, data=name)
    return [node]


def _metadata(retriever: object) -> dict[str, Any]:
    """Return what distinguishes a retriever from others of its class, as texts and numbers."""
    attributes = _attributes(retriever)
    values = {name: attributes.get(name) for name in _SHOWN_ATTRIBUTES}
    for name in ("similarity", "reranker"):
        values[name] = getattr(attributes.get(name), "name", attributes.get(name))
    return {
        name: value if isinstance(value, int | float) else str(value)
        for name, value in values.items()
        if value is not None
    }


def _attributes(retriever: object) -> dict[str, Any]:
    slots = (getattr(cls, "__slots__", ()) for cls in type(retriever).__mro__)
    names = [name for of_class in slots for name in _as_names(of_class)]
    slotted = {name: getattr(retriever, name) for name in names if hasattr(retriever, name)}
    return {**slotted, **getattr(retriever, "__dict__", {})}


def _as_names(slots: str | Iterable[str]) -> Iterable[str]:
    return [slots] if isinstance(slots, str) else slots
