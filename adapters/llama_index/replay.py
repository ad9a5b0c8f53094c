"""Give a graph nodes that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...nodegraph import Node, NodeGraph
from ...nodegraph.document import digest
from .nodes import origin_of


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
