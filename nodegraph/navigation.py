"""Walk from nodes to their kin in another group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .errors import StoreError
from .node import MEMBER, ROOT, Kin, Node


def find(graph: Kin, group: str, items: Iterable[Any]) -> list[Node]:
    """Return the kin of nodes in a group, each once, in document order.

    Raises:
        LookupError: If a node has been removed or changed.
        TypeError: If an item is neither a node nor holds one.
        ValueError: If a node is not of this graph.
    """
    nodes: dict[str, Node] = {}
    with graph.reader.reading(group):
        path = path_to(graph, group)
        for item in items:
            node = as_node(item)
            if node.graph is not graph:
                raise ValueError(f"{node!r} is not a node of this graph")
            start = graph.node(node.id)
            nodes.update((relative.id, relative) for relative in kin(graph, path, start))
    return sorted(nodes.values(), key=lambda node: node.order)


def as_node(item: Any) -> Node:
    """Take a node, or a retrieval result, which holds one."""
    node = getattr(item, "node", item)
    if not isinstance(node, Node):
        raise TypeError(f"find takes nodes or retrieval results, not {item!r:.80}")
    return node


def path_to(graph: Kin, group: str) -> list[str]:
    """Return the names of the groups from ``ROOT`` down to a group."""
    return [ROOT, *(ancestor.name for ancestor in graph.reader.lineage(group))]


def kin(graph: Kin, path: list[str], node: Node, below: tuple[str, ...] = ()) -> list[Node]:
    """Return one node's kin: up to the nearest common ancestor group, then down to the group.

    What was made from a whole group has for parents the nodes it is linked to as its members.
    Of sections, pages, tables and symbols (groups ``by_span``) only those are kin of a node of
    another branch that stand where it does.

    Args:
        graph: The graph, held by ``reading`` with the group built.
        path: ``path_to`` the group.
        node: Where to begin.
        below: The ids of the nodes from which this one was reached.
    """
    ancestor = node
    while ancestor.group not in path:
        if ancestor.id in below:
            raise StoreError(
                f"node {ancestor.id!r} of group {ancestor.group!r} is its own ancestor, so that "
                "the graph is damaged; restore a backup, or delete the node's document and add it"
            )
        below = (*below, ancestor.id)
        if ancestor.parent_id is None:
            members = graph.linked(ancestor, MEMBER)
            of_members = (kin(graph, path, member, below) for member in members)
            unique = {relative.id: relative for relatives in of_members for relative in relatives}
            return sorted(unique.values(), key=lambda relative: relative.order)
        ancestor = graph.node(ancestor.parent_id)
    nodes = [ancestor]
    for name in path[path.index(ancestor.group) + 1 :]:
        children = (child for parent in nodes for child in graph.reader.children_in(name, parent))
        nodes = list({child.id: child for child in children}.values())
    if nodes and nodes[0].group != ancestor.group and ancestor is not node:
        return _at_the_place_of(graph, node, nodes)
    return nodes


def _at_the_place_of(graph: Kin, node: Node, kin: list[Node]) -> list[Node]:
    """Return those kin by a common ancestor that stand where the node does, if that counts."""
    if node.start is None or node.end is None or not graph.reader.lineage(kin[0].group)[-1].by_span:
        return kin
    return [
        other
        for other in kin
        if other.start is None
        or other.end is None
        or (other.start < node.end and node.start < other.end)
    ]
