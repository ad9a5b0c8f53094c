"""A query engine: questions in, answers out, in all its ways."""

import pytest
from support.fixed_retriever import FixedRetriever, passage, scored

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import CorpusTools, as_retriever, restrict
from nodekin.retrievers.answers.engine import QueryEngine
from nodekin.retrievers.prompts.answer_prompts import PROMPTS

MODES = ("stuff", "refine", "map_reduce", "map_rerank")
NILE = "How long is the Nile?"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (NILE, "It is 6,650 km long [1]."),
        ("长江有多长？", "长江全长6300公里[1]。"),
        ("Nile 和长江 which is longer?", "The Nile [1], 长江次之【2】。"),
    ],
)
def test_all_ways_give_the_same_answer(mode, question, reply, lines, scripted, four_ways) -> None:
    last = "\nConfidence: 90" if mode == "map_rerank" else ""
    answers = four_ways(QueryEngine(lines, scripted(lambda _: reply + last), mode), question)
    assert {answer.text for answer in answers} == {reply}
    assert all(answer.answered and answer.cited for answer in answers)
    assert len({answer.calls for answer in answers}) == 1
    shown = [[source.result.node.id for source in answer.sources] for answer in answers]
    assert shown[0]
    assert shown == shown[:1] * 4
    assert [s.number for s in answers[0].sources] == list(range(1, len(shown[0]) + 1))


def test_top_k_and_filters_reach_the_retriever(scripted) -> None:
    retriever = FixedRetriever([passage("Tea.")])
    engine = QueryEngine(retriever, scripted(lambda _: "Tea [1]."), top_k=7)
    engine.query("tea?")
    engine.query("tea?", top_k=2, filters={"lang": "en"})
    assert retriever.calls == [("tea?", 7, None), ("tea?", 2, {"lang": "en"})]


def test_language_of_prompts_can_be_fixed(lines, scripted) -> None:
    model = scripted(lambda _: "6,650公里[1]。")
    QueryEngine(lines, model, language="zh").query(NILE)
    assert model.prompts[0].startswith(PROMPTS["answer"].zh[:10])
    QueryEngine(lines, model).query("Wie lang ist der Nil? 6,650 km Nile")
    assert "in the language of the question" in model.prompts[1]


def test_invalid_arguments_of_query_raise(lines) -> None:
    engine = QueryEngine(lines, lambda _: "It is [1].")
    with pytest.raises(TypeError, match="a question must be a string"):
        engine.query(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="retrieve"):
        QueryEngine(object(), lambda _: "")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no space for a passage"):
        engine.query("the Nile " * 9000)


def test_min_score_without_results_calls_no_model(scripted, four_ways) -> None:
    results = scored([Node("The Nile is 6,650 km long."), Node("Tea.")], [0.7, 0.2])
    model = scripted(lambda _: "6,650 km [1].")
    answer = QueryEngine(FixedRetriever(results), model, min_score=0.5).query(NILE)
    assert [source.text for source in answer.sources] == ["The Nile is 6,650 km long."]
    model.prompts.clear()
    for answer in four_ways(QueryEngine(FixedRetriever(results), model, min_score=0.8), NILE):
        assert answer.text == "Nothing was found that answers this question."
        assert not answer.answered
        assert answer.notes == ("no result reaches min_score=0.8; the best score is 0.700",)
    assert model.prompts == []


@pytest.mark.parametrize("restricted", ["filters", "restrict"])
def test_copies_of_other_tenants_are_never_named(restricted, scripted) -> None:
    text = "The warranty of the kettle lasts three years."
    graph = NodeGraph(progress=False)
    graph.add([Document(text, {"tenant": "a"}, id=f"{n}.md") for n in "xy"])
    graph.add(Document(text.upper(), {"tenant": "b"}, id="secret.md"))
    model = scripted(lambda _: "Three years [1].")
    search, allowed = as_retriever(graph), {"tenant": "a"}
    assert "also in secret.md" in str(search.retrieve("warranty")[0])
    if restricted == "filters":
        results = search.retrieve("warranty", filters=allowed)
        answer = QueryEngine(search, model, top_k=3).query("warranty", filters=allowed)
        tools = CorpusTools(graph, filters=allowed)
    else:
        results = restrict(search, lambda: allowed).retrieve("warranty")
        answer = QueryEngine(search, model, top_k=3).restricted(allowed).query("warranty")
        tools = CorpusTools(graph, restrict(search, allowed))
    evidence = [match for result in (*results, *answer.results) for match in result.evidence]
    assert "also in y.md" in str(results[0])
    assert {match.node.document_id for match in evidence} == {"x.md", "y.md"}
    (entry,) = tools.call("search", {"query": "warranty"}, max_tokens=60).entries
    assert (entry["document"], entry["also_in"]) == ("x.md", ["y.md"])
    shown = [*map(str, results), *model.prompts, str(answer.to_dict())]
    for tokens in (60, 800):  # parts of passages, windows
        shown.append(str(tools.call("search", {"query": "warranty"}, max_tokens=tokens)))
    assert not any("secret" in text for text in shown)


def test_prompt_names_the_place_of_the_best_match(scripted) -> None:
    graph = NodeGraph(progress=False)
    text = (
        "Tea is a drink made of leaves.\n\n\f\n\n## Returns\n\nWithin thirty days, with a refund."
    )
    graph.add(Document(text, {"page_unit": "page", "title": "Handbook"}, id="handbook"))
    model = scripted(lambda _: "Within thirty days [1].")
    answer = QueryEngine(graph, model).query("refund")
    assert answer.sources[0].text == text
    assert "[1] Handbook › Returns (page 2)\n" in model.prompts[0]
    (entry,) = CorpusTools(graph).call("search", {"query": "refund"}).entries
    assert (entry["start"], entry["end"], entry["pages"]) == (0, len(text), "page 2")


def test_passages_are_numbered_and_titled_in_the_prompt(lines, scripted) -> None:
    model = scripted(lambda _: "6,650 km [1].")
    answer = QueryEngine(lines, model).query(NILE)
    (prompt,) = model.prompts
    for source in answer.sources:
        assert f"<passage>\n[{source.number}] {source.title}\n{source.text}\n</passage>" in prompt
    assert answer.sources[0].title == "Nile"
    assert f"Question: {NILE}" in prompt
    with pytest.raises(ValueError, match=r"from 0 to 1, .*got 5.*Retriever\(graph, group, 'bm25'"):
        QueryEngine(as_retriever(NodeGraph(progress=False)), model, min_score=5)
