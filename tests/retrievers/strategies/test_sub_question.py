"""Sub-questions: groups, partial answers, named tools, failures."""

import asyncio
from typing import Any

import pytest
from support.fixed_retriever import FailingRetriever, FixedRetriever

from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import FusionRetriever, QueryEngine, RerankRetriever, Retriever
from nodekin.retrievers.strategies.query_decomposition import QueryDecomposition
from nodekin.retrievers.strategies.sub_question import SubQuestionRetriever, without_answers

QUERY, NILE, AMAZON = "Which is longer?", "How long is the Nile?", "How long is the Amazon?"
PARTS = f"1. {NILE}\n2. {AMAZON}"
PASSAGE = "Passages:\n<passages>\n[1] The "
ANSWERS = {f"{PASSAGE}Nile": "6,650 km", f"{PASSAGE}Amazon": "NONE", "Simpler": PARTS}


def test_grouped_returns_results_per_part(plain: Retriever, scripted: Any) -> None:
    retriever = SubQuestionRetriever(plain, scripted(PARTS))
    groups = retriever.grouped(QUERY, top_k=1)
    found = [(group.question, [r.node.id for r in group.results]) for group in groups]
    assert found == [(QUERY, []), (NILE, ["nile"]), (AMAZON, ["amazon"])]
    assert {(group.answer, group.error) for group in groups} == {(None, None)}
    alone = SubQuestionRetriever(plain, scripted(PARTS), include_query=False)
    assert [group.question for group in alone.grouped(QUERY)] == [NILE, AMAZON]
    assert not any(group.results for group in alone.grouped(QUERY, filters={"lang": "zh"}))


@pytest.mark.parametrize("include_query", [True, False])
def test_simple_question_is_searched_unchanged(
    include_query: bool, plain: Retriever, scripted: Any
) -> None:
    retriever = SubQuestionRetriever(plain, scripted("NONE"), include_query=include_query)
    assert retriever.retrieve(NILE) == plain.retrieve(NILE)
    (group,) = retriever.grouped(NILE)
    assert (group.question, group.error) == (NILE, None)
    assert list(group.results) == plain.retrieve(NILE)


def test_answers_come_from_the_parts_results(plain: Retriever, scripted: Any) -> None:
    retriever = SubQuestionRetriever(plain, scripted(ANSWERS), answers=True)
    groups = retriever.grouped(QUERY, top_k=1)
    assert [(g.question, g.answer, g.error) for g in groups] == [
        (QUERY, None, None),
        (NILE, "6,650 km", None),
        (AMAZON, None, None),
    ]
    notes = {r.node.id: r.evidence[0].variants[0].note for r in retriever.retrieve(QUERY)}
    assert notes["nile"] == "answer: 6,650 km"
    batch = asyncio.run(retriever.abatch([QUERY, QUERY]))
    assert batch == [retriever.retrieve(QUERY)] * 2
    silent = without_answers(FusionRetriever([plain, retriever])).retrievers[1]
    assert {group.answer for group in silent.grouped(QUERY, top_k=1)} == {None}
    assert retriever.grouped(QUERY, top_k=1)[1].answer == "6,650 km"


def test_failed_answer_is_reported(plain: Retriever, scripted: Any) -> None:
    broken = {f"{PASSAGE}Nile": RuntimeError("down"), "Passages:": "No", "Simpler": PARTS}
    retriever = SubQuestionRetriever(plain, scripted(broken), answers=True)
    _, nile, amazon = retriever.grouped(QUERY, top_k=1)
    assert nile.answer is None
    assert nile.results
    assert str(nile.error).startswith("partial answer failed: ModelError")
    assert (amazon.answer, amazon.error) == ("No", None)  # "no" is an answer
    with pytest.raises(ModelError, match="down"):
        SubQuestionRetriever(plain, scripted(broken), answers=True, on_error="raise")(QUERY)


def test_failed_part_is_reported_and_others_found(plain: Retriever, scripted: Any) -> None:
    retriever = SubQuestionRetriever(FailingRetriever(plain, "Amazon"), scripted(PARTS))
    _, nile, amazon = retriever.grouped(QUERY)
    assert nile.results
    assert (nile.error, amazon.results) == (None, ())
    assert amazon.error == "RuntimeError: unreachable"
    note = retriever.retrieve(QUERY)[0].evidence[0].variants[0].note
    assert note == f"1 of 3 searches failed: '{AMAZON}': RuntimeError: unreachable"


def test_only_an_explicit_top_k_limits_the_union(plain: Retriever, scripted: Any) -> None:
    inner = Retriever(plain.graphs, "ROOT", top_k=1)
    retriever = SubQuestionRetriever(inner, scripted(PARTS))
    assert {result.node.id for result in retriever.retrieve(QUERY)} == {"nile", "amazon"}
    assert len(retriever.retrieve(QUERY, top_k=1)) == 1


def test_copy_of_the_question_is_left_out(plain: Retriever, scripted: Any) -> None:
    query, copy = "Which of the rivers is longer?", "The rivers: which of rivers is longer??"
    retriever = SubQuestionRetriever(plain, scripted(f"{copy}\n{NILE}"))
    assert [part.question for part in retriever.grouped(query)] == [query, NILE]
    copies = SubQuestionRetriever(plain, scripted(f"{copy}\n{copy}?"))
    assert [part.question for part in copies.grouped(query)] == [query]


# Tools

MADE = "How is green tea made?"
BOTH = "How long is the Nile, and how is green tea made?"
CHOICES = f"rivers: {NILE}\nteas: {MADE}"


@pytest.fixture
def passages() -> Retriever:
    graph = NodeGraph(progress=False)
    graph.add(["The Nile has 6,650 km.", "Green tea is steamed."])
    return Retriever(graph, "ROOT", top_k=1)


@pytest.fixture
def tools(passages: Retriever) -> dict[str, Any]:
    return {
        "rivers": ("All about rivers", QueryEngine(passages, lambda prompt: "6,650 km [1].")),
        "teas": ("All about\n tea", passages),
    }


def test_parts_go_to_the_chosen_tools(tools: Any, scripted: Any) -> None:
    model = scripted(CHOICES)
    groups = SubQuestionRetriever(tools, model).grouped(BOTH)
    assert [(g.tool, g.question, g.answer, g.error) for g in groups] == [
        ("rivers", NILE, "6,650 km [1].", None),
        ("teas", MADE, None, None),
    ]
    assert [g.results[0].node.text for g in groups] == ["6,650 km [1].", "Green tea is steamed."]
    assert "- rivers: All about rivers\n- teas: All about tea" in model.prompts[0]
    given = SubQuestionRetriever(tools, QueryDecomposition(model)).grouped(BOTH)
    assert [(g.tool, g.question) for g in given] == [(g.tool, g.question) for g in groups]


def test_unknown_tool_is_reported_and_others_answer(tools: Any, scripted: Any) -> None:
    model = scripted(f"{CHOICES}\nseas: How deep is the sea?")
    retriever = SubQuestionRetriever(tools, model)
    groups = retriever.grouped(BOTH)
    assert "unknown tool 'seas'; the tools are rivers, teas" in model.prompts[1]
    assert [(g.tool, g.error) for g in groups] == [
        ("rivers", None),
        ("teas", None),
        ("seas", "LookupError: unknown tool 'seas'; known: 'teas', 'rivers'"),
    ]
    assert "unknown tool 'seas'" in retriever(BOTH)[0].evidence[0].variants[0].note
    with pytest.raises(ModelError, match="unknown tool 'seas'"):
        SubQuestionRetriever(tools, model, on_error="raise")(BOTH)


def test_failed_tool_is_reported_all_failed_raises(tools: Any, scripted: Any) -> None:
    broken = FailingRetriever(None, error=ConnectionError("no route"))
    retriever = SubQuestionRetriever({**tools, "rivers": broken}, scripted(CHOICES))
    assert [g.error for g in retriever.grouped(BOTH)] == ["ConnectionError: no route", None]
    assert [r.node.text for r in retriever(BOTH)] == ["Green tea is steamed."]
    for failing, on_error in (({**tools, "rivers": broken}, "raise"), ({"a": broken}, "keep")):
        with pytest.raises(ConnectionError, match="no route"):
            SubQuestionRetriever(failing, scripted(CHOICES), on_error=on_error)(BOTH)


@pytest.mark.parametrize("answer", ["", "NONE", RuntimeError("no model")])
def test_useless_model_sends_question_to_all_tools(answer: Any, tools: Any, scripted: Any) -> None:
    groups = SubQuestionRetriever(tools, scripted(answer)).grouped(NILE)
    assert [(g.tool, g.question) for g in groups] == [("rivers", NILE), ("teas", NILE)]


def test_single_tool_gets_all_parts(passages: Retriever, scripted: Any) -> None:
    groups = SubQuestionRetriever({"all": passages}, scripted(f"{NILE}\n{MADE}")).grouped(BOTH)
    assert [(g.tool, g.question) for g in groups] == [("all", NILE), ("all", MADE)]


def test_answers_of_tools_reach_the_final_prompt(tools: Any, scripted: Any) -> None:
    """Answers that were paid for are used, also through a reranking."""
    steamed = scripted({"Tools:": CHOICES}, "By steaming.")
    strategy = SubQuestionRetriever(tools, steamed, answers=True)
    reranked = RerankRetriever(strategy, "ModuleReranker", model=lambda q, t: [1.0] * len(t))
    model = scripted("Both [1][2].")
    engine = QueryEngine(reranked, model)
    assert len(engine.query(BOTH).cited) == 2
    assert f"rivers: {NILE}\n6,650 km [1]." in model.prompts[0]
    partial = f"<partial>\nQuestion: {MADE}\nAnswer: By steaming.\n</partial>"
    assert partial in model.prompts[0]
    asyncio.run(engine.aquery(BOTH))
    list(engine.stream(BOTH))
    assert model.prompts == model.prompts[:1] * 3


@pytest.mark.parametrize("mode", ["stuff", "refine", "map_reduce"])
@pytest.mark.parametrize("answers", [True, False])
def test_answers_to_parts_reach_the_final_prompt(
    mode: Any, answers: bool, passages: Retriever, scripted: Any
) -> None:
    model = scripted({"<passages>": "6,650 km"}, f"{NILE}\nAnd tea?")
    final = scripted("Both [1].")
    QueryEngine(SubQuestionRetriever(passages, model, answers=answers), final, mode).query(BOTH)
    of_parts = [p for p in final.prompts if f"Question: {NILE}\nAnswer" in p]
    is_single = mode == "map_reduce" and len(final.prompts) == 1
    assert len(of_parts) == (0 if is_single else int(answers))
    assert answers or mode != "stuff" or "<partial>" not in final.prompts[0]


def test_answers_without_space_are_noted(passages: Retriever, scripted: Any) -> None:
    strategy = scripted({"<passages>": "word " * 60}, f"{NILE}\nAnd tea?")
    parts = SubQuestionRetriever(passages, strategy, answers=True)
    engine = QueryEngine(parts, scripted("It [1]."), context_window=560, num_output=200)
    assert any("answers to sub-questions" in note for note in engine.query(BOTH).notes)


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        ({}, ValueError, "tools must not be empty"),
        ({"a": 3}, TypeError, "the tool 'a' must be an object with retrieve"),
        ({"a": ("x", 3, 4)}, TypeError, "a pair"),
        ({"": FixedRetriever([])}, ValueError, "must be a text with letters, got ''"),
        ({3: FixedRetriever([])}, ValueError, "must be a text with letters, got 3"),
        ([FixedRetriever([])], TypeError, "wrap anything else in a function"),
    ],
)
def test_invalid_tools_raise(tools: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SubQuestionRetriever(tools, lambda prompt: "")
