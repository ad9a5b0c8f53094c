"""The index after any changes, compared with brute force and a new graph."""

import gc
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.analysis.text_analyzer import TextAnalyzer
from nodekin.retrievers.indexes import node_table
from nodekin.retrievers.similarities.bm25 import Bm25

SIMILARITY = Bm25(analyzer=str.split)


def new_graph(documents: dict[str, Document]) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(list(documents.values()))
    return graph


def document(id: str, lines: list[list[str]], color: str | None) -> Document:
    return Document("\n".join(map(" ".join, lines)), color and {"color": color}, id=id)


def seen(results: list[ScoredNode]) -> list[tuple[str, str, float]]:
    return [(result.node.id, result.node.text, result.score) for result in results]


def check(
    brute: Callable, graph: NodeGraph, documents: dict[str, Document], query, top_k, color, target
) -> None:
    """Compare the results of a query with brute force and with a new graph."""
    settings = {"top_k": top_k, "target": target, "filters": color and {"color": color}}
    results = Retriever(graph, "line", SIMILARITY, **settings).retrieve(" ".join(query))
    fresh = Retriever(new_graph(documents), "line", SIMILARITY, **settings)
    assert seen(results) == seen(fresh.retrieve(" ".join(query)))

    lines = [(doc, line) for doc in documents.values() for line in doc.text.splitlines()]
    ranking = [
        (*lines[place], score)
        for place, score in brute([line.split() for _, line in lines], query)
        if color is None or lines[place][0].metadata.get("color") == color
    ]
    if target is None:
        expected = [(doc.id, line, score) for doc, line, score in ranking]
    else:
        best: dict[str, tuple[str, str, float]] = {}
        for doc, _, score in ranking:
            best.setdefault(doc.id, (doc.id, doc.text, score))
        expected = list(best.values())
    got = [(result.node.document_id, result.node.text, result.score) for result in results]
    assert got == expected[:top_k]


@pytest.mark.slow
@pytest.mark.parametrize("small", [False, True])
def test_text_index_after_thousands_of_changes_equals_new(
    brute, small: bool, request: pytest.FixtureRequest
) -> None:
    """Thousands of changes, so that the journal is truncated and the table compacted."""
    if small:
        request.getfixturevalue("small_limits")
    random = Random(1)
    documents: dict[str, Document] = {}
    graph = new_graph(documents)
    queries = ["a", "ab", "fg", "abcdefg", "ggx"]
    for _ in range(60):
        for _ in range(random.choice([1, 1, 3, 30])):
            i = str(random.randrange(30))
            if i in documents and random.random() < 0.4:
                del documents[i]
                graph.remove(i)
            else:
                lines = [random.choices("abcdefg", k=random.randint(1, 4)) for _ in range(20)]
                documents[i] = document(i, lines, random.choice(["red", "blue", None]))
                graph.add(documents[i])
        color, target = random.choice([None, "red"]), random.choice([None, "ROOT"])
        check(brute, graph, documents, list(random.choice(queries)), 7, color, target)


def test_text_index_is_compacted() -> None:
    graph = new_graph({})
    retriever = Retriever(graph, "line", SIMILARITY)
    index = SIMILARITY.open(graph, "line")
    for turn in range(9):
        graph.add(Document("\n".join(["a b"] * 400), id="1"))
        graph.add(Document("\n".join([f"a {turn}"] * 400), id="2"))
        assert retriever(f"{turn}", top_k=400)[-1].node.text == f"a {turn}"
        assert len(index.table) <= 2 * 800 + node_table._GAPS
        assert index.size == 800
        assert index.frequency("a") == 800
        assert index.frequency(str(turn - 1)) == 0


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


@pytest.mark.slow
def test_indexing_holds_few_nodes_in_memory(tmp_path) -> None:
    """Nodes are read and analyzed in batches of some thousands."""
    held: list[int] = []

    def analyzer(text: str) -> list[str]:
        if text == "the last":
            held.append(nodes_in_memory())
        return text.split()

    def nodes_in_memory() -> int:
        return sum(isinstance(thing, Node) for thing in gc.get_objects())

    gc.collect()
    before = nodes_in_memory()
    with NodeGraph(store=tmp_path / "graph.db", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add("\n".join([*(f"line {number}" for number in range(12_000)), "the last"]))
        with graph.reader.reading("line"):
            pass
        retriever = Retriever(graph, "line", Bm25(analyzer=analyzer))
        assert retriever("7", top_k=1)[0].node.text == "line 7"
        assert held[0] - before < 9_000


@given(st.lists(st.text("茶水长江い한𠀀ไท aé1.\0"), min_size=1, max_size=5))
def test_index_counts_the_terms_of_its_analyzer(texts: list[str]) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=str(number)) for number, text in enumerate(texts)])
    Retriever(graph, "ROOT", "bm25").retrieve("茶")
    index = Bm25().open(graph, "ROOT")
    indexed = [TextAnalyzer().indexed(text) for text in texts]
    expected = Counter(term for terms, _ in indexed for term in set(terms))
    assert {term: index.frequency(term) for term in expected} == expected
    assert index.statistics().total_length == sum(length for _, length in indexed)
