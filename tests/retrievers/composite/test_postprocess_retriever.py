"""Results that are made from hits of another retriever."""

from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever, WindowRetriever


def test_window_retrieves_hits_until_top_k() -> None:
    graph = NodeGraph(progress=False)
    graph.add([" ".join(["Tea is hot."] * 40), "Much later, in another place, some tea."])
    graph.create_node_group("sentence", split_sentences)
    windows = WindowRetriever(Retriever(graph, "sentence"), top_k=2).retrieve("tea")
    assert [len(window.evidence) for window in windows] == [40, 1]
