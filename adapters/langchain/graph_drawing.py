"""Draw the retrievers within a retriever into a LangChain graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.graph import Graph, Node

from ...retrievers import RetrieverProtocol

_TOLD = ("group_name", "groups", "via", "target", "mode", "top_k", "filters")


def held(retriever: object) -> Iterator[tuple[str, RetrieverProtocol]]:
    """Yield the retrievers that a retriever holds, with what they are called there.

    They are known by their shape: what attributes hold that do not begin with ``_``, or lists
    and mappings in these.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import FusionRetriever, Retriever
        >>> words = Retriever(NodeGraph(), "ROOT")
        >>> [name for name, _ in held(FusionRetriever([words, words]))]
        ['0', '1']
    """
    for name, value in _attributes(retriever).items():
        if name.startswith("_"):
            continue
        if _retrieves(value):
            yield name, value
        elif isinstance(value, Mapping):
            yield from ((str(key), each) for key, each in value.items() if _retrieves(each))
        elif isinstance(value, list | tuple):
            yield from ((str(at), each) for at, each in enumerate(value) if _retrieves(each))


def asks_a_model(retriever: object) -> bool:
    """Tell whether a retriever makes other queries of a query, as those with prompts do."""
    return any(hasattr(retriever, name) for name in ("prompts", "llm"))


def draw(retriever: RetrieverProtocol, graph: Graph, before: list[Node]) -> list[Node]:
    """Draw the way of a query through a retriever; return the nodes where it ends.

    Those that ask a model stand before what they hold, others behind it, as results pass them.

    Args:
        retriever: Any retriever.
        graph: What it is drawn into.
        before: The nodes that the query comes from.
    """
    node = graph.add_node(
        RunnableLambda(retriever.retrieve, retriever.aretrieve, name=type(retriever).__name__),
        metadata=_facts(retriever) or None,
    )
    inner = list(held(retriever))
    if not inner or asks_a_model(retriever):
        for each in before:
            graph.add_edge(each, node)
        before = [node]
    ends = [
        (end, name if len(inner) > 1 and not name.isdecimal() else None)
        for name, each in inner
        for end in draw(each, graph, before)
    ]
    if not inner or asks_a_model(retriever):
        return [end for end, _ in ends] or [node]
    for end, name in ends:
        graph.add_edge(end, node, data=name)
    return [node]


def _facts(retriever: object) -> dict[str, Any]:
    """Return what tells a retriever from others of its class, as texts and numbers."""
    known = _attributes(retriever)
    facts = {name: known[name] for name in _TOLD if known.get(name) is not None}
    parts = {"similarity": known.get("similarity"), "reranker": known.get("reranker")}
    facts |= {k: getattr(v, "name", v) for k, v in parts.items() if v is not None}
    return {k: v if isinstance(v, int | float) else str(v) for k, v in facts.items()}


def _attributes(holder: object) -> dict[str, Any]:
    slots = (getattr(cls, "__slots__", ()) for cls in type(holder).__mro__)
    named = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    slotted = {name: getattr(holder, name) for name in named if hasattr(holder, name)}
    return {**slotted, **getattr(holder, "__dict__", {})}


def _retrieves(value: object) -> bool:
    return not isinstance(value, type) and all(
        callable(getattr(value, name, None)) for name in ("retrieve", "aretrieve")
    )
