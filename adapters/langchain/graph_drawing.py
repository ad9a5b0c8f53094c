"""Draw a retriever, and those it holds, into a LangChain graph."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.graph import Graph, Node

from ...retrievers.base_retriever import inner_retrievers
from ...retrievers.protocols import RetrieverProtocol

_LABELS = (
    *("group_name", "groups", "via", "target", "mode", "top_k", "filters"),
    *("similarity", "reranker"),
)


def draw_runnable(
    runnable: Runnable[Any, Any],
    step: Runnable[Any, Any],
    retriever: RetrieverProtocol,
    config: RunnableConfig | None,
) -> Graph:
    """Return a graph of a runnable: the way of a query through a retriever, then a step.

    Args:
        runnable: Whose input and output it has.
        step: What gets the results of the retriever.
        retriever: The retriever.
        config: The config that the graph is drawn for.
    """
    graph = Graph()
    start = graph.add_node(runnable.get_input_schema(config))
    node = graph.add_node(step, metadata=config.get("metadata") if config else None)
    for end in draw(retriever, graph, [start]):
        graph.add_edge(end, node)
    graph.add_edge(node, graph.add_node(runnable.get_output_schema(config)))
    return graph


def draw(retriever: RetrieverProtocol, graph: Graph, sources: list[Node]) -> list[Node]:
    """Draw the way of a query through a retriever. Return the nodes where it ends.

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
    values = {name: getattr(retriever, name, None) for name in _LABELS}
    for name in ("similarity", "reranker"):
        values[name] = getattr(values[name], "name", values[name])
    return {
        name: value if isinstance(value, int | float) else str(value)
        for name, value in values.items()
        if value is not None
    }
