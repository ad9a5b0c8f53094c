"""The graph that is drawn of a retriever shows what is within."""

import pytest

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import BaseRetriever, FusionRetriever, RerankRetriever, Retriever


class Strategy(BaseRetriever):
    calls_model = True

    def __init__(self, inner):
        self.inner = inner

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query)


class Router(Strategy):
    def __init__(self, retrievers):
        self.retrievers = retrievers

    @property
    def inner_retrievers(self):
        return list(self.retrievers.items())


@pytest.fixture
def sentences(graph):
    return Retriever(graph, "sentence", "bm25", target="ROOT", filters={"topic": "tea"})


@pytest.fixture
def whole(graph):
    return Retriever(graph, "ROOT", top_k=3)


def edges(graph):
    names = {id: node.name for id, node in graph.nodes.items()}
    return sorted((names[edge.source], names[edge.target]) for edge in graph.edges)


IN, OUT, HERE = "NodeGraphRetrieverInput", "NodeGraphRetrieverOutput", "NodeGraphRetriever"


def test_one_retriever(whole):
    graph = NodeGraphRetriever(retriever=whole).get_graph()
    assert edges(graph) == [(HERE, OUT), (IN, "Retriever"), ("Retriever", HERE)]


def test_what_changes_results_stands_behind_what_it_holds(sentences, whole):
    engine = RerankRetriever(FusionRetriever([sentences, whole]), "KeywordFilter", required=["x"])
    graph = NodeGraphRetriever(retriever=engine).get_graph()
    assert edges(graph) == [
        ("FusionRetriever", "RerankRetriever"),
        (HERE, OUT),
        (IN, "Retriever"),
        (IN, "Retriever"),
        ("RerankRetriever", HERE),
        ("Retriever", "FusionRetriever"),
        ("Retriever", "FusionRetriever"),
    ]
    facts = {node.name: node.metadata for node in graph.nodes.values()}
    assert facts["RerankRetriever"] == {"top_k": 6, "reranker": "KeywordFilter"}
    assert facts["FusionRetriever"] == {"mode": "rrf", "top_k": 6}
    assert {
        node.metadata["target"]: node.metadata
        for node in graph.nodes.values()
        if node.name == "Retriever"
    }["ROOT"]["similarity"] == "bm25"


def test_what_changes_queries_stands_before_what_it_holds(sentences, whole):
    graph = NodeGraphRetriever(retriever=Strategy(FusionRetriever([sentences, whole]))).get_graph()
    assert edges(graph) == [
        ("FusionRetriever", HERE),
        (HERE, OUT),
        (IN, "Strategy"),
        ("Retriever", "FusionRetriever"),
        ("Retriever", "FusionRetriever"),
        ("Strategy", "Retriever"),
        ("Strategy", "Retriever"),
    ]


def test_a_router_leads_to_its_branches(sentences, whole):
    graph = NodeGraphRetriever(retriever=Router({"a": sentences, "b": whole})).get_graph()
    assert edges(graph).count(("Router", "Retriever")) == 2
    assert edges(graph).count(("Retriever", HERE)) == 2


def test_it_is_drawn(sentences, whole):
    retriever = NodeGraphRetriever(retriever=FusionRetriever([sentences, whole]))
    drawn = retriever.get_graph().draw_mermaid()
    for told in ("FusionRetriever", "mode = rrf", "group_name = sentence", "similarity = bm25"):
        assert told in drawn
    assert retriever.get_graph().to_json()["nodes"]
