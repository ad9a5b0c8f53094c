"""Walk from nodes to their kin in another group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .node import MEMBER, ROOT, Node

if TYPE_CHECKING:
    from .graph import NodeGraph


def find(graph: NodeGraph, group: str, items: Iterable[Any]) -> list[Node]:
    """Return the kin of nodes in a group, each once, in document order.

    Raises:
        LookupError: If a node has been removed or changed.
        TypeError: If an item is neither a node nor holds one.
        ValueError: If a node is not of this graph.
    """
    found: dict[str, Node] = {}
    with graph.reading(group):
        path = path_to(graph, group)
        for item in items:
            node = as_node(item)
            if node.graph is not graph:
                raise ValueError(f"{node!r} is not a node of this graph")
            here = graph.node(node.id)
            found.update((each.id, each) for each in kin(graph, path, here))
    return sorted(found.values(), key=lambda node: node.order)


def as_node(item: Any) -> Node:
    """Take a node, or a retrieval result, which holds one."""
    node = getattr(item, "node", item)
    if not isinstance(node, Node):
        raise TypeError(f"find takes nodes or retrieval results, not {item!r:.80}")
    return node


def path_to(graph: NodeGraph, group: str) -> list[str]:
    """Return the names of the groups from ``ROOT`` down to a group."""
    return [ROOT, *(each.name for each in graph.ancestry(group))]


def kin(graph: NodeGraph, path: list[str], node: Node) -> list[Node]:
    """Return one node's kin: up to the nearest common ancestor group, then down to the group.

    What was made from a whole group has for parents the nodes it is linked to as its members.

    Args:
        graph: The graph, held by ``reading`` with the group built.
        path: ``path_to`` the group.
        node: Where to begin.
    """
    above = node
    while above.group not in path:
        if above.parent_id is None:
            of_members = (kin(graph, path, each) for each in graph.linked(above, MEMBER))
            found = {each.id: each for some in of_members for each in some}
            return sorted(found.values(), key=lambda each: each.order)
        above = graph.node(above.parent_id)
    nodes = [above]
    for name in path[path.index(above.group) + 1 :]:
        below = (child for each in nodes for child in graph.children_in(name, each))
        nodes = list({child.id: child for child in below}.values())
    return nodes
