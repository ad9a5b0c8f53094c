"""Hand whole groups to LlamaIndex, every node knowing its kin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from ...nodegraph import ROOT, Node, NodeGraph
from .nodes import related, to_text_node


def export_nodes(graph: NodeGraph, *groups: str) -> list[TextNode]:
    """Make LlamaIndex nodes of groups, of those they were made from, and of the documents.

    Choose it to fill a docstore or a vector index, or for what follows relationships: there
    nothing refers to a node that is missing. Besides what ``to_text_node`` gives, a node has its
    children in the exported groups (CHILD, absent on leaves), and its neighbours in its group and
    document, across parents (PREVIOUS, NEXT). A retrieval result has neither: they would cost a
    walk through its document for each.

    Returns:
        The documents, then each group in document order, parents before children.

    Raises:
        UnknownGroupError: If there is no such group.
        TransformError: If a group has to be built and its transform raises.

    Example:
        >>> from llama_index.core.node_parser import get_leaf_nodes
        >>> graph = NodeGraph()
        >>> ids = graph.add("One. Two.\\nThree.")
        >>> graph.create_node_group("line", str.splitlines)
        >>> graph.create_node_group("word", str.split, parent="line")
        >>> [node.text for node in get_leaf_nodes(export_nodes(graph, "word"))]
        ['One.', 'Two.', 'Three.']
    """
    names = dict.fromkeys([ROOT, *(g.name for name in groups for g in graph.ancestry(name))])
    with graph.reading(*names):
        return relate([node for name in names for node in graph.nodes(name)])


def relate(nodes: Sequence[Node]) -> list[TextNode]:
    """Make LlamaIndex nodes that know their children and neighbours among each other.

    Args:
        nodes: Whole groups, each in document order.
    """
    children: dict[str, list[RelatedNodeInfo]] = defaultdict(list)
    for node in nodes:
        if node.parent_id is not None:
            children[node.parent_id].append(related(node.id))
    made = [to_text_node(node) for node in nodes]
    for node, text_node in zip(nodes, made, strict=True):
        if node.id in children:
            text_node.relationships[NodeRelationship.CHILD] = children[node.id]
    for at in range(1, len(nodes)):
        before, after = nodes[at - 1], nodes[at]
        if (before.group, before.document_id) == (after.group, after.document_id):
            made[at - 1].relationships[NodeRelationship.NEXT] = related(after.id)
            made[at].relationships[NodeRelationship.PREVIOUS] = related(before.id)
    return made
