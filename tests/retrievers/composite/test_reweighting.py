"""Weights of a call change the only fusion of a retriever, or raise."""

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    DefaultRetriever,
    FusionRetriever,
    MultiQueryRetriever,
    QueryEngine,
    RerankRetriever,
    Retriever,
    RouterRetriever,
    restrict,
    with_weights,
)
from nodekin.retrievers.foreign.foreign_retriever import configured


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add(["Green tea of the hills.", "Green rivers, green hills, green sea.", "Black tea."])
    return graph


@pytest.fixture
def fusion(graph):
    return FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "FineChunk")])


def groups(retriever):
    return {result.node.group for result in retriever.retrieve("green tea")}


def same(query, texts):
    return [1.0] * len(texts)


WRAPPERS = {
    "none": lambda fusion: fusion,
    "reranker": lambda fusion: RerankRetriever(fusion, "ModuleReranker", model=same),
    "strategy": lambda fusion: MultiQueryRetriever(fusion, lambda prompt: "green hills"),
    "settings": lambda fusion: configured(fusion, top_k=3),
    "restriction": lambda fusion: RerankRetriever(
        restrict(fusion, {"id": {"exists": False}}), "ModuleReranker", model=same
    ),
    "settings in a reranker": lambda fusion: RerankRetriever(
        configured(fusion, top_k=4), "ModuleReranker", model=same
    ),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_with_weights_changes_inner_fusion(fusion, wrapper):
    retriever = WRAPPERS[wrapper](fusion)
    assert groups(retriever) == {"ROOT", "FineChunk"}
    assert groups(with_weights(retriever, [1, 0])) == {"ROOT"}
    assert groups(with_weights(retriever, [0, 1])) == {"FineChunk"}
    assert groups(retriever) == {"ROOT", "FineChunk"}  # unchanged: the weights belong to a copy
    with pytest.raises(ValueError, match="are 3, for 2 retrievers"):
        with_weights(retriever, [1, 2, 3])


def test_with_weights_changes_outermost_fusion(graph, fusion):
    outer = FusionRetriever([fusion, Retriever(graph, "ROOT")])
    assert groups(with_weights(outer, [0, 1])) == {"ROOT"}


def test_with_weights_without_fusion_raises(graph):
    search = Retriever(graph, "ROOT")
    for retriever in (search, RerankRetriever(search, "ModuleReranker", model=same)):
        with pytest.raises(TypeError, match="there is none in"):
            with_weights(retriever, [1, 2])
    with pytest.raises(TypeError, match="there is none in"):
        with_weights(QueryEngine(search, lambda prompt: "Tea."), [1, 2])


def test_with_weights_for_two_fusions_raises(graph, fusion):
    routes = {"tea": ("All about tea", fusion), "rivers": ("Rivers", fusion.with_weights([2, 1]))}
    router = RouterRetriever(routes, lambda prompt: "tea")
    with pytest.raises(ValueError, match=r"has 2, \['tea', 'rivers'\]; set those of each"):
        with_weights(router, [1, 0])


def test_with_weights_changes_default_retriever(graph):
    default = DefaultRetriever(graph, "ROOT")
    assert [name for name, _ in default.inner_retrievers] == ["sentences", "words"]
    (words,) = {
        match.group for r in with_weights(default, [0, 1]).retrieve("tea") for match in r.evidence
    }
    assert words == "ROOT"
    (small,) = {
        match.group
        for r in with_weights(AutoMergeRetriever(default), [1, 0]).retrieve("tea")
        for match in r.evidence
    }
    assert small == "ROOT sentence"
    assert with_weights(default, [1, 0]).with_weights(None).weights is None
    with pytest.raises(ValueError, match="are 3, for 2 retrievers"):
        with_weights(default, [1, 1, 1])
