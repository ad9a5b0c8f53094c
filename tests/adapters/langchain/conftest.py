import pytest

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import Retriever

DOCUMENTS = [
    Document(
        "Green tea is not fermented. Black tea is fermented. Tea grows on hills.",
        {"topic": "tea", "language": "en"},
        id="tea",
    ),
    Document(
        "Rivers run to the sea. Some rivers dry out. Tea is grown along rivers.",
        {"topic": "rivers", "language": "en", "page": 3},
        id="rivers",
    ),
    Document(
        "绿茶是不发酵的茶。红茶是全发酵的茶。茶树喜欢温暖的山坡。",
        {"topic": "tea", "language": "zh"},
        id="茶",
    ),
    Document("A printing press. It prints books about tea.", {"topic": "printing"}, id="press"),
]


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    graph.create_node_group("sentence", split_sentences)
    return graph


@pytest.fixture
def native(graph):
    """Searches sentences, answers with documents."""
    return Retriever(graph, "sentence", "bm25", target="ROOT")


@pytest.fixture
def retriever(native):
    return NodeGraphRetriever(retriever=native)
