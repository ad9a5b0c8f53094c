"""The router: a route that a model chooses."""

import asyncio
from typing import Any

import pytest
from support.fixed_retriever import FailingRetriever

from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode, trace
from nodekin.retrievers.strategies.router import RouterRetriever

QUERY = "Nile 尼罗河"


@pytest.fixture
def routes(rivers: NodeGraph) -> dict[str, Any]:
    english = Retriever(rivers, "ROOT", filters={"lang": "en"})
    chinese = Retriever(rivers, "ROOT", filters={"lang": "zh"})
    return {"english": ("Texts in English", english), "chinese": chinese}


def best(results: list[ScoredNode]) -> list[str]:
    return [result.node.id for result in results[:1]]


@pytest.mark.parametrize(
    ("answer", "found", "taken"),
    [
        ("english", "nile", "english"),
        ("2", "nile-zh", "chinese"),
        ("banana", "nile", "english"),
        ("", "nile", "english"),
    ],
)
def test_router_searches_the_chosen_route(
    answer: str, found: str, taken: str, routes: dict[str, Any], scripted: Any
) -> None:
    router = RouterRetriever(routes, scripted(answer))
    results = router.retrieve(QUERY)
    assert best(results) == [found] == best(asyncio.run(router.aretrieve(QUERY)))
    (variant,) = results[0].evidence[0].variants
    assert variant.strategy == f"route for '{taken}'"
    assert ("route failed" in str(variant.note)) == (answer in ("banana", ""))
    assert router.query_transform(QUERY) == [taken]


def test_useless_choice_takes_default_or_raises(routes: dict[str, Any], scripted: Any) -> None:
    router = RouterRetriever(routes, scripted("banana"), default="chinese")
    assert best(router.retrieve(QUERY)) == ["nile-zh"]
    with pytest.raises(ModelError, match="names none of 'english', 'chinese'"):
        RouterRetriever(routes, scripted("banana"), on_error="raise").retrieve(QUERY)


def test_default_replaces_a_failed_route(routes: dict[str, Any], scripted: Any) -> None:
    routes["closed"] = FailingRetriever(None)
    router = RouterRetriever(routes, scripted("closed"), default="chinese")
    results = router.retrieve(QUERY)
    assert best(results) == ["nile-zh"] == best(asyncio.run(router.aretrieve(QUERY)))
    explanation = results[0].explain()
    assert "route for 'chinese' of" in explanation
    assert f"1 of 2 searches failed: '{QUERY}' for 'closed': RuntimeError" in explanation
    with pytest.raises(RuntimeError, match="unreachable"):
        RouterRetriever(routes, scripted("closed"), on_error="raise").retrieve(QUERY)
    routes["chinese"] = FailingRetriever(None)
    with pytest.raises(RuntimeError, match="unreachable"):
        RouterRetriever(routes, scripted("closed"), default="chinese").retrieve(QUERY)


def test_schema_contains_the_route_names(routes: dict[str, Any], structured: Any) -> None:
    model = structured({"name": "chinese"})
    assert best(RouterRetriever(routes, model).retrieve(QUERY)) == ["nile-zh"]
    assert model.schemas[0]["properties"]["name"]["enum"] == ["english", "chinese"]
    assert "1. english: Texts in English\n2. chinese\n" in model.prompts[0]


def test_route_gets_its_queries_in_one_call(routes: dict[str, Any], scripted: Any) -> None:
    router = RouterRetriever(routes, scripted({"尼": "chinese"}, "english"))
    with trace() as traced:
        results = router.batch(["Nile", "尼罗河", "Amazon", "tea", " "])
    # A blank query lists the nodes that meet the route's own conditions.
    assert [best(r) for r in results] == [["nile"], ["nile-zh"], ["amazon"], ["tea"], ["nile"]]
    searches = [s.attributes["query"] for s in traced.children[0].children if s.name == "search"]
    assert sorted(searches) == ["", "3 queries", "尼罗河"]
    assert asyncio.run(router.abatch(["Nile", "尼罗河"])) == results[:2]


def test_invalid_arguments_raise(routes: dict[str, Any], plain: Retriever) -> None:
    with pytest.raises(TypeError, match="the route 'a' must be an object"):
        RouterRetriever({"a": 7}, str.upper)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="routes must not be empty"):
        RouterRetriever({}, str.upper)
    with pytest.raises(ValueError, match="default must be a route, got 'b'; known: 'a'"):
        RouterRetriever({"a": plain}, str.upper, default="b")
