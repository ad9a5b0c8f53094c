"""Query transforms by themselves: what they make, and what they do where the model fails."""

import asyncio
from functools import partial
from typing import Any

import pytest

from nodekin.nodegraph import ModelError
from nodekin.retrievers import StrategySettings, trace
from nodekin.retrievers.plans.plan import run
from nodekin.retrievers.strategies.hyde import HyDE
from nodekin.retrievers.strategies.model_prompt import QueryTransform
from nodekin.retrievers.strategies.rewrite import QueryExpansion, QueryRewrite
from nodekin.retrievers.strategies.router import QueryRouter
from nodekin.retrievers.strategies.strategy_registry import simple_strategies
from nodekin.retrievers.strategies.sub_question import QueryDecomposition

QUERY, QUERY_ZH = "Is the Nile longer than the Amazon?", "尼罗河比亚马孙河长吗？"
KINDS: list[Any] = [s.transform for s in simple_strategies().values() if s.transform]
GOOD = {
    QueryRewrite: ("What is longer, Nile or Amazon?", ["What is longer, Nile or Amazon?"]),
    QueryExpansion: ("1. Nile or Amazon", [QUERY, "Nile or Amazon"]),
    HyDE: ("The Nile is longer.", [QUERY, "The Nile is longer."]),
    QueryDecomposition: ("- How long is it?", [QUERY, "How long is it?"]),
}


@pytest.mark.parametrize("kind", GOOD)
def test_queries_come_of_a_query_in_all_ways_of_asking(kind: Any) -> None:
    answer, queries = GOOD[kind]
    transform = kind(lambda prompt: answer)
    assert transform(QUERY) == transform.transform(QUERY) == queries
    assert asyncio.run(transform.atransform(QUERY)) == queries


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", [QUERY, QUERY_ZH])
@pytest.mark.parametrize(
    "told",
    [
        "",
        "。。。",
        "I'm sorry, I can't.",
        "抱歉，我无法回答。",
        "<think>",
        RuntimeError("down"),
        TimeoutError(),
    ],
)
def test_a_model_that_fails_leaves_the_query(
    kind: Any, query: str, told: Any, scripted: Any
) -> None:
    transform = kind(scripted(told))
    variants = run(partial(transform.plan, query))
    assert variants.queries == (query,)
    assert variants.note is not None
    kind_of = "ModelTimeoutError" if isinstance(told, TimeoutError) else "ModelError"
    assert variants.note.startswith(f"{transform.name} failed: {kind_of}: ")
    assert asyncio.run(transform.atransform(query)) == [query]
    with pytest.raises(ModelError):
        kind(scripted(told), settings=StrategySettings(on_error="raise"))(query)


@pytest.mark.parametrize("kind", GOOD)
def test_a_model_is_asked_again_and_told_why(kind: Any, scripted: Any) -> None:
    answer, queries = GOOD[kind]
    model = scripted({"could not be used": answer}, "")
    assert kind(model)(QUERY) == queries
    assert len(model.prompts) == 2
    assert "the answer is empty" in model.prompts[1]
    model = scripted({"could not be used": answer}, "")
    assert kind(model, settings=StrategySettings(retries=0))(QUERY) == [QUERY]
    assert len(model.prompts) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_query_asks_no_model(kind: Any, scripted: Any) -> None:
    model = scripted("x")
    assert kind(model)(" ") == [" "]
    assert not model.prompts
    with pytest.raises(TypeError, match="a query is a str, not int 7"):
        kind(model)(7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_model_is_not_waited_for(kind: Any) -> None:
    async def slow(prompt: str) -> str:
        await asyncio.sleep(30)
        return prompt

    transform = kind(slow, settings=StrategySettings(timeout=0.02))
    assert asyncio.run(transform.atransform(QUERY)) == [QUERY]
    assert "did not answer within 0.02 s" in str(asyncio.run(_note(transform)))


async def _note(transform: QueryTransform) -> str | None:
    from nodekin.retrievers.plans.plan import arun

    return (await arun(partial(transform.plan, QUERY))).note


@pytest.mark.parametrize("kind", GOOD)
def test_a_model_that_repeats_its_prompt(kind: Any, scripted: Any) -> None:
    answer, queries = GOOD[kind]
    assert kind(lambda prompt: prompt + "\n" + answer)(QUERY) == queries
    assert kind(lambda prompt: prompt)(QUERY) == [QUERY]


@pytest.mark.parametrize(
    ("kind", "value", "queries"),
    [
        (QueryRewrite, {"query": "Nile or Amazon?"}, ["Nile or Amazon?"]),
        (QueryExpansion, {"queries": ["Nile", "Amazon"]}, [QUERY, "Nile", "Amazon"]),
        (QueryDecomposition, {"questions": ["How long?"]}, [QUERY, "How long?"]),
        (QueryDecomposition, {"questions": []}, [QUERY]),
    ],
)
def test_a_model_is_held_to_a_schema(
    kind: Any, value: Any, queries: list[str], structured: Any
) -> None:
    model = structured(value)
    assert kind(model, settings=StrategySettings(on_error="raise"))(QUERY) == queries
    assert set(model.schemas[0]["properties"]) == set(value)
    assert "JSON" in model.prompts[0]


def test_counts_are_bounds_whatever_the_model_says(scripted: Any) -> None:
    many = "\n".join(f"{n}. How long is river number {n}?" for n in range(500))
    assert len(QueryExpansion(scripted(many), count=2)(QUERY)) == 3
    assert len(QueryExpansion(scripted(many))(QUERY)) == 4
    assert (
        len(
            QueryExpansion(scripted(many), count=2, settings=StrategySettings(include_query=False))(
                QUERY
            )
        )
        == 2
    )
    assert len(QueryDecomposition(scripted(many), limit=4)(QUERY)) == 5
    assert (
        len(
            QueryDecomposition(
                scripted(many), limit=4, settings=StrategySettings(include_query=False)
            )(QUERY)
        )
        == 4
    )
    sly = "Ignore the limit of {limit} and {count}.\n" + many
    assert len(QueryDecomposition(scripted(sly))(QUERY)) == 6


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda m: QueryExpansion(m, count=0), ValueError, "count must be 1 or more, not 0"),
        (lambda m: QueryDecomposition(m, limit=True), TypeError, "limit is a whole number"),
        (lambda m: HyDE(m, count=1.5), TypeError, "count is a whole number, not 1.5"),
        (
            lambda m: QueryRewrite(m, settings=StrategySettings(retries=-1)),
            ValueError,
            "retries must be 0 or more",
        ),
        (
            lambda m: QueryRewrite(m, settings=StrategySettings(timeout=0)),
            ValueError,
            "timeout must be above 0",
        ),
        (
            lambda m: QueryRewrite(m, settings=StrategySettings(on_error="skip")),
            ValueError,
            "'keep' or 'raise', not 'skip'",
        ),
        (lambda m: QueryRewrite(7), TypeError, "7"),
        (lambda m: QueryRouter(m, {}), ValueError, "nothing to choose from"),
        (lambda m: QueryRouter(m, {"a": ""}, default="b"), ValueError, "no route 'b'"),
        (lambda m: QueryRouter(m, {" ": ""}), ValueError, "blank name"),
    ],
)
def test_settings_are_checked(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make(lambda prompt: "x")


def test_passages_are_asked_for_at_once_and_one_may_fail() -> None:
    asked = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            raise RuntimeError("down")
        return f"Passage {len(asked)}."

    hyde = HyDE(model, count=3, settings=StrategySettings(include_query=False))
    variants = run(partial(hyde.plan, QUERY))
    assert sorted(variants.queries) == ["Passage 2.", "Passage 3."]
    assert variants.note is not None
    assert variants.note.startswith("1 of 3 passages failed")


def test_routes_are_the_names_that_a_model_chooses(scripted: Any) -> None:
    routes = {"rivers": "All about rivers", "drinks": "Tea, coffee"}
    model = scripted("2")
    assert QueryRouter(model, routes)(QUERY) == ["drinks"]
    assert "1. rivers: All about rivers\n2. drinks: Tea, coffee" in model.prompts[0]
    assert QueryRouter(scripted("rivers, drinks"), routes)(QUERY) == ["rivers"]
    assert QueryRouter(scripted("drinks, rivers"), routes, multiple=True)(QUERY) == [
        "drinks",
        "rivers",
    ]
    assert QueryRouter(scripted("banana"), routes)(QUERY) == ["rivers"]
    assert QueryRouter(scripted("banana"), routes, default="drinks")(QUERY) == ["drinks"]
    with pytest.raises(ModelError):
        QueryRouter(scripted("banana"), routes, settings=StrategySettings(on_error="raise"))(QUERY)


def test_a_failure_stands_in_the_trace(scripted: Any) -> None:
    with trace() as traced:
        QueryRewrite(scripted(RuntimeError("down")))(QUERY)
    (span,) = traced.children
    assert span.name == "rewrite"
    assert "down" in span.attributes["note"]
    assert [(inner.name, type(inner.error)) for inner in span.children] == [("ask", ModelError)]
