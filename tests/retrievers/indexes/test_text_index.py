"""The index after any changes, compared with brute force and a new graph."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.analysis.text_analyzer import TextAnalyzer
from nodekin.retrievers.indexes import filter_index
from nodekin.retrievers.similarities.bm25 import Bm25

SIMILARITY = Bm25(analyzer=str.split)


def new_graph(documents: dict[str, Document]) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(list(documents.values()))
    return graph


def seen(results: list[ScoredNode]) -> list[tuple[str, str, float]]:
    return [(result.node.id, result.node.text, result.score) for result in results]


def test_text_index_is_compacted() -> None:
    graph = new_graph({})
    retriever = Retriever(graph, "line", SIMILARITY)
    index = SIMILARITY.open(graph, "line")
    for turn in range(9):
        graph.add(Document("\n".join(["a b"] * 400), id="1"))
        graph.add(Document("\n".join([f"a {turn}"] * 400), id="2"))
        assert retriever(f"{turn}", top_k=400)[-1].node.text == f"a {turn}"
        assert len(index.table) <= 2 * 800 + filter_index._GAPS
        assert index.size == 800
        assert index.statistics().frequency("a") == 800
        assert index.statistics().frequency(str(turn - 1)) == 0


def test_failing_analyzer_keeps_index_usable() -> None:
    def analyzer(text: str) -> list[str]:
        if "bad" in text:
            raise RuntimeError("no words for it")
        return text.split()

    graph = new_graph({"1": Document("a b\nc", id="1")})
    retriever = Retriever(graph, "line", Bm25(analyzer=analyzer))
    retriever("a")
    graph.add([Document("a d", id="2"), Document("bad", id="3")])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no words"):
            retriever("a")
    with pytest.raises(RuntimeError, match="no words"):
        Retriever(graph, "line", Bm25(analyzer=analyzer)).retrieve("bad query")
    graph.remove("3")
    assert [result.node.text for result in retriever("a")] == ["a b", "a d"]
    fresh = new_graph({"1": Document("a b\nc", id="1"), "2": Document("a d", id="2")})
    assert seen(retriever.retrieve("a")) == seen(Retriever(fresh, "line", SIMILARITY).retrieve("a"))


def test_group_with_new_rule_is_reindexed() -> None:
    graph = new_graph({"1": Document("a b\nc", id="1")})
    retriever = Retriever(graph, "line", SIMILARITY)
    assert [result.node.text for result in retriever("b")] == ["a b"]
    graph.create_node_group("line", lambda text: text.split(), replace=True)
    assert [result.node.text for result in retriever("b")] == ["b"]
    assert retriever.similarity.open(graph, "line").size == 3


@given(st.lists(st.text("茶水长江い한𠀀ไท aé1.\0"), min_size=1, max_size=5))
def test_index_counts_the_terms_of_its_analyzer(texts: list[str]) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=str(number)) for number, text in enumerate(texts)])
    Retriever(graph, "ROOT", "bm25").retrieve("茶")
    index = Bm25().open(graph, "ROOT")
    indexed = [TextAnalyzer().indexed(text) for text in texts]
    expected = Counter(term for terms, _ in indexed for term in set(terms))
    assert {term: index.statistics().frequency(term) for term in expected} == expected
    assert index.statistics().total_length == sum(length for _, length in indexed)
