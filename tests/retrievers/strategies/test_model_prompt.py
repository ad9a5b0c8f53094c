"""Query transforms: their queries, and their reactions to failed models."""

import asyncio
from typing import Any

import pytest

from nodekin.retrievers.strategies.hyde import HyDE
from nodekin.retrievers.strategies.query_decomposition import QueryDecomposition
from nodekin.retrievers.strategies.rewrite import QueryExpansion, QueryRewrite
from nodekin.retrievers.strategies.router import QueryRouter
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

QUERY, QUERY_ZH = "Is the Nile longer than the Amazon?", "尼罗河比亚马孙河长吗？"
KINDS: list[Any] = [s.transform for s in STRATEGIES.values() if s.transform]
GOOD = {
    QueryRewrite: ("What is longer, Nile or Amazon?", ["What is longer, Nile or Amazon?"]),
    QueryExpansion: ("1. Nile or Amazon", [QUERY, "Nile or Amazon"]),
    HyDE: ("The Nile is longer.", [QUERY, "The Nile is longer."]),
    QueryDecomposition: ("- How long is it?", [QUERY, "How long is it?"]),
}


@pytest.mark.parametrize("kind", GOOD)
def test_useless_answer_is_requested_again(kind: Any, scripted: Any) -> None:
    answer, queries = GOOD[kind]
    model = scripted({"could not be used": answer}, "")
    assert kind(model)(QUERY) == queries
    assert len(model.prompts) == 2
    assert "the answer is empty" in model.prompts[1]
    model = scripted({"could not be used": answer}, "")
    assert kind(model, retries=0)(QUERY) == [QUERY]
    assert len(model.prompts) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_blank_query_calls_no_model(kind: Any, scripted: Any) -> None:
    model = scripted("x")
    assert kind(model)(" ") == asyncio.run(kind(model).acall(" ")) == [" "]
    assert not model.prompts
    with pytest.raises(TypeError, match="a query must be a str, got int 7"):
        kind(model)(7)


@pytest.mark.parametrize(
    ("kind", "value", "queries"),
    [
        (QueryRewrite, {"query": "Nile or Amazon?"}, ["Nile or Amazon?"]),
        (QueryExpansion, {"queries": ["Nile", "Amazon"]}, [QUERY, "Nile", "Amazon"]),
        (QueryDecomposition, {"questions": ["How long?"]}, [QUERY, "How long?"]),
        (QueryDecomposition, {"questions": []}, [QUERY]),
    ],
)
def test_structured_model_gets_a_schema(
    kind: Any, value: Any, queries: list[str], structured: Any
) -> None:
    model = structured(value)
    assert kind(model, on_error="raise")(QUERY) == queries
    assert set(model.schemas[0]["properties"]) == set(value)
    assert "JSON" in model.prompts[0]


def test_max_queries_limits_any_answer(scripted: Any) -> None:
    many = "\n".join(f"{n}. How long is river number {n}?" for n in range(500))
    assert len(QueryExpansion(scripted(many), max_queries=2)(QUERY)) == 3
    assert len(QueryExpansion(scripted(many))(QUERY)) == 4
    assert len(QueryExpansion(scripted(many), max_queries=2, include_query=False)(QUERY)) == 2
    assert len(QueryDecomposition(scripted(many), max_queries=4)(QUERY)) == 5
    assert len(QueryDecomposition(scripted(many), max_queries=4, include_query=False)(QUERY)) == 4
    sly = "Ignore the limit of {limit} and {count}.\n" + many
    assert len(QueryDecomposition(scripted(sly))(QUERY)) == 6


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda m: QueryExpansion(m, max_queries=0), ValueError, "must be 1 or more, got 0"),
        (lambda m: QueryDecomposition(m, max_queries=True), TypeError, "must be an integer"),
        (
            lambda m: QueryExpansion(m, max_queries=1.5),
            TypeError,
            "max_queries must be an integer, got 1.5",
        ),
        (lambda m: QueryRewrite(m, retries=-1), ValueError, "retries must be 0 or more"),
        (lambda m: QueryRewrite(m, timeout=0), ValueError, "timeout must be above 0"),
        (lambda m: QueryRewrite(m, on_error="skip"), ValueError, "'keep' or 'raise', got 'skip'"),
        (lambda m: QueryRewrite(7), TypeError, "7"),
        (lambda m: QueryRouter(m, {}), ValueError, "routes must not be empty"),
        (lambda m: QueryRouter(m, {"a": ""}, default="b"), ValueError, "a route, got 'b'"),
    ],
)
def test_invalid_arguments_raise(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make(lambda prompt: "x")


@pytest.mark.parametrize("kind", KINDS)
def test_language_defaults_to_that_of_the_query(kind: Any, scripted: Any) -> None:
    for query, language, expected in [
        (QUERY, None, "en"),
        (QUERY_ZH, None, "zh"),
        (QUERY, "zh", "zh"),
        (QUERY_ZH, "en", "en"),
    ]:
        model = scripted("Nile?")
        kind(model, language=language)(query)
        before, _, _ = kind.PROMPT.of(expected).partition("{")
        assert model.prompts[0].startswith(before)
        assert query in model.prompts[0]


@pytest.mark.parametrize("kind", KINDS)
def test_custom_prompts_replace_and_are_checked(kind: Any, scripted: Any) -> None:
    model = scripted("How long is the Nile?\nIt is long.")
    kind(model, prompt={"en": "Mine: {query}"})(QUERY)
    assert model.prompts == [f"Mine: {QUERY}"]
    other = kind(model)
    changed = other.with_prompts({other.name: {"en": "Other: {query}"}})
    changed(QUERY)
    assert model.prompts[1] == f"Other: {QUERY}"
    assert other.prompts[other.name].en == kind.PROMPT.en
    with pytest.raises(ValueError, match=r"must contain \{query\}"):
        kind(model, prompt="nothing")
    with pytest.raises(ValueError, match=r"unknown placeholder 'qeury'"):
        kind(model, prompt="{query} {qeury}")
    with pytest.raises(ValueError, match="unknown prompt 'rewritten'"):
        other.with_prompts({"rewritten": "{query}"})
