"""Graphs of neighbors: built by ``build``, or by a thread while searches compare all vectors."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import hnsw_builder, nearest_vectors
from nodekin.retrievers.indexes.hnsw_builder import HnswBuilder

pytest.importorskip("faiss")

COUNT = 400

QUERIES = ["7", "123", "399"]


def embed(texts: list[str]) -> np.ndarray:
    """Return random vectors of 16 numbers, by the number in the text."""
    return np.stack([np.random.default_rng(int(text)).standard_normal(16) for text in texts])


def new_graph(store: Path | None = None, progress: bool = False) -> NodeGraph:
    graph = NodeGraph(embed=Embedder(embed, "random"), store=store, progress=progress)
    graph.create_node_group("line", str.splitlines, version="1")
    if not graph.groups["ROOT"].size:
        text = "\n".join([str(number) for number in range(COUNT)])
        graph.add(Document(text, id="first"))
    return graph


def found(graph: NodeGraph) -> list[list[tuple[str, float]]]:
    retriever = Retriever(graph, "line", "cosine", top_k=5)
    return [[(r.node.text, round(r.score, 5)) for r in retriever(query)] for query in QUERIES]


def exact(graph: NodeGraph) -> list[list[tuple[str, float]]]:
    nodes = graph.nodes("line")
    every = nearest_vectors.unit(embed([node.text for node in nodes]))
    results = []
    for query in nearest_vectors.unit(embed(QUERIES)):
        cosines = every @ query
        best = np.argsort(-cosines, kind="stable")[:5]
        results.append([(nodes[row].text, round(float(cosines[row]), 5)) for row in best])
    return results


def check(graph: NodeGraph) -> None:
    for rows, expected in zip(found(graph), exact(graph), strict=True):
        assert [text for text, _ in rows] == [text for text, _ in expected]
        assert [s for _, s in rows] == pytest.approx([s for _, s in expected], abs=1e-4)


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "nodekin-neighbors"]


def join() -> None:
    for each in threads():
        each.join()


class Gate:
    """Stops the construction of all graphs of neighbors, until it opens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        step = HnswBuilder.step

        def waiting(builder: HnswBuilder, size: int) -> int:
            self.reached.set()
            self.opened.wait()
            return step(builder, size)

        monkeypatch.setattr(HnswBuilder, "step", waiting)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred vectors are many."""
    monkeypatch.setattr(nearest_vectors, "EXACT", 100)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 0)
    monkeypatch.setattr(hnsw_builder, "_SMALL_STEP", 16)


@pytest.fixture
def gate(few: None, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def linked(folder: Path) -> bool:
    """Return whether a file of the folder has a graph of neighbors."""
    files = [path.read_bytes() for path in folder.glob("vectors-*")]
    return any(b"hnsw_neighbors" in data for data in files)


def test_search_is_exact_while_thread_builds(
    gate: Gate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with new_graph(tmp_path / "graph") as graph:
        for _ in range(3):
            check(graph)
        gate.reached.wait()
        check(graph)
        assert len(threads()) == 1
        gate.opened.set()
        join()
        assert linked(tmp_path / "graph-indexes")
        check(graph)
    assert caplog.messages == [
        f"{COUNT} vectors of 'line' are compared one by one; a thread builds an HNSW index, "
        "which makes searches faster; graph.build(embed=True) builds it before the first search"
    ]


def test_documents_can_change_while_thread_builds(gate: Gate, tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph") as graph:
        found(graph)
        gate.reached.wait()
        graph.add(Document("1007\n1123\n7", id="second"))
        check(graph)
        gate.opened.set()
        join()
        check(graph)
        graph.remove("second")
        check(graph)
        assert linked(tmp_path / "graph-indexes")
    with new_graph(tmp_path / "graph") as graph:
        check(graph)


def test_graph_of_former_vectors_is_dropped(gate: Gate, tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph") as graph:
        found(graph)
        gate.reached.wait()
        text = "\n".join([str(number) for number in range(5_000, 7_000)])
        graph.add(Document(text, id="second"))
        found(graph)
        graph.remove("second")  # most rows are empty, so the vectors are moved
        check(graph)
        gate.opened.set()
        join()
        check(graph)
        join()
        assert linked(tmp_path / "graph-indexes")


def test_closed_graph_stops_thread(gate: Gate, tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    found(graph)
    found(graph)
    gate.reached.wait()
    gate.opened.set()
    graph.close()
    assert not threads()
    check(graph)  # the next call opens the graph again
    join()
    check(graph)
    graph.close()


def test_build_continues_work_of_thread(
    gate: Gate, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with new_graph(tmp_path / "graph", progress=True) as graph:
        found(graph)
        gate.reached.wait()
        gate.opened.set()
        graph.build("line", embed=True)
        assert not threads()
        assert linked(tmp_path / "graph-indexes")
        check(graph)


def test_build_links_vectors_with_progress_bar(
    few: None,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with new_graph(tmp_path / "graph", progress=True) as graph:
        graph.build("line", embed=True)
        assert "linking vectors of line: 100%" in capfd.readouterr().err
        assert linked(tmp_path / "graph-indexes")
        check(graph)
        graph.build("line", embed=True)
        assert "linking" not in capfd.readouterr().err
    with new_graph(tmp_path / "graph") as graph:
        check(graph)
        assert not threads()
    assert not caplog.messages


def test_build_links_few_vectors_never(few: None, tmp_path: Path) -> None:
    with NodeGraph(embed=Embedder(embed, "random"), store=tmp_path / "graph") as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add("1\n2\n3")
        graph.build("line", embed=True)
        assert not list((tmp_path / "graph-indexes").glob("vectors-*"))


PROGRAM = """
import os, sys
sys.path.insert(0, {folder!r})
import test_hnsw_builder as test
from nodekin.retrievers.indexes import hnsw_builder, nearest_vectors
nearest_vectors.EXACT = 100
hnsw_builder._SMALL_STEP = 1
test.COUNT = 3_000
graph = test.new_graph()
test.check(graph)
assert len(test.threads()) == 1
if {forks}:
    child = os.fork()
    assert len(test.threads()) == (1 if child else 0)
    test.check(graph)
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(graph)
"""


@pytest.mark.parametrize(
    "forks",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(sys.platform == "win32", reason="no fork")),
    ],
)
def test_process_ends_while_thread_builds(forks: bool) -> None:
    program = PROGRAM.format(folder=str(Path(__file__).parent), forks=forks)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("NodeGraph(1 documents") == 1 + forks
