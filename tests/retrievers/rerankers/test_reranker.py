"""Rerankers by name, function or object; limits, formats and errors."""

import asyncio
import math
from typing import Any

import pytest
from cross_encoders import Reranks, Scores, scoring
from fixed_retriever import candidates, text_scores
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Node
from nodekin.retrievers import KeywordFilter, Reranker, ScoredNode, register_reranker, trace
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.ranking import cut_scores

# The model's scores


def test_reranker_sorts_by_scores_of_model() -> None:
    results = Reranker("ModuleReranker", model=scoring(0.1, 0.9))(candidates("a", "b"), "q")
    assert text_scores(results) == [("b", 0.9), ("a", 0.1)]
    assert [(e.similarity, e.score, e.query) for e in results[0].evidence] == [
        ("ModuleReranker", 0.9, "q"),
        ("bm25", 9.0, "q"),
    ]
    assert results[0].evidence[0].node == results[0].node
    assert "itself" in results[0].explain()


def test_reranker_ties_keep_order() -> None:
    results = Reranker("ModuleReranker", model=scoring(1, 2, 1, 2))(
        candidates("a", "b", "c", "d"), "q"
    )
    assert [r.node.text for r in results] == ["b", "d", "a", "c"]


def test_reranker_sorts_negative_scores() -> None:
    results = Reranker("ModuleReranker", model=scoring(-5.0, -0.5, -9.0))(
        candidates("a", "b", "c"), "q"
    )
    assert text_scores(results) == [("b", -0.5), ("a", -5.0), ("c", -9.0)]


def test_reranker_without_results_does_not_call_model() -> None:
    def model(query, texts):
        raise AssertionError("called")

    assert Reranker("ModuleReranker", model=model)([], "q") == []
    assert asyncio.run(Reranker("ModuleReranker", model=model).arerank([], "q")) == []
    assert (
        Reranker("ModuleReranker", model=model, output_format="content", join=True)([], "q") == ""
    )


@given(st.lists(st.floats(-1e6, 1e6), max_size=8), st.integers(1, 9))
def test_reranker_sorts_any_scores(scores, top_k) -> None:
    results = candidates(*"abcdefgh"[: len(scores)])
    made = Reranker("ModuleReranker", model=scoring(*scores), top_k=top_k)(results, "q")
    expected = sorted(zip(results, scores, strict=True), key=lambda pair: -pair[1])[:top_k]
    assert text_scores(made) == [(result.node.text, score) for result, score in expected]


def test_reranker_applies_format_and_top_k() -> None:
    settings = {"model": scoring(0, 1, 2), "output_format": "content"}
    results = candidates("a", "b", "c")
    assert Reranker("ModuleReranker", top_k=2, **settings)(results, "q") == ["c", "b"]
    assert Reranker("ModuleReranker", top_k=2, **settings)(results, "q", top_k=1) == ["c"]
    assert Reranker("ModuleReranker", join=", ", **settings)(results, query="q") == "c, b, a"


# Cuts


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
def test_reranker_applies_cuts(scores, settings, kept) -> None:
    results = candidates(*"abc"[: len(scores)])
    made = Reranker("ModuleReranker", model=scoring(*scores), **settings)(results, "q")
    assert [r.score for r in made] == kept
    assert cut_scores([], **settings) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 1))
def test_relative_cut_keeps_best_result(scores, share) -> None:
    node = Node("a")
    results = [ScoredNode(node, score) for score in sorted(scores, reverse=True)]
    kept = cut_scores(results, relative_cut=share)
    assert kept[0] == results[0]
    assert kept == results[: len(kept)]


# Registered functions


@pytest.mark.usefixtures("clean_registry")
def test_invalid_registration_raises() -> None:
    with pytest.raises(ValueError, match="'KeywordFilter' is nodekin's own"):
        register_reranker(lambda node: 1, name="KeywordFilter")
    with pytest.raises(TypeError, match="a reranker is a function"):
        register_reranker(Node)

    async def waits(node):
        return 1

    with pytest.raises(TypeError, match="is async; write an object"):
        register_reranker(waits)

    @register_reranker
    def mine(node, weight=1):
        return weight

    with pytest.raises(TypeError, match="'mine' has no setting 'wight'; it has 'weight'"):
        Reranker("mine", wight=2)
    with pytest.raises(TypeError, match="'mine' has no setting 'wight'"):
        Reranker("mine")(candidates("a"), "q", wight=2)


# Objects, and what is refused


class Reverses:
    name = "reverses"

    def rerank(self, results, query):
        return [ScoredNode(r.node, -r.score, r.evidence) for r in reversed(results)]


def test_custom_reranker_object_is_used() -> None:
    reranker = Reranker(Reverses(), top_k=1)
    assert text_scores(reranker(candidates("a", "b"), "q")) == [("b", -9.0)]
    assert text_scores(asyncio.run(reranker.arerank(candidates("a", "b"), "q"))) == [("b", -9.0)]
    around = Reranker(reranker, output_format="content")
    assert around(candidates("a", "b"), "q") == ["b"]


@pytest.mark.parametrize(
    ("given", "settings", "error", "says"),
    [
        ("ModulReranker", {}, ValueError, "no reranker 'ModulReranker'; there is 'ModuleReranker'"),
        ("ModuleReranker", {}, TypeError, r"needs model: write Reranker\('ModuleReranker', model="),
        ("ModuleReranker", {"modl": 1}, TypeError, "no setting 'modl'; it has 'model'"),
        (lambda node: 1, {}, TypeError, "a function below @register_reranker"),
        (Reverses, {}, TypeError, "a reranker is one of"),
        (
            Reranks(),
            {},
            TypeError,
            r'if it is a model, write Reranker\("ModuleReranker", model=',
        ),
        (Reverses(), {"model": 1}, TypeError, r"give them to Reverses\(...\) itself"),
        (Reverses(), {"top_k": 0}, ValueError, "top_k must be 1 or more"),
        (Reverses(), {"cut_off": 1}, TypeError, "'cut_off' is called 'min_score' here"),
        (Reverses(), {"min_score": "1"}, TypeError, "min_score is a number, not '1'"),
        (Reverses(), {"min_score": math.nan}, ValueError, "min_score is a number"),
        (Reverses(), {"relative_cut": 1.5}, ValueError, "share of the top score, 0 to 1, not 1.5"),
        (Reverses(), {"output_format": "text"}, ValueError, "output_format is"),
        (Reverses(), {"join": True}, ValueError, "join=True joins contents"),
        (
            "ModuleReranker",
            {"model": Scores(), "max_tokens": 0},
            ValueError,
            "max_tokens must be 1",
        ),
        ("ModuleReranker", {"model": Scores(), "overlap": 0.5}, TypeError, "overlap is a whole"),
        ("ModuleReranker", {"model": Scores(), "search_text": 3}, TypeError, "search_text must be"),
        ("ModuleReranker", {"model": Scores(), "length": 3}, TypeError, "length is a function"),
    ],
)
def test_reranker_with_invalid_argument_raises(given, settings, error, says) -> None:
    with pytest.raises(error, match=says):
        Reranker(given, **settings)


def test_reranker_call_with_invalid_argument_raises() -> None:
    with pytest.raises(TypeError, match="a query is a str, not int 3"):
        Reranker(Reverses())(candidates("a"), 3)
    with pytest.raises(ValueError, match="top_k must be 1 or more"):
        Reranker(Reverses())(candidates("a"), "q", top_k=0)

    class Wrong:
        name = "wrong"

        def rerank(self, results, query):
            return [result.node for result in results]

    with pytest.raises(RerankError, match="returns a list of ScoredNode"):
        Reranker(Wrong())(candidates("a"), "q")


def test_reranker_records_span() -> None:
    with trace() as traced:
        Reranker("ModuleReranker", model=scoring(1, 2), name="mine")(candidates("a", "b"), "q")
    (done,) = traced.children
    assert done.name == "rerank"
    assert done.attributes == {"reranker": "mine", "query": "q", "candidates": 2, "results": 2}
    assert [(s.name, s.attributes) for s in done.children] == [
        ("model", {"passages": 2, "windows": 2})
    ]


@pytest.mark.parametrize("results", [[Node("tea")], Node("tea"), ["tea"], "tea", None])
def test_results_of_wrong_type_raise(results: Any) -> None:
    for reranker in (
        Reranker(KeywordFilter(required="tea")),
        Reranker("ModuleReranker", model=_ones),
    ):
        with pytest.raises(TypeError, match=r"a list of ScoredNode, not .*tea|not None"):
            reranker(results, "tea")


def _ones(query: str, texts: list[str]) -> list[float]:
    return [1.0] * len(texts)
