"""Export whole groups to LlamaIndex, every node with its relationships."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from .imported_fields import id_in_llama_index
from .nodes import to_exported_node, to_text_node
from .relationships import link_neighbours, related


def export_nodes(graph: NodeGraph, *groups: str) -> list[TextNode]:
    """Make LlamaIndex nodes of groups and of the groups above them, independent of the graph.

    Choose it to fill a docstore or a vector index, or for components that follow relationships.
    They are what ``to_text_node`` makes, with children in the exported groups (CHILD, absent on
    leaves), and neighbours in their group and document, across parents (PREVIOUS, NEXT). Documents
    are not among them, and are nobody's PARENT, as with LlamaIndex's own parsers: a vector index
    must not return whole documents, nor a merging retriever climb to them. Name ``"ROOT"`` to get
    them first, with their children: ``import_nodes`` makes the same graph of these again.

    Args:
        graph: The node graph.
        groups: Names of groups; none for the documents alone.

    Returns:
        Each group in document order, parents before children.

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
    roots = [ROOT] if ROOT in groups or not groups else []
    names = dict.fromkeys(
        [*roots, *(group.name for name in groups for group in graph.ancestry(name))]
    )
    with graph.reading(*names):
        return relate([node for name in names for node in graph.nodes(name)])


def relate(nodes: Sequence[Node]) -> list[TextNode]:
    """Make LlamaIndex nodes with their children and neighbours among each other.

    Args:
        nodes: Whole groups, each in document order.
    """
    pairs = [(node, to_exported_node(node)) for node in nodes]
    children: dict[str, list[RelatedNodeInfo]] = defaultdict(list)
    for node, text_node in pairs:
        if node.parent_id is not None:
            children[node.parent_id].append(related(text_node.node_id))
    for node, text_node in pairs:
        if node.id in children:
            text_node.relationships[NodeRelationship.CHILD] = children[node.id]
    for (node, text_node), (following, next_text_node) in pairwise(pairs):
        if (node.group, node.document_id) == (following.group, following.document_id):
            link_neighbours(text_node, next_text_node)
    return [text_node for _, text_node in pairs]


def export_index_nodes(graph: NodeGraph, group: str, target: str) -> list[IndexNode]:
    """Make LlamaIndex ``IndexNode`` objects of a group, each referring to a node of another group.

    Choose it to fill a vector index that LlamaIndex's own ``RecursiveRetriever`` searches: its
    ``node_dict`` is ``{node.node_id: node for node in export_nodes(graph, target)}``. A node has
    one related node in a group above it; if it has several (below, or in another branch), there
    is an ``IndexNode`` for each. In nodekin the same is ``Retriever(graph, group, target=target)``.

    Raises:
        UnknownGroupError: If there is no such group.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add("One. Two.\\nThree.")
        >>> graph.create_node_group("line", str.splitlines)
        >>> graph.create_node_group("word", str.split, parent="line")
        >>> words = export_index_nodes(graph, "word", "line")
        >>> len({word.index_id for word in words})
        2
    """
    index_nodes = []
    with graph.reading(group, target):
        find = graph.find(target)
        for node in graph.nodes(group):
            for number, match in enumerate(find(node)):
                index_node = IndexNode.from_text_node(to_text_node(node), id_in_llama_index(match))
                if number:
                    index_node.id_ += f"-{number}"
                index_nodes.append(index_node)
    return index_nodes
