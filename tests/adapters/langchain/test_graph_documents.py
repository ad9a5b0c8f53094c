import pytest
from langchain_core.documents import Document

from nodekin.adapters.langchain.documents import drop, nodes_there, put
from nodekin.nodegraph import NodeGraph, split_sentences


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.create_node_group("sentence", split_sentences)
    put(graph, [Document("Tea. Milk.", id="tea"), Document("河。", id="河")])
    return graph


def test_ids_are_those_given_else_the_documents_else_made(graph):
    ids = put(graph, [Document("a", id="A"), Document("b", id="B"), Document("c")], ["1", None, ""])
    assert ids[:2] == ["1", "B"]
    assert ids[2] == graph.add("c")[0]


def test_nodes_in_the_order_of_the_ids_each_once(graph):
    found = nodes_there(graph, ["河", "none", "tea", "河"])
    assert [node.id for node in found] == ["河", "tea"]
    assert nodes_there(graph, ["tea"], "sentence") == []
    pieces = graph.nodes("sentence")
    assert nodes_there(graph, [pieces[1].id, pieces[0].id], "sentence") == pieces[1::-1]


def test_what_somebody_else_removes_meanwhile_is_no_error(monkeypatch):
    graph = NodeGraph(progress=False)
    put(graph, [Document("Tea.", id="tea"), Document("河。", id="河")])
    remove = graph.remove

    def after_another(ids):
        monkeypatch.setattr(graph, "remove", remove)
        remove("tea")
        remove(ids)

    monkeypatch.setattr(graph, "remove", after_another)
    assert drop(graph, ["tea", "河", "none"]) == ["河"]
    assert graph.nodes("ROOT") == []


def test_a_piece_is_not_dropped(graph):
    with pytest.raises(ValueError, match="made from the document 'tea'"):
        drop(graph, ["河", graph.nodes("sentence")[0].id])
    assert len(graph.nodes("ROOT")) == 2
