import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from support import langchain_peers
from support.langchain_runs import FinishedRuns

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, QueryRewriteRetriever, RerankRetriever, Retriever

DOCUMENTS = [
    Document(
        "Green tea is not fermented. Black tea is fermented. Tea grows on hills.",
        metadata={"topic": "tea", "language": "en"},
        id="tea",
    ),
    Document(
        "Rivers run to the sea. Some rivers dry out. Tea is grown along rivers.",
        metadata={"topic": "rivers", "language": "en", "page": 3},
        id="rivers",
    ),
    Document(
        "绿茶是不发酵的茶。红茶是全发酵的茶。茶树喜欢温暖的山坡。",
        metadata={"topic": "tea", "language": "zh"},
        id="茶",
    ),
    Document(
        "A printing press. It prints books about tea.", metadata={"topic": "printing"}, id="press"
    ),
]


@pytest.fixture(params=["sync", "async"])
def mode(request):
    """How a runnable is called; a test with it runs in both ways."""
    return request.param


@pytest.fixture
def tracer():
    return FinishedRuns()


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


@pytest.fixture
def nested(native, graph):
    """A rewriting around a reranking around a fusion."""
    fused = FusionRetriever([native, Retriever(graph, "ROOT")])
    reranked = RerankRetriever(
        fused, "ModuleReranker", model=lambda query, texts: [-len(text) for text in texts]
    )
    model = FakeListChatModel(responses=["fermented 茶 tea"] * 9)
    return NodeGraphRetriever(QueryRewriteRetriever(reranked, model))


@pytest.fixture
def peer_graph():
    return langchain_peers.peer_graph()


@pytest.fixture
def loaded_graph():
    return langchain_peers.loaded_graph()
