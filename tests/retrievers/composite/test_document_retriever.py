"""DocumentRetriever: whole documents, or windows of passages within a token budget."""

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever, as_retriever
from nodekin.retrievers.composite.document_retriever import DocumentRetriever

LONG = "Rivers run. " * 200 + "Tea is steamed. " + "Lakes rest. " * 200


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([LONG, "Coffee is roasted."])
    return graph


def test_document_retriever_without_budget_returns_documents(graph: NodeGraph) -> None:
    search = DocumentRetriever(DefaultRetriever(graph, "ROOT"), graph)
    (result,) = search.retrieve("steamed")
    assert result.text == LONG
    assert "passage" not in graph.reader.group_names()


def test_document_retriever_with_budget_returns_windows(graph: NodeGraph) -> None:
    search = DocumentRetriever(DefaultRetriever(graph, "ROOT"), graph)
    found = [result.text for result in search.retrieve("steamed", max_tokens=20)]
    native = as_retriever(graph).retrieve("steamed", max_tokens=20)
    assert found == [result.text for result in native]
    assert "Tea is steamed." in found[0]


def test_document_retriever_with_phrases_requires_phrases(graph: NodeGraph) -> None:
    search = DocumentRetriever(DefaultRetriever(graph, "ROOT"), graph).with_phrases("required")
    assert len(search.retrieve('roasted or steamed "is roasted"')) == 1
    (window,) = search.retrieve('roasted or steamed "is roasted"', max_tokens=100)
    assert window.text == "Coffee is roasted."


def test_graph_search_takes_options_of_default_search(graph: NodeGraph) -> None:
    query = 'roasted or steamed "is roasted"'
    assert len(graph.search(query)) > len(graph.search(query, phrases="required")) == 1
    windows = graph.search("steamed", max_tokens=20)
    assert windows == as_retriever(graph).retrieve("steamed", max_tokens=20)
    assert graph.search("glaciers steamed", min_score=1.0) == []


def test_default_retriever_min_score_removes_results(graph: NodeGraph) -> None:
    found = DefaultRetriever(graph).retrieve("glaciers steamed")
    lowest = found[0].score
    assert found
    assert DefaultRetriever(graph, min_score=lowest).retrieve("glaciers steamed")
    assert DefaultRetriever(graph, min_score=1.0).retrieve("glaciers steamed") == []


@pytest.mark.parametrize("options", [{"min_score": 2}, {"max_tokens": 0}, {"phrases": "all"}])
def test_graph_search_with_wrong_option_raises(
    graph: NodeGraph, options: dict[str, object]
) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be"):
        graph.search("tea", **options)  # type: ignore[arg-type]
