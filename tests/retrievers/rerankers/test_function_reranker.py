"""Functions as rerankers."""

import math

import numpy as np
import pytest
from support.fixed_retriever import candidates, text_scores

from nodekin.nodegraph import Node
from nodekin.retrievers import Reranker, register_reranker
from nodekin.retrievers.protocols import RerankError


@pytest.mark.usefixtures("clean_registry")
def test_function_of_node_returns_score() -> None:
    @register_reranker(batch=False)
    def by_length(node, query, at_least=0):
        return len(node.text) + len(query) if len(node.text) >= at_least else None

    results = candidates("a", "bbb", "cc")
    assert text_scores(Reranker("by_length")(results, "q")) == [
        ("bbb", 4.0),
        ("cc", 3.0),
        ("a", 2.0),
    ]
    assert text_scores(Reranker(by_length, at_least=2)(results, "q")) == [("bbb", 4.0), ("cc", 3.0)]
    reranker = Reranker("by_length", at_least=2, top_k=2)
    assert text_scores(reranker(results, "q", top_k=1)) == [("bbb", 4.0)]
    assert text_scores(reranker(results, "q")) == [("bbb", 4.0), ("cc", 3.0)]
    best = Reranker("by_length")(results, "q")[0]
    assert [e.similarity for e in best.evidence] == ["by_length", "bm25"]
    assert by_length(Node("abc"), "q") == 4


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize("bare", [True, False])
def test_function_returning_node_filters(bare) -> None:
    def keeps(node, **kwargs):
        assert kwargs == {"query": "q", "words": ["a", "c"]}
        return node if node.text in kwargs["words"] else None

    (register_reranker if bare else register_reranker())(keeps)
    results = candidates("a", "b", "c")
    assert Reranker("keeps", words=["a", "c"])(results, query="q") == [results[0], results[2]]


@pytest.mark.usefixtures("clean_registry")
def test_function_returning_bool_filters() -> None:
    register_reranker(lambda node: node.text != "b", name="not_b")
    assert [r.node.text for r in Reranker("not_b")(candidates("a", "b", "c"), "q")] == ["a", "c"]


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda nodes: [3, 1, 2], [("a", 3.0), ("c", 2.0), ("b", 1.0)]),
        (lambda nodes: np.array([-1, -2, -1.0]), [("a", -1.0), ("c", -1.0), ("b", -2.0)]),
        (lambda nodes: [1, None, 2], [("c", 2.0), ("a", 1.0)]),
        (lambda nodes: nodes[::-1], [("c", 1.0), ("b", 0.5), ("a", 1 / 3)]),
        (lambda nodes: nodes[1:2], [("b", 1.0)]),
        (lambda nodes: [Node("B", id=nodes[1].id), nodes[0]], [("B", 1.0), ("a", 0.5)]),
        (lambda nodes: [(nodes[1], 5), (nodes[0], 7)], [("a", 7.0), ("b", 5.0)]),
        (lambda nodes: [], []),
    ],
)
def test_batch_function_ranks_all_nodes(made, expected) -> None:
    @register_reranker(batch=True)
    def whole(nodes, q):
        assert q == "q"
        return made(nodes)

    results = Reranker("whole")(candidates("a", "b", "c"), "q")
    assert text_scores(results) == expected
    assert all(r.evidence[0].similarity == "whole" for r in results)
    assert Reranker("whole")([], "q") == []


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize(
    ("batch", "made", "says"),
    [
        (False, "yes", "'bad' returned 'yes'; for one node it returns a score, the node"),
        (False, math.nan, "finite number as a score"),
        (True, None, "for all nodes in one call it returns a list of scores"),
        (True, [1.0], "a score for each of 2 nodes"),
        (True, [Node("other")], "one of the nodes that it was given"),
        (True, [1.0, "x"], "finite number as a score"),
        (True, [True, False], "finite number as a score"),
    ],
)
def test_invalid_return_value_raises(batch, made, says) -> None:
    register_reranker(batch=batch, name="bad")(lambda nodes: made)
    with pytest.raises(RerankError, match=says):
        Reranker("bad")(candidates("a", "b"), "q")


@pytest.mark.usefixtures("clean_registry")
def test_failing_function_raises_rerank_error() -> None:
    @register_reranker
    def broken(node, query):
        raise KeyError(query)

    with pytest.raises(RerankError, match="'broken' failed: KeyError: 'q'"):
        Reranker(broken)(candidates("a"), "q")


@pytest.mark.usefixtures("clean_registry")
def test_invalid_registration_or_setting_raises() -> None:
    async def waits(node):
        return 1

    with pytest.raises(ValueError, match="'KeywordFilter' is nodekin's own"):
        register_reranker(lambda node: 1, name="KeywordFilter")
    with pytest.raises(TypeError, match="a reranker is a function"):
        register_reranker(Node)
    with pytest.raises(TypeError, match="is async; write an object"):
        register_reranker(waits)
    register_reranker(lambda node, weight=1: weight, name="mine")
    with pytest.raises(TypeError, match="'mine' has no setting 'wight'; it has 'weight'"):
        Reranker("mine", wight=2)
