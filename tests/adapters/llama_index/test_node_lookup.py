"""Nodes of a graph by their ids in the graph and in LlamaIndex."""

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from nodekin.adapters.llama_index import export_nodes, import_nodes
from nodekin.adapters.llama_index.node_lookup import find_node, imported_children
from nodekin.nodegraph import NodeGraph


def test_nodes_by_either_id(graph: NodeGraph) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="rivers")}
    chunk = TextNode(text="The Nile is long.", id_="nile", relationships=source)
    import_nodes(graph, [chunk], groups=["chunk"])
    (imported,) = graph.nodes("chunk")
    assert imported.id != "nile"
    assert [find_node(graph, node_id) for node_id in ("nile", imported.id, "tea", "none")] == [
        *(imported, imported, graph.node("tea"), None)
    ]
    exported = next(node for node in export_nodes(graph, "chunk") if node.node_id == "nile")
    assert [find_node(graph, node) for node in (exported, chunk, TextNode(id_="none"))] == [
        *(imported, imported, None)
    ]


def test_imported_groups(graph: NodeGraph) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="rivers")}
    import_nodes(graph, [TextNode(text="Nile.", relationships=source)], groups=["chunk"])
    children = imported_children(graph, "chunk")
    assert children is not None
    assert repr(children) == "ImportedChildren(1 nodes)"
    assert [child.text for child in children(graph.node("rivers"))] == ["Nile."]
    assert children(graph.node("tea")) == []
    assert [imported_children(graph, name) for name in ("ROOT", "sentence", "none")] == [None] * 3
