"""Find a LlamaIndex node in a graph: by its own id, or by the one it was imported with."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode

from ...nodegraph import Node, NodeGraph
from ...retrievers import Exact
from .nodes import NODEKIN_ID, ORIGIN
from .replay import replayed


def graph_ids(graph: NodeGraph, nodes: Sequence[BaseNode]) -> list[str | None]:
    """Return for each node its id in the graph, None where the graph does not have it."""
    wanted = [str(node.metadata.get(NODEKIN_ID, node.node_id)) for node in nodes]
    return [None if found is None else found.id for found in graph_nodes(graph, wanted)]


def graph_nodes(graph: NodeGraph, ids: Sequence[str]) -> list[Node | None]:
    """Return nodes by their ids in the graph or, where they were imported, in LlamaIndex."""
    return [_node(graph, i) for i in ids]


def _node(graph: NodeGraph, id: str) -> Node | None:
    try:
        return graph.node(id)
    except LookupError:
        pass
    origin = Exact(ORIGIN, normalize=False)
    for name in graph.groups:
        if replayed(graph, name) is not None:
            index = origin.open(graph, name)
            with graph.reading(name):
                index.sync()
                for found in index.search(id, 1, {}).ids:
                    return graph.node(found)
    return None
