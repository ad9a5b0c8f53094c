"""The relationships of nodes that are in a graph, or were."""

from llama_index.core.schema import NodeRelationship

from nodekin.adapters.llama_index import NodeGraphRetriever, to_text_node
from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import Retriever


def test_relationships_of_a_result_whose_document_is_gone(graph: NodeGraph) -> None:
    (result,) = NodeGraphRetriever(Retriever(graph, "sentence", top_k=1)).retrieve("Europe")
    graph.remove("tea")
    assert result.node.ref_doc_id == "tea"
    assert (result.node.prev_node, result.node.next_node) == (None, None)


def test_reading_relationships_builds_nothing() -> None:
    calls = []
    graph = NodeGraph()
    graph.add("Green tea.")
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("loud", lambda text: calls.append(text) or text.upper(), parent="line")
    graph.build("loud")
    graph.add("Black tea.")
    assert len(calls) == 1
    results = NodeGraphRetriever(Retriever(graph, "line")).retrieve("tea")
    assert sorted(len(r.node.child_nodes or []) for r in results) == [0, 1]
    assert len(calls) == 1


def test_nodes_without_a_document_are_their_own_source() -> None:
    graph = NodeGraph()
    graph.add(["Green tea.", "Black tea."])
    graph.create_node_group("all", lambda texts: " ".join(texts), scope="group", trans_node=False)
    for node in (graph.nodes("all")[0], Node("Tea", id="n1")):
        assert to_text_node(node).ref_doc_id == node.id
        assert set(to_text_node(node).relationships) == {NodeRelationship.SOURCE}


def test_documents_are_no_parents(graph: NodeGraph) -> None:
    paragraph = graph.nodes("paragraph")[0]
    (node,) = (to_text_node(paragraph) for _ in range(1))
    assert (node.parent_node, node.ref_doc_id) == (None, "tea")
    assert to_text_node(graph.nodes("sentence")[0]).parent_node.node_id == paragraph.id
