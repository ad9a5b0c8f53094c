import asyncio
import json

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, UnknownGroupError
from nodekin.retrievers import Retriever
from nodekin.retrievers.answers.qa import QaRetriever

RIVERS = {
    "长江有多长？": "约6300公里。",
    "长江发源于哪里？": "唐古拉山脉。",
    "黄河有多长？": "约5464公里。",
    "谁发现了长江的源头？": "考察队。",
}
PHONE = {
    "Who invented the telephone?": "Bell.",
    "When was the telephone invented?": "In 1876.",
    "What is C++?": "A language.",
}


def parse_history(text):
    return [Node(q, {"answer": a}, f"{q}\n{a}") for q, a in json.loads(text).items()]


def directions(texts):
    """Embed a text as the share of a few letters and characters in it."""
    return [[1 + 9 * text.count(c) for c in "长黄江谁哪多源telphon"] for text in texts]


@pytest.fixture
def graph():
    embedded = []

    def embed(texts):
        embedded.extend(texts)
        return directions(texts)

    graph = NodeGraph(progress=False, embed=embed)
    graph.embedded = embedded
    graph.create_node_group("qa", parse_history)
    graph.add(
        [
            Document(json.dumps(RIVERS, ensure_ascii=False), {"topic": "rivers"}, id="rivers"),
            Document(json.dumps(PHONE), {"topic": "phone"}, id="phone"),
        ]
    )
    return graph


def test_retrieve_searches_questions(graph):
    qa, plain = QaRetriever(graph, "qa", top_k=3), Retriever(graph, "qa", "bm25", top_k=3)
    results = qa.retrieve("长江")
    assert results == plain.retrieve("长江") == asyncio.run(qa.aretrieve("长江"))
    assert results[0].node.content == "长江有多长？\n约6300公里。"
    assert [len(results) for results in qa.batch(["长江", "telephone"])] == [3, 2]
    assert qa.retrieve("长江", filters={"topic": "phone"}) == []
    assert QaRetriever(graph, "qa", output_format="content")("1876") == []
    rivers = QaRetriever(graph, "qa", filters={"topic": "rivers"})
    assert rivers.answer("长江有多长") is not None
    assert rivers.answer("What is C++?", filters={"topic": "phone"}) is None


@pytest.mark.parametrize("similarity", ["bm25", "cosine"])
@pytest.mark.parametrize("query", ["长江有多长？", "长江有多长", " 长江 有多长 ?!", "长江有多长。"])
def test_equal_question_needs_no_model(graph, similarity, query):
    preset = QaRetriever(graph, "qa", similarity).answer(query)
    assert (preset.question, preset.answer) == ("长江有多长？", "约6300公里。")
    assert (preset.score, preset.exact) == (1.0, True)
    assert preset.result.node.content == "长江有多长？\n约6300公里。"
    assert preset.result.evidence[0].similarity == "exact match"
    assert asyncio.run(QaRetriever(graph, "qa", similarity).aanswer(query)) == preset
    assert QaRetriever(graph, "qa", similarity, min_score=1.1).answer(query[:4]) is None
    assert graph.embedded == []


@pytest.mark.parametrize(
    "query",
    [
        "长江发源地有多高？",
        "嘉陵江有多长？",
        "长江有多长，黄河有多长，珠江有多长？",
        "What is C?",
        "",
        "?",
    ],
)
def test_another_question_has_no_preset_answer(graph, query):
    assert QaRetriever(graph, "qa", "bm25").answer(query) is None


def test_question_words_distinguish_questions(graph):
    qa = QaRetriever(graph, "qa", "bm25")
    assert qa.answer("When was the telephone invented").answer == "In 1876."
    assert qa.answer("When did they invent the telephone?") is None
    assert qa.answer("Where was the telephone invented?") is None
    assert QaRetriever(graph, "qa", min_score=0.7).answer("黄河多长？").answer == "约5464公里。"


def test_answer_needs_min_score_or_more(graph):
    query = "请问黄河有多长呢？"
    (best, *_) = Retriever(graph, "qa", "cosine").retrieve(query)
    assert best.node.text == "黄河有多长？"
    at = QaRetriever(graph, "qa", "cosine", min_score=best.score).answer(query)
    assert (at.answer, at.score, at.exact) == ("约5464公里。", best.score, False)
    assert at.result.score == best.score
    assert QaRetriever(graph, "qa", "cosine", min_score=best.score + 1e-5).answer(query) is None


def test_answers_follow_the_graph(graph):
    qa = QaRetriever(graph, "qa")
    assert qa.answer("长江有多长").answer == "约6300公里。"
    graph.add(Document(json.dumps({"长江有多长？": "6397公里。"}), id="rivers"))
    assert qa.answer("长江有多长").answer == "6397公里。"
    assert qa.answer("黄河有多长") is None
    graph.add(Document(json.dumps({"长江有多长": "很长。"}), id="later"))
    assert qa.answer("长江有多长").answer == "6397公里。"  # the first in document order
    graph.remove("rivers")
    assert qa.answer("长江有多长").answer == "很长。"
    graph.remove("later")
    assert qa.answer("长江有多长") is None


def test_recommend_returns_similar_but_not_equal_questions(graph):
    qa = QaRetriever(graph, "qa")
    results = qa.recommend("长江有多长", 2)
    assert [r.node.text for r in results] == ["黄河有多长？", "长江发源于哪里？"]
    assert len(qa.recommend("长江有多长", 50)) == 3
    graph.add(Document(json.dumps({"黄河有多长": "很长。"}), id="again"))
    assert [r.node.text for r in qa.recommend("长江有多长", 2)] == [r.node.text for r in results]
    assert qa.recommend("长江有多长", filters={"topic": "phone"}) == []
    assert qa.recommend("") == []
    with pytest.raises(ValueError, match="top_k must be 1 or more"):
        qa.recommend("长江", 0)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"min_score": 0}, ValueError, "min_score must be above 0"),
        ({"min_score": "high"}, TypeError, "min_score must be a number"),
        ({"group": "pairs"}, UnknownGroupError, "pairs"),
        ({"output_format": "xml"}, ValueError, "output_format"),
        ({"k2": 1}, TypeError, "unexpected keyword argument 'k2'"),
    ],
)
def test_invalid_arguments_raise(graph, settings, error, words):
    with pytest.raises(error, match=words):
        QaRetriever(**{"graph": graph, "group": "qa", **settings})
    with pytest.raises(TypeError, match="query must be a str"):
        QaRetriever(graph, "qa").answer(3)


def test_content_of_a_pair_is_its_answer():
    graph = NodeGraph(progress=False)
    graph.add("Tea")
    pairs = [Node("What is tea?", content="A drink."), Node("Tea?")]
    graph.create_node_group("qa", lambda _: pairs)
    qa = QaRetriever(graph, "qa")
    assert (qa.answer("what is tea").answer, qa.answer("tea")) == ("A drink.", None)
