"""Nodes of a graph by their ids in the graph and in LlamaIndex."""

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from nodekin.adapters.llama_index import export_nodes, import_nodes
from nodekin.adapters.llama_index.nodes import find_node
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
