"""Rerankers by name, function or object; limits, formats and errors."""

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cross_encoders import Reranks, Scores, scoring
from support.fixed_retriever import candidates, text_scores

from nodekin.nodegraph import Node
from nodekin.retrievers import KeywordFilter, Reranker, ScoredNode, trace
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.ranking import cut_scores


def reranked(*scores: float, **settings: Any) -> list[ScoredNode]:
    reranker = Reranker("ModuleReranker", model=scoring(*scores), **settings)
    made: list[ScoredNode] = reranker(candidates(*"abcdefgh"[: len(scores)]), "q")
    return made


def test_results_have_scores_evidence_and_span() -> None:
    with trace() as traced:
        results = reranked(0.1, 0.9, name="mine")
    assert text_scores(results) == [("b", 0.9), ("a", 0.1)]
    assert [(e.similarity, e.score, e.query) for e in results[0].evidence] == [
        ("ModuleReranker", 0.9, "q"),
        ("bm25", 9.0, "q"),
    ]
    assert results[0].evidence[0].node == results[0].node
    (done,) = traced.children
    assert done.name == "rerank"
    assert done.attributes == {"reranker": "mine", "query": "q", "candidates": 2, "results": 2}
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
        ("ModuleReranker", {}, TypeError, r"needs model: write Reranker\('ModuleReranker', model="),
        ("ModuleReranker", {"modl": 1}, TypeError, "no setting 'modl'; it has 'model'"),
        ("ModuleReranker", {**CROSS, "max_tokens": 0}, ValueError, "max_tokens must be 1"),
        ("ModuleReranker", {**CROSS, "overlap": 0.5}, TypeError, "overlap must be an integer"),
        ("ModuleReranker", {**CROSS, "search_text": 3}, TypeError, "search_text must be"),
        ("ModuleReranker", {**CROSS, "length": 3}, TypeError, "length must be a function"),
        (lambda node: 1, {}, TypeError, "a function below @register_reranker"),
        (Reverses, {}, TypeError, "a reranker is one of"),
        (Reranks(), {}, TypeError, r'if it is a model, write Reranker\("ModuleReranker", model='),
        (Reverses(), {"model": 1}, TypeError, r"give them to Reverses\(...\) itself"),
        (Reverses(), {"top_k": 0}, ValueError, "top_k must be 1 or more"),
        (Reverses(), {"cut_off": 1}, TypeError, "'cut_off' is called 'min_score' here"),
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
            with pytest.raises(TypeError, match=r"a list of ScoredNode, not .*tea|not None"):
                other(results, "tea")
