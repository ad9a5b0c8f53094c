"""Results are text nodes, with relationships that are looked up when they are read."""

import copy
import pickle

from llama_index.core.schema import NodeRelationship, TextNode

from nodekin.adapters.llama_index import NodeGraphRetriever, export_nodes, to_text_node
from nodekin.adapters.llama_index.nodes import read_record
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever


def test_a_result_is_a_text_node_wherever_it_goes(graph: NodeGraph) -> None:
    graph.build("sentence")
    (result,) = NodeGraphRetriever(Retriever(graph, "paragraph", top_k=1)).retrieve("Europe")
    node = result.node
    wanted = export_nodes(graph, "sentence")
    (wanted,) = (other for other in wanted if other.node_id == node.node_id)
    assert NodeRelationship.CHILD in node.relationships
    fresh = NodeGraphRetriever(Retriever(graph, "paragraph", top_k=1))
    for way in (
        lambda n: n,
        copy.copy,
        copy.deepcopy,
        lambda n: n.model_copy(deep=True),
        lambda n: pickle.loads(pickle.dumps(n)),
        lambda n: type(wanted).from_dict(n.to_dict()),
        lambda n: type(wanted).from_json(n.to_json()),
    ):
        again = way(fresh.retrieve("Europe")[0].node)
        assert again == wanted
        assert wanted == again
        again.text = "changed"
        assert again.child_nodes == wanted.child_nodes
        assert again != wanted
    assert "CHILD" in repr(fresh.retrieve("Europe")[0].node)


def test_an_assignment_leaves_the_relationships_for_later(graph: NodeGraph) -> None:
    node = to_text_node(graph.nodes("sentence")[1])
    node.set_content("changed")
    node.metadata = {"new": 1}
    assert "relationships" not in node.__dict__
    assert node.prev_node.node_id == graph.nodes("sentence")[0].id
    node.relationships = {}
    assert node.prev_node is None


def test_the_record_of_the_node_in_the_graph(graph: NodeGraph) -> None:
    sentence = graph.nodes("sentence")[1]
    node = to_text_node(sentence)
    record = read_record(node)
    assert record["group"] == "sentence"
    assert read_record(TextNode.from_json(node.to_json())) == record
    assert read_record(TextNode(text="other")) is None
