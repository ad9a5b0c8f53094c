import pytest

from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import RerankRetriever, Retriever, ScoredNode, TokenLimit


def _results(*texts):
    return [ScoredNode(Node(text), 1.0) for text in texts]


def _texts(results):
    return [result.node.text for result in results]


def test_token_limit_ends_at_first_long_result():
    results = _results("one two", "three four five", "six")
    assert _texts(TokenLimit(5).rerank(results, "")) == ["one two", "three four five"]
    assert _texts(TokenLimit(4).rerank(results, "")) == ["one two"]


def test_token_limit_keeps_first_result():
    assert _texts(TokenLimit(1).rerank(_results("one two", "three"), "")) == ["one two"]
    assert TokenLimit(1).rerank([], "") == []


def test_token_limit_uses_given_length():
    results = _results("一二三", "四五", "六")
    assert _texts(TokenLimit(5, length=len).rerank(results, "")) == ["一二三", "四五"]


@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (1.5, TypeError), ("9", TypeError)])
def test_invalid_token_limit_raises(number, error):
    with pytest.raises(error, match="max_tokens"):
        TokenLimit(number)


def test_token_limit_around_retriever_limits_results():
    graph = NodeGraph(progress=False)
    graph.add(["tea " * n for n in (1, 2, 3)])
    retriever = RerankRetriever(Retriever(graph, "ROOT"), "TokenLimit", max_tokens=5, top_k=3)
    assert len(retriever("tea")) == 2
