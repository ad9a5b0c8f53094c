"""Failures that a search hides are failures of an evaluation."""

import pytest

from nodekin.nodegraph import LLMExtractor, NodeGraph
from nodekin.retrievers import QueryEngine, Retriever, as_retriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate

TEXTS = ["Green tea is not fermented.", "The Nile runs north."]


def questions(ids):
    texts = ("Which tea is not fermented?", "Where does the Nile run?")
    pairs = enumerate(zip(texts, ids, strict=True))
    return Dataset([Question(str(n), text, (GoldDocument(gold),)) for n, (text, gold) in pairs])


def raising(text):
    if "Nile" in text:
        raise RuntimeError("the server is gone")
    return [text]


@pytest.fixture
def graph():
    with NodeGraph(progress=False, on_error="skip") as graph:
        yield graph


def test_failed_group_gives_no_figure(graph):
    data = questions(graph.add(TEXTS))
    graph.create_node_group("summary", raising)
    graph.create_node_group("word", str.split, parent="summary")
    retrievers = {
        "summaries": Retriever(graph, "summary", target="ROOT"),
        "words of summaries": Retriever(graph, "word", target="ROOT"),
        "texts": Retriever(graph, "ROOT"),
        "engine": QueryEngine(Retriever(graph, "summary"), lambda prompt: "unknown"),
    }
    result = evaluate(retrievers, data, ["recall@1"])
    values = {name: result.figure(name, "recall@1").value for name in retrievers}
    assert values == {**dict.fromkeys(retrievers), "texts": 1.0}
    assert result.costs("summaries")["failed"] == 2
    note = result.notes()[0]
    assert note.startswith("summaries failed on 2 of 2 questions; question '0': 1 document failed")
    assert "in the group 'summary'; the first error: " in note
    assert "the server is gone" in note


def unreachable(text):
    raise ConnectionError("no route to the server")


def test_unreachable_embedder_gives_no_figure():
    with NodeGraph(progress=False, embed=unreachable) as graph:
        data = questions(graph.add(TEXTS))
        result = evaluate({"default": as_retriever(graph)}, data, ["recall@1"])
    assert result.figure("default", "recall@1").value is None
    assert "ConnectionError: no route" in result.notes()[0]


def test_unreachable_llm_of_a_group_gives_no_figure(graph):
    data = questions(graph.add(TEXTS))
    graph.create_node_group("summary", LLMExtractor(unreachable, "summary"))
    setups = {"summaries": Retriever(graph, "summary", target="ROOT")}
    result = evaluate(setups, data, ["recall@1"])
    assert result.figure("summaries", "recall@1").value is None
    assert "2 documents failed in the group 'summary'" in result.notes()[0]
