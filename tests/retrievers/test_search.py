import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph, UnknownGroupError
from nodekin.nodegraph.concurrency import is_reading_graph
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.similarities.bm25 import Bm25
from nodekin.retrievers.tracing import observe

WORDS = Bm25(analyzer=str.split)
LINES = st.lists(
    st.lists(st.sampled_from("abcdx"), min_size=1, max_size=5).map(" ".join),
    min_size=1,
    max_size=12,
)


def graph_of(documents: list[Document]) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(documents)
    return graph


def seen(results) -> list[tuple[str, float]]:
    return [(result.node.id, result.score) for result in results]


@pytest.mark.slow
@settings(max_examples=amount(100, 300))
@given(
    st.lists(st.lists(LINES, max_size=4), min_size=1, max_size=3),
    st.lists(st.sampled_from("abcdz"), min_size=1, max_size=4).map(" ".join),
    st.integers(1, 3),
    st.sampled_from([None, "ROOT"]),
    st.sampled_from(["max", "sum", "mean"]),
    st.sampled_from([None, 0.3]),
)
def test_several_graphs_equal_one_graph(parts, query, top_k, target, lift, min_score) -> None:
    documents = [
        [
            Document("\n".join(lines), {"even": number % 2 == 0}, id=f"{part}-{number}")
            for number, lines in enumerate(each)
        ]
        for part, each in enumerate(parts)
    ]
    options = {"target": target, "top_k": top_k, "lift": lift, "min_score": min_score}
    several = Retriever([graph_of(each) for each in documents], "line", WORDS, **options)
    one = Retriever(
        graph_of([document for each in documents for document in each]), "line", WORDS, **options
    )
    for filters in (None, {"even": True}):
        found = several.retrieve(query, filters=filters)
        assert seen(found) == seen(one.retrieve(query, filters=filters))


def test_hits_of_several_graphs_are_sorted_by_score() -> None:
    first = graph_of(
        [Document("\n".join(["tea tea tea"] * 8), id="A1"), Document("tea tea x x x", id="A2")]
    )
    second = graph_of([Document("tea x x x x x x x x", id="B1")])
    results = Retriever([first, second], "line", WORDS, target="ROOT", top_k=2)("tea")
    assert [result.node.id for result in results] == ["A1", "A2"]


def test_top_k_is_full_despite_dominant_document() -> None:
    graphs = [
        graph_of([Document("\n".join(["tea"] * 8), id="long")]),
        graph_of([Document("tea of the garden", id="b"), Document("tea of the garden", id="c")]),
    ]
    found = Retriever(graphs, "line", target="ROOT", top_k=3)("tea")
    assert [result.node.id for result in found] == ["long", "b", "c"]


def test_repeated_graph_is_searched_once() -> None:
    graph = graph_of([Document("tea\nsea", id="1"), Document("tea leaf", id="2")])
    assert Retriever([graph, graph], "line").retrieve("tea") == Retriever(graph, "line").retrieve(
        "tea"
    )


def test_fusion_returns_equal_document_of_two_graphs_once() -> None:
    graphs = [
        graph_of([Document("tea", id="1")]),
        graph_of([Document("tea", id="1"), Document("tea leaf", id="2")]),
    ]
    fusion = FusionRetriever([Retriever(graph, "line") for graph in graphs], "concat")
    assert [result.node.document_id for result in fusion("tea")] == ["1", "2"]


def test_graph_without_group_raises() -> None:
    with pytest.raises(UnknownGroupError, match="unknown group 'line'"):
        Retriever([graph_of([]), NodeGraph()], "line")


@pytest.mark.slow
def test_concurrent_graph_searches_and_writes_do_not_deadlock() -> None:
    graphs = [NodeGraph(progress=False) for _ in range(2)]
    for graph in graphs:
        graph.create_node_group("line", str.splitlines)
        graph.add(Document("tea", id=str(id(graph))))
    there, back = Retriever(graphs, "line"), Retriever(graphs[::-1], "line")

    def write(graph: NodeGraph) -> None:
        while any(reader.is_alive() for reader in readers):
            graph.add(Document(f"tea {time.perf_counter()}", id="changing"))

    def read(retriever: Retriever) -> None:
        for _ in range(25):
            assert len(retriever.retrieve("tea")) >= 2

    readers = [threading.Thread(target=read, args=(r,), daemon=True) for r in (there, back)]
    writers = [threading.Thread(target=write, args=(g,), daemon=True) for g in graphs]
    for thread in (*readers, *writers):
        thread.start()
    for thread in (*readers, *writers):
        thread.join(300)
    assert not any(thread.is_alive() for thread in (*readers, *writers))


@pytest.mark.parametrize("similarity", ["bm25", "cosine"])
@pytest.mark.parametrize("count", [8, 32])
def test_rankings_beside_a_writer_equal_rankings_without(similarity: str, count: int) -> None:
    def state(number: int) -> list[Document]:
        return [
            Document(f"tea {'green ' * n}\ncup {n}", {"state": number}, id=str(n))
            for n in range(20)
        ]

    def embed(texts: list[str]) -> list[list[float]]:
        return [[len(text), text.count("e"), 1.0] for text in texts]

    graph = NodeGraph(embed=embed, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(state(0))
    retriever = Retriever(graph, "line", similarity)
    queries = ["green tea", "cup 7", "tea"]
    expected = [seen(results) for results in retriever.batch(queries)]
    ended = threading.Event()

    def write() -> int:
        number = 0
        while not ended.is_set():
            number += 1
            graph.add(state(number))  # the texts stay equal
        return number

    with ThreadPoolExecutor(1) as writer, ThreadPoolExecutor(count) as readers:
        written = writer.submit(write)
        try:
            found = [*readers.map(lambda at: seen(retriever(queries[at % 3])), range(300))]
        finally:
            ended.set()
    assert written.result() > 1
    assert found == [expected[at % 3] for at in range(300)]


def test_lifted_ties_follow_graph_then_document() -> None:
    first, second = graph_of([Document("a", id="0"), Document("a", id="1")]), graph_of([])
    second.add(Document("a", id="2"))
    for graphs, order in (([first, second], ["0", "1", "2"]), ([second, first], ["2", "0", "1"])):
        for how in ("max", "sum", "mean"):
            retriever = Retriever(graphs, "line", "bm25", target="ROOT", lift=how)
            assert [result.node.id for result in retriever.retrieve("a")] == order


class ChangingWords(Bm25):
    """A word similarity whose search changes the graph afterwards, outside the lock."""

    def open(self, graph, group, key=None):
        index = super().open(graph, group, key)
        snapshot = index.snapshot

        class Snapshot:
            def snapshot(self, queries, filter):
                taken = snapshot(queries, filter)

                def then_change(numbers, limit):
                    hits = taken.search(numbers, limit)
                    assert not is_reading_graph()
                    while changes:
                        changes.pop()()
                    return hits

                return replace(taken, search=then_change, size=math.inf) if changes else taken

            def __getattr__(self, name):
                return getattr(index, name)

        return Snapshot()


changes: list = []


def test_observers_are_called_without_the_lock() -> None:
    seen_spans = []

    class Observer:
        def begin(self, span, parent):
            assert not is_reading_graph()

        def end(self, span):
            assert not is_reading_graph()
            seen_spans.append(span.name)

    with observe(Observer()):
        assert Retriever(graph_of([Document("tea")]), "line", "bm25")("tea")
    assert seen_spans == ["search"]


@pytest.mark.parametrize("target", [None, "ROOT"])
def test_results_removed_during_search_are_replaced(target: str | None) -> None:
    graph = graph_of([Document(f"tea {'tea ' * n}", id=str(n)) for n in range(5)])
    words = ChangingWords(analyzer=str.split)
    retriever = Retriever(graph, "line", words, target=target, top_k=3)
    best = [result.node.document_id for result in retriever("tea")]
    changes.append(lambda: graph.remove(best[0]))
    results = retriever("tea")
    assert best[0] not in [result.node.document_id for result in results]
    assert len(results) == 3
    assert seen(results) == seen(retriever("tea"))


@pytest.mark.parametrize("group", ["ROOT", "line"])
@pytest.mark.parametrize("target", [None, "ROOT"])
def test_documents_changed_during_search_are_searched_again(group, target) -> None:
    graph = graph_of([Document("tea", {"owner": "a"}, id="1"), Document("tea x", id="2")])
    words = ChangingWords(analyzer=str.split)
    retriever = Retriever(graph, group, words, target=target)
    assert len(retriever.retrieve("tea", filters={"owner": "a"})) == 1
    changes.append(lambda: graph.add(Document("tea", {"owner": "b"}, id="1")))
    assert retriever.retrieve("tea", filters={"owner": "a"}) == []
    changes.append(lambda: graph.add(Document("tea\ny", {"owner": "a"}, id="1")))  # one old line
    assert retriever.retrieve("tea", filters={"owner": "b"}) == []
    changes.append(lambda: graph.add(Document("tea tea x", {"owner": "b"}, id="1")))
    assert seen(retriever("tea")) == seen(Retriever(graph, group, WORDS, target=target)("tea"))


_FORKS = """
import os, sys, threading
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever

def has_other_order(one, other):
    databases = [graph._store.database for graph in (one, other)]
    return (id(one) < id(other)) != (id(databases[0]) < id(databases[1]))

kept = []
while len(kept) < 400:  # until graphs and databases have different orders in memory
    pair = NodeGraph(progress=False), NodeGraph(progress=False)
    kept.append((pair, [object() for _ in range(3)]))
    if has_other_order(*pair):
        break
for graph in pair:
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"tea {i}\\ncup {i}", id=f"d{i}") for i in range(100)])
search = Retriever([*pair], "line", top_k=5)
search("tea")

def work():
    while True:
        search("tea 7")

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for i in range(100):
    child = os.fork()
    if not child:
        os._exit(i == 99 and len(search("tea 7")) != 5)
    if os.waitpid(child, 0)[1]:
        os._exit(1)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forks_during_searches_of_two_graphs_end() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKS], timeout=120)
    assert done.returncode == 0


def test_groups_of_several_graphs_are_built_without_locks() -> None:
    graphs = [NodeGraph(progress=False) for _ in range(2)]

    def split(number: int, text: str) -> list[str]:
        assert not is_reading_graph()
        if text == "first":
            graphs[1 - number].add(Document("second", id="second"))
        return [text]

    for number, graph in enumerate(graphs):
        graph.create_node_group("line", partial(split, number), version="1")
    search = Retriever(graphs, "line", top_k=30)
    for graph in graphs:  # one of the graphs is locked before the other
        graph.add(Document("first", id="first"))
        assert {result.node.text for result in search("first second")} == {"first", "second"}
