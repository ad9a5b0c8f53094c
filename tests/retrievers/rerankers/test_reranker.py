"""Rerankers by name, function or object; limits, formats and errors."""

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cross_encoders import Reranks, Scores, scoring
from support.fixed_retriever import candidates, text_scores

from nodekin.nodegraph import Node
from nodekin.retrievers import KeywordFilter, Reranker, ScoredNode, register_reranker, trace
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.ranking import cut_scores
from nodekin.retrievers.rerankers.reranker import RERANKERS


def reranked(*scores: float, **settings: Any) -> list[ScoredNode]:
    reranker = Reranker("ModuleReranker", model=scoring(*scores), **settings)
    made: list[ScoredNode] = reranker(candidates(*"abcdefgh"[: len(scores)]), "q")
    return made


def test_results_have_scores_evidence_and_span() -> None:
    with trace() as traced:
        results = reranked(0.1, 0.9)
    assert text_scores(results) == [("b", 0.9), ("a", 0.1)]
    assert [(e.similarity, e.score, e.query) for e in results[0].evidence] == [
        ("ModuleReranker", 0.9, "q"),
        ("bm25", 9.0, "q"),
    ]
    assert results[0].evidence[0].node == results[0].node
    (done,) = traced.children
    assert done.name == "rerank"
    counts = {"candidates": 2, "results": 2}
    assert done.attributes == {"reranker": "ModuleReranker", "query": "q", **counts}
    (model,) = done.children
    assert (model.name, model.attributes) == ("model", {"passages": 2, "windows": 2})


@given(st.lists(st.floats(-1e6, 1e6), max_size=8), st.integers(1, 9))
def test_reranker_sorts_any_scores(scores: list[float], top_k: int) -> None:
    """Ties keep their order. Without results the model is not called."""
    named = sorted(zip("abcdefgh", scores, strict=False), key=lambda pair: -pair[1])
    assert text_scores(reranked(*scores, top_k=top_k)) == named[:top_k]


@pytest.mark.parametrize(
    ("scores", "settings", "kept"),
    [
        ([0.9, 0.28, 0.27], {"min_score": 0.28}, [0.9, 0.28]),
        ([0.8, 0.4, 0.39], {"relative_cut": 0.5}, [0.8, 0.4]),
        ([0.8, 0.4, 0.3], {"relative_cut": 0.25, "min_score": 0.35}, [0.8, 0.4]),
        ([-2.0, -3.0, -3.1], {"relative_cut": 0.5}, [-2.0, -3.0]),
        ([0.0, 0.0, -0.1], {"relative_cut": 0.5}, [0.0, 0.0]),
        ([1.0, 0.0, -0.1], {"relative_cut": 0}, [1.0, 0.0]),
        ([1.0, 1.0, 0.9], {"relative_cut": 1}, [1.0, 1.0]),
        ([-1.0, -1.0, -1.1], {"relative_cut": 1}, [-1.0, -1.0]),
        ([0.1, 0.2, 0.0], {"min_score": 0.5}, []),
        ([-1.0, -2.0], {"min_score": -1.5}, [-1.0]),
    ],
)
def test_reranker_applies_cuts(scores: list[float], settings: Any, kept: list[float]) -> None:
    assert [r.score for r in reranked(*scores, **settings)] == kept
    assert cut_scores([], **settings) == []


class Reverses:
    name = "reverses"

    def rerank(self, results: Any, query: str) -> Any:
        return [ScoredNode(r.node, -r.score, r.evidence) for r in reversed(results)]


def test_custom_reranker_object_is_used() -> None:
    reranker = Reranker(Reverses(), top_k=1)
    assert text_scores(reranker(candidates("a", "b"), "q")) == [("b", -9.0)]
    assert text_scores(asyncio.run(reranker.arerank(candidates("a", "b"), "q"))) == [("b", -9.0)]
    assert Reranker(reranker, output_format="content")(candidates("a", "b"), "q") == ["b"]


CROSS: dict[str, Any] = {"model": Scores()}


@pytest.mark.parametrize(
    ("given", "settings", "error", "says"),
    [
        (
            "ModulReranker",
            {},
            ValueError,
            "unknown reranker 'ModulReranker'; known: 'ModuleReranker'",
        ),
        ("ModuleReranker", {}, TypeError, "required positional argument: 'model'"),
        ("ModuleReranker", {"modl": 1}, TypeError, "no setting 'modl'; it has 'model'"),
        ("ModuleReranker", {**CROSS, "max_tokens": 0}, ValueError, "max_tokens must be 1"),
        ("ModuleReranker", {**CROSS, "length": 3}, TypeError, "length must be a function"),
        (lambda node: 1, {}, TypeError, "a function below @register_reranker"),
        (Reverses, {}, TypeError, "a reranker is one of"),
        (Reranks(), {}, TypeError, r'if it is a model, write Reranker\("ModuleReranker", model='),
        (Reverses(), {"model": 1}, TypeError, r"give them to Reverses\(...\) itself"),
        (Reverses(), {"top_k": 0}, ValueError, "top_k must be 1 or more"),
        (Reverses(), {"score_threshold": 1}, TypeError, "called 'min_score' here"),
        (Reverses(), {"min_score": "1"}, TypeError, "min_score must be a number, got '1'"),
        (Reverses(), {"min_score": math.nan}, ValueError, "min_score must be a number"),
        (Reverses(), {"relative_cut": 1.5}, ValueError, "must be from 0 to 1, got 1.5"),
        (Reverses(), {"output_format": "text"}, ValueError, "output_format must be"),
        (Reverses(), {"join": True}, ValueError, "join=True joins contents"),
    ],
)
def test_reranker_with_invalid_argument_raises(
    given: Any, settings: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Reranker(given, **settings)


def test_reranker_call_with_invalid_argument_raises() -> None:
    reranker: Any = Reranker(Reverses())
    with pytest.raises(TypeError, match="a query must be a str, got int 3"):
        reranker(candidates("a"), 3)
    with pytest.raises(ValueError, match="top_k must be 1 or more"):
        reranker(candidates("a"), "q", top_k=0)

    class Wrong(Reverses):
        def rerank(self, results: Any, query: str) -> Any:
            return [result.node for result in results]

    with pytest.raises(RerankError, match="returns a list of ScoredNode"):
        Reranker(Wrong())(candidates("a"), "q")
    results: Any
    for results in ([Node("tea")], Node("tea"), ["tea"], "tea", None):
        for other in (Reranker(KeywordFilter(required="tea")), reranker):
            with pytest.raises(TypeError, match=r"a list of ScoredNode, got .*tea|got None"):
                other(results, "tea")


# Functions as rerankers


@pytest.fixture(autouse=True)
def clean_registry() -> Iterator[None]:
    """Restore the registry of rerankers after each test."""
    before = dict(RERANKERS)
    yield
    RERANKERS.clear()
    RERANKERS.update(before)


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


@pytest.mark.parametrize("bare", [True, False])
def test_function_returning_node_filters(bare) -> None:
    def keeps(node, **kwargs):
        assert kwargs == {"query": "q", "words": ["a", "c"]}
        return node if node.text in kwargs["words"] else None

    (register_reranker if bare else register_reranker())(keeps)
    results = candidates("a", "b", "c")
    assert Reranker("keeps", words=["a", "c"])(results, query="q") == [results[0], results[2]]


def test_function_returning_bool_filters() -> None:
    register_reranker(lambda node: node.text != "b", name="not_b")
    assert [r.node.text for r in Reranker("not_b")(candidates("a", "b", "c"), "q")] == ["a", "c"]


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


def test_failing_function_raises_rerank_error() -> None:
    @register_reranker
    def broken(node, query):
        raise KeyError(query)

    with pytest.raises(RerankError, match="'broken' failed: KeyError: 'q'"):
        Reranker(broken)(candidates("a"), "q")


def test_invalid_registration_or_setting_raises() -> None:
    async def waits(node):
        return 1

    with pytest.raises(TypeError, match="a reranker must be a function"):
        register_reranker(Node)
    with pytest.raises(TypeError, match="is async; write an object"):
        register_reranker(waits)
    register_reranker(lambda node, weight=1: weight, name="mine")
    with pytest.raises(TypeError, match="'mine' has no setting 'wight'; it has 'weight'"):
        Reranker("mine", wight=2)
