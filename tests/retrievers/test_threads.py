"""Concurrent threads on a graph: settings stay separate, results read one snapshot."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = Bm25(analyzer=str.split)


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Switch threads as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Run calls in threads that start together."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(run, call) for call in calls]]


def seen(results) -> list[tuple[str, float]]:
    return [(result.node.document_id, result.score) for result in results]


def test_concurrent_first_queries_return_equal_results() -> None:
    analyzed: list[str] = []

    def analyzer(text: str) -> list[str]:
        analyzed.append(text)
        return text.split()

    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([f"tea {i}\nsea {i}" for i in range(50)])
    retriever = Retriever(graph, "line", Bm25(analyzer=analyzer), top_k=50)
    answers = at_once(*[lambda: seen(retriever("tea"))] * 8)
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0]) == 50
    assert len(analyzed) == 100 + 8  # each node once, and each query


@pytest.mark.parametrize("target", [None, "ROOT"])
def test_concurrent_results_read_one_snapshot(target: str | None) -> None:
    """Documents are changed in pairs during searches. No result contains half a change."""

    def pair(number: int, text: str) -> list[Document]:
        return [Document(f"{text} {number}\nsea", id=f"{number}{side}") for side in "ab"]

    def new_graph() -> NodeGraph:
        graph = NodeGraph(progress=False)
        graph.create_node_group("line", str.splitlines)
        graph.add(pair(0, "tea"))
        return graph

    changes: list[Callable[[NodeGraph], object]] = []
    for number in range(1, 13):
        changes.append(lambda g, n=number: g.add(pair(n, "tea")))
        if number % 3 == 0:
            changes.append(lambda g, n=number: g.add(pair(n, "green tea")))
            changes.append(lambda g, n=number: g.remove([f"{n - 1}a", f"{n - 1}b"]))

    def ask(graph: NodeGraph) -> tuple:
        retriever = Retriever(graph, "line", WORDS, target=target, top_k=99)
        return tuple(seen(retriever("tea 3 green")))

    reference = new_graph()
    states = [ask(reference)]
    for change in changes:
        change(reference)
        states.append(ask(reference))

    graph, finished = new_graph(), threading.Event()

    def write() -> None:
        for change in changes:
            ask(graph)
            change(graph)
        finished.set()

    def read() -> list[tuple]:
        answers = []
        while not finished.is_set():
            answers.append(ask(graph))
        return [*answers, ask(graph)]

    _, *readers = at_once(write, read, read, read)
    for answers in readers:
        places = [states.index(answer) for answer in answers]  # each is one of the states
        assert places == sorted(places)  # and they are seen in order
        assert answers[-1] == states[-1]
