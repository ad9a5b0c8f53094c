"""The steps to an answer: no results, preset answers, failures, citations, notes."""

import pytest
from support.fixed_retriever import FixedRetriever

from nodekin.nodegraph import ModelError, Node, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.answers.answer import AnswerError
from nodekin.retrievers.answers.engine import QueryEngine
from nodekin.retrievers.prompts.answer_prompts import PROMPTS
from nodekin.retrievers.results import Evidence, QueryVariant

MODES = ("stuff", "refine", "map_reduce", "map_rerank")
NILE = "How long is the Nile?"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What do zebras eat?", "Nothing was found that answers this question."),
        ("斑马吃什么？", "没有找到可以回答这个问题的资料。"),
        (" \n", "Nothing was found that answers this question."),
    ],
)
def test_no_results_ask_no_model(mode, question, expected, rivers, scripted, four_ways) -> None:
    model = scripted(lambda _: "A guess.")
    retriever = Retriever(rivers, "line", "bm25", filters={"title": "Nile"})
    for answer in four_ways(QueryEngine(retriever, model, mode), question):
        assert (answer.text, answer.answered, answer.sources) == (expected, False, ())
        assert answer.calls == len(model.prompts) == 0
    own = QueryEngine(retriever, model, mode, prompts={"not_found": "Nope: {question}"})
    assert own.query(question).text == f"Nope: {question}"


@pytest.mark.parametrize("mode", MODES)
def test_marker_sets_answered_to_false(mode, lines, scripted, four_ways) -> None:
    for mark, question, expected in (
        ("NO_ANSWER.", NILE, PROMPTS["not_found"].en),
        ("【无答案】", "长江有多长？", PROMPTS["not_found"].zh),
    ):
        for answer in four_ways(QueryEngine(lines, scripted(lambda _, m=mark: m), mode), question):
            assert not answer.answered
            assert answer.text == expected
            assert answer.sources
            assert not answer.cited


@pytest.mark.parametrize(
    ("question", "expected"), [("what is TEA", "A drink."), ("茶是什么", "一种饮品。")]
)
def test_preset_answers_need_no_model(question, expected, lines, qa, scripted, four_ways) -> None:
    model = scripted(lambda _: "?")
    for answer in four_ways(QueryEngine(lines, model, qa=qa), question, history=[("Hi", "Hello")]):
        assert (answer.text, answer.calls, answer.answered) == (expected, 0, True)
        assert answer.preset is not None
        assert answer.preset.exact
        assert [source.cited for source in answer.sources] == [True]
    assert model.prompts == []


def test_notes_of_strategies_are_in_the_answer(scripted) -> None:
    node = Node("Tea.")
    variants = (
        QueryVariant("tea?", "rewrite", "rewrite failed: timeout"),
        QueryVariant("tea?", "hyde"),
    )
    result = ScoredNode(node, 1.0, (Evidence(node, 1.0, "bm25", "tea", variants=variants),) * 2)
    answer = QueryEngine(FixedRetriever([result]), scripted(lambda _: "Tea [1].")).query("tea?")
    assert answer.notes == ("rewrite: rewrite failed: timeout",)


@pytest.mark.parametrize("mode", MODES)
def test_failed_model_raises_error_with_sources(mode, lines, scripted) -> None:
    engine = QueryEngine(lines, scripted(lambda _: RuntimeError("down")), mode)
    with pytest.raises(AnswerError, match="down") as caught:
        engine.query(NILE)
    assert isinstance(caught.value, ModelError)
    assert caught.value.answer.sources
    assert (caught.value.answer.text, caught.value.answer.answered) == ("", False)


@pytest.mark.parametrize("reply", [" \n", "[1]", "【1】。", " [1][2] ", "**[1]**", "…"])
def test_answer_without_words_is_a_failure(reply, lines, scripted) -> None:
    with pytest.raises(AnswerError, match="gave an empty answer"):
        QueryEngine(lines, scripted(lambda _: reply)).query(NILE)


@pytest.mark.parametrize("check", [None, "quotes"])
def test_answer_without_citation_is_noted(lines, scripted, check) -> None:
    def notes_of(text: str) -> tuple[str, ...]:
        return QueryEngine(lines, scripted(lambda _: text), check=check).query(NILE).notes

    for text in ("6,650 km", "The Nile is long. So it is."):
        (note,) = notes_of(text)
        assert "no source" in note
    assert "没有标来源" in notes_of("尼罗河全长6650公里。")[0]
    assert notes_of("6,650 km [1].") == notes_of("NO_ANSWER") == ()


def test_failed_search_of_preset_answers_is_noted(lines, qa, scripted) -> None:
    engine = QueryEngine(lines, scripted(lambda _: "6,650 km [1]."), qa=qa)
    assert engine.query(NILE).notes == ()
    graph = NodeGraph(embed=lambda texts: 1 / 0, progress=False)
    graph.add("Tea?")
    graph.create_node_group("qa", str.splitlines)
    qa.inner = Retriever(graph, "qa", "cosine")
    answer = engine.query(NILE)
    assert answer.text == "6,650 km [1]."
    assert "the preset answers could not be searched" in answer.notes[0]
