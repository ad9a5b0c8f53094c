"""Nodes selected by filters alone."""

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever


def test_blank_query_returns_nodes_in_order() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"text {at}", {"even": at % 2 == 0}, id=str(at)) for at in range(9)])
    retriever = Retriever(graph, "ROOT", top_k=3)
    found = retriever.retrieve("", filters={"even": [True, False]})
    assert [result.node.id for result in found] == ["0", "1", "2"]
    found = retriever.retrieve("", filters={"even": True})
    assert [(result.node.id, result.score) for result in found] == [("0", 0), ("2", 0), ("4", 0)]
    graph.remove("2")
    found = retriever.retrieve("", filters={"even": True})
    assert [result.node.id for result in found] == ["0", "4", "6"]
