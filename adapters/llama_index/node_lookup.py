"""Give a graph nodes that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core.schema import BaseNode

from ...nodegraph import Node, NodeGraph
from ...nodegraph.hashing import digest
from ...retrievers.indexes import Exact
from .nodes import NODEKIN_ID, ORIGIN, origin_of


class Replay:
    """A transform that returns for each parent the pieces that were made of it before.

    Args:
        pieces: By the parent's id: a document's, or the one that a node had in LlamaIndex.
    """

    trans_node = True

    def __init__(self, pieces: Mapping[str, Sequence[Node]]) -> None:
        self.pieces = {parent: list(made) for parent, made in pieces.items()}

    def __repr__(self) -> str:
        return f"Replay({sum(map(len, self.pieces.values()))} nodes)"

    def __call__(self, node: Node) -> list[Node]:
        """Return the pieces of a parent; none for one that was not imported."""
        return self.pieces.get(origin_of(node) or node.id, [])

    @property
    def version(self) -> str:
        """Hash of all pieces: the same rule wherever the same nodes are imported."""
        parts: list[str] = []
        for parent in sorted(self.pieces):
            parts.append(parent)
            for each in self.pieces[parent]:
                parts += [each.text, repr(each.content), repr(each.start)]
                parts.append(repr(sorted(each.own_metadata.items())))
        return digest("replay", *parts)


def replayed(graph: NodeGraph, group: str) -> Replay | None:
    """Return what a group replays, None for a group of another kind, or none."""
    if group not in graph.groups or group == "ROOT":
        return None
    call = getattr(graph.ancestry(group)[-1].rule, "call", None)
    return call if isinstance(call, Replay) else None


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
