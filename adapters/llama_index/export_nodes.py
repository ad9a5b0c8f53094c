"""Hand whole groups to LlamaIndex, every node knowing its kin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode

from ...nodegraph import ROOT, Node, NodeGraph
from .nodes import origin_of, related, to_text_node


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
    made = [to_text_node(node) for node in nodes]
    children: dict[str, list[RelatedNodeInfo]] = defaultdict(list)
    for node, text_node in zip(nodes, made, strict=True):
        if node.parent_id is not None:
            children[node.parent_id].append(related(text_node.node_id))
    for node, text_node in zip(nodes, made, strict=True):
        if node.id in children:
            text_node.relationships[NodeRelationship.CHILD] = children[node.id]
    for at in range(1, len(nodes)):
        if _place(nodes[at - 1]) == _place(nodes[at]):
            made[at - 1].relationships[NodeRelationship.NEXT] = related(made[at].node_id)
            made[at].relationships[NodeRelationship.PREVIOUS] = related(made[at - 1].node_id)
    return made


def export_index_nodes(graph: NodeGraph, group: str, target: str) -> list[IndexNode]:
    """Make LlamaIndex ``IndexNode``s of a group, each of which stands for its kin in another.

    Choose it to fill a vector index that LlamaIndex's own ``RecursiveRetriever`` searches: give
    that ``{node.node_id: node for node in export_nodes(graph, target)}`` as its ``node_dict``. Up
    a node has one kin; where it has several (down, or across) there is an ``IndexNode`` for each.
    In nodekin the same is ``Retriever(graph, group, target=target)``.

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
    made = []
    with graph.reading(group, target):
        find = graph.find(target)
        for node in graph.nodes(group):
            text_node = to_text_node(node)
            kin = [origin_of(each) or each.id for each in find(node)]
            for place, index_id in enumerate(kin):
                index_node = IndexNode.from_text_node(text_node.model_copy(deep=True), index_id)
                if place:
                    index_node.id_ = f"{text_node.node_id}-{place}"
                made.append(index_node)
    return made


def _place(node: Node) -> tuple[str, str]:
    return node.group, node.document_id
