"""Answers as JSON, and the check of their sources."""

from __future__ import annotations

import asyncio
import json
from datetime import date

import pytest
from support.fixed_retriever import FixedRetriever, scored

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import (
    Answer,
    FusionRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    Retriever,
    SubQuestionRetriever,
    check_quotes,
    restrict,
)
from nodekin.retrievers.answers.current_check import SourceChanges

LINES = "Green tea is steamed.\nBlack tea is fermented.\nWhite tea is dried."
QUESTION = "How is green tea made?"


def answer(prompt: str) -> str:
    return "Green tea is “steamed” [1]."


def graph_of_lines(text: str = LINES) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(Document(text, {"day": date(2024, 5, 1), "tenant": "a"}, id="tea"))
    return graph


@pytest.fixture
def graph() -> NodeGraph:
    return graph_of_lines()


@pytest.fixture
def engine(graph: NodeGraph) -> QueryEngine:
    return QueryEngine(Retriever(graph, "line", top_k=1), answer)


def parts(changes: SourceChanges) -> tuple[list[str], list[str], list[str]]:
    return (
        [source.text for source in changes.changed],
        [source.text for source in changes.removed],
        [result.text for result in changes.new],
    )


def stored(answer: Answer) -> Answer:
    return Answer.from_dict(json.loads(json.dumps(answer.to_dict())))


def test_answer_to_dict_round_trip_keeps_the_answer(engine: QueryEngine) -> None:
    filters = {"day": {"lt": date(2025, 1, 1)}}
    asked = check_quotes(engine.query(QUESTION, top_k=2, filters=filters))
    read = stored(asked)
    assert (read.text, read.question, read.notes) == (asked.text, asked.question, asked.notes)
    assert (read.top_k, read.filters, read.min_score) == (2, filters, None)
    assert [(s.number, s.text, s.cited) for s in read.sources] == [
        (s.number, s.text, s.cited) for s in asked.sources
    ]
    assert [result.node.id for result in read.results] == [r.node.id for r in asked.results]
    assert [(q.status, q.spans[0].start) for q in read.quotes] == [("exact", 13)]
    places = [source["result"]["place"] for source in asked.to_dict()["sources"]]
    assert places == [result.place for result in asked.results]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINES, ([], [], [])),
        (f"Tea\n{LINES}", ([], [], [])),
        (LINES.replace("dried", "withered"), ([], [], [])),
        (
            LINES.replace("steamed", "roasted"),
            (["Green tea is steamed."], [], ["Green tea is roasted."]),
        ),
        (f"{LINES}\nHow green tea is made?", ([], [], ["How green tea is made?"])),
    ],
)
def test_check_current_reports_changed_and_new_texts(
    graph: NodeGraph, engine: QueryEngine, text: str, expected: object
) -> None:
    asked = engine.query(QUESTION)
    graph.add(Document(text, id="tea"))
    for each in (asked, stored(asked)):
        changes = engine.check_current(each)
        assert parts(changes) == expected
        assert changes.is_current == (expected == ([], [], []))
        assert asyncio.run(engine.acheck_current(each)) == changes
    graph.remove("tea")
    changes = engine.check_current(asked)
    assert (parts(changes), changes.is_current) == (([], ["Green tea is steamed."], []), False)


def test_check_current_searches_with_the_stored_conditions(graph: NodeGraph) -> None:
    graph.add(Document("How green tea is made.", {"tenant": "b"}, id="other"))
    engine = QueryEngine(Retriever(graph, "line", top_k=1), answer)
    asked = engine.query(QUESTION, top_k=3, filters={"tenant": "a"})
    assert engine.check_current(asked).is_current
    strict = QueryEngine(Retriever(graph, "line", top_k=1), answer, min_score=100.0)
    nothing = strict.query(QUESTION)
    assert not nothing.answered
    assert engine.check_current(nothing).is_current
    assert strict.check_current(asked).is_current


def test_check_current_leaves_strategies_and_models_out(graph: NodeGraph) -> None:
    prompts: list[str] = []

    def rewrite(prompt: str) -> str:
        prompts.append(prompt)
        return "Green tea is steamed"

    inner = restrict(
        QueryRewriteRetriever(Retriever(graph, "line", top_k=1), rewrite), {"tenant": "a"}
    )
    engine = QueryEngine(inner, answer)
    asked = engine.query(QUESTION)
    graph.add(Document("How is green tea made?", {"tenant": "b"}, id="other"))
    prompts.clear()
    assert engine.check_current(asked).is_current
    assert prompts == []


def test_check_current_tells_a_tenant_nothing_of_others(graph: NodeGraph) -> None:
    asked = QueryEngine(Retriever(graph, "line", top_k=1), answer).query(QUESTION)
    other = QueryEngine(Retriever(graph, "line", top_k=1), answer).restricted({"tenant": "b"})
    expected = ([], ["Green tea is steamed."], [])
    assert parts(other.check_current(asked)) == expected
    graph.add(Document("Something else.", {"tenant": "a"}, id="tea"))
    assert parts(other.check_current(asked)) == expected
    by_call = restrict(Retriever(graph, "line"), lambda: {"tenant": "b"})
    assert parts(QueryEngine(by_call, answer).check_current(asked)) == expected


def test_check_current_ignores_results_without_document(graph: NodeGraph) -> None:
    before, later = (
        QueryEngine(
            FusionRetriever([Retriever(graph, "line"), FixedRetriever(scored([Node(text)]))]),
            lambda prompt: "Green tea is steamed [1] [2].",
        )
        for text in ("Leaves are heated.", "Leaves are dried.")
    )
    asked = before.query(QUESTION, top_k=2)
    assert "Leaves are heated." in [source.text for source in asked.cited]
    assert parts(later.check_current(asked)) == ([], [], ["Leaves are dried."])


def test_check_current_without_graph_or_with_tools_raises(graph: NodeGraph) -> None:
    engine = QueryEngine(FixedRetriever(scored([Node("Green tea is steamed.", id="a")])), answer)
    with pytest.raises(ValueError, match="compares documents of a NodeGraph"):
        engine.check_current(engine.query(QUESTION))
    tools = {name: Retriever(graph, "line") for name in ("green", "black")}
    engine = QueryEngine(SubQuestionRetriever(tools, answer), answer)
    with pytest.raises(ValueError, match="without a language model"):
        engine.check_current(Answer("Steamed.", QUESTION, searched=QUESTION))
