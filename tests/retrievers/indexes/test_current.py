from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers.similarities.bm25 import Bm25


def test_current_index_has_built_and_changed_group() -> None:
    graph = NodeGraph(progress=False)
    graph.add("Green tea. Black tea.")
    graph.create_node_group("sentence", split_sentences)
    words = Bm25().open(graph, "sentence")
    with words.current() as index:
        assert index.frequency("tea") == 2
        assert graph.reader.is_held
    graph.add("White tea.")
    with words.current() as index:
        assert index.frequency("tea") == 3
