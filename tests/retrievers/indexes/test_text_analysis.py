"""Texts that are analyzed by several processes give the same index as in one process."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.worker_processes import started_workers

from nodekin.nodegraph import Document, NodeGraph, SearchText
from nodekin.nodegraph.workers import idle_processors
from nodekin.retrievers import DefaultRetriever, Retriever
from nodekin.retrievers.indexes import text_analysis
from nodekin.retrievers.indexes.text_analysis import PORTION, SharedAnalysis
from nodekin.retrievers.similarities.bm25 import Bm25

TEXTS = [
    f"Passage {n} of the E-{n % 97} handbook. Der Fluß {n} fließt. 第{n}条：长江有{n}米，免运费。"
    for n in range(4_000)
]

SOME = 1_600


@pytest.fixture
def workers(monkeypatch) -> Iterator[Any]:
    monkeypatch.setattr(text_analysis, "WORTH_STARTING", 1)
    with started_workers(monkeypatch) as started:
        yield started


def built(similarity: Any) -> tuple[dict[str, Any], list[tuple[str, float]]]:
    """Return the arrays of a new index, and the results of a search."""
    graph = NodeGraph()
    graph.add(TEXTS)
    with similarity.open(graph, "ROOT").current() as index:
        arrays = index.arrays()
    found = Retriever(graph, "ROOT", similarity, top_k=20).retrieve("E-13 长江 Fluss")
    return arrays, [(result.node.id, result.score) for result in found]


def test_index_of_several_processes_equals_that_of_one(monkeypatch, workers) -> None:
    arrays, found = built(Bm25())
    assert workers.num_running > 0
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    expected, results = built(Bm25())
    assert found == results
    assert list(arrays) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(arrays[name], values)


def test_analyzer_of_a_user_runs_in_this_process(workers) -> None:
    _, found = built(Bm25(analyzer=lambda text: text.split()))
    assert found
    assert workers.num_running == 0


def test_search_texts_that_cannot_be_pickled_give_equal_results(monkeypatch, workers) -> None:
    class Local(str):
        pass

    def found(search_text: Any) -> list[tuple[str, float]]:
        graph = NodeGraph(search_text=search_text)
        graph.add(Document(text, id=str(number)) for number, text in enumerate(TEXTS[:SOME]))
        return ranked(graph)

    results = found(lambda node: Local(f"E-13 {node.text}"))
    plain = found(None)
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    assert results == found(lambda node: f"E-13 {node.text}")
    assert plain == found(None)


def ranked(graph: NodeGraph) -> list[tuple[str, float]]:
    results = DefaultRetriever(graph, top_k=20).retrieve("E-13 长江 Fluss")
    return [(result.node.text, result.score) for result in results]


def ranked_after_changes() -> list[list[tuple[str, float]]]:
    """Return the results of a new graph, and those after two changes."""
    graph = NodeGraph()
    ids = graph.add(TEXTS[:SOME])
    found = [ranked(graph)]
    graph.add([f"Another {text}" for text in TEXTS[:800]])
    found.append(ranked(graph))
    graph.remove(ids[::3])
    graph.add([f"Third {text}" for text in TEXTS[:600]])
    found.append(ranked(graph))
    return found


def counted_portions(monkeypatch) -> list[int]:
    """Record the number of started portions each time that an index is updated."""
    counts: list[int] = []
    results = SharedAnalysis.results

    def counted(analysis: SharedAnalysis, portions: Any, count: int) -> Any:
        counts.append(len(analysis._work._early))
        return results(analysis, portions, count)

    monkeypatch.setattr(SharedAnalysis, "results", counted)
    return counts


def test_texts_are_analyzed_while_other_nodes_are_built(monkeypatch, workers) -> None:
    counts = counted_portions(monkeypatch)
    found = ranked_after_changes()
    assert max(counts) >= SOME // PORTION
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    counts.clear()
    assert found == ranked_after_changes()
    assert not any(counts)


def test_only_as_much_work_is_started_as_memory_allows(monkeypatch, workers) -> None:
    monkeypatch.setattr(text_analysis, "_MOST_STARTED", 1)
    counts = counted_portions(monkeypatch)
    graph = NodeGraph()
    graph.add(TEXTS[:SOME])
    found = ranked(graph)
    assert max(counts) == 1
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    alone = NodeGraph()
    alone.add(TEXTS[:SOME])
    assert found == ranked(alone)


def test_search_text_of_a_user_is_called_only_by_the_update(monkeypatch, workers) -> None:
    counts = counted_portions(monkeypatch)
    graph = NodeGraph(search_text=lambda node: f"{node.text} Handbuch")
    graph.add(TEXTS[:SOME])
    assert ranked(graph)
    assert set(counts) == {0}


def test_search_text_with_groups_is_composed_only_by_the_update(monkeypatch, workers) -> None:
    counts = counted_portions(monkeypatch)
    graph = NodeGraph()
    graph.create_node_group("summary", lambda text: f"About {text[:12]}")
    rule = SearchText((), groups=["summary"])
    graph.add([Document(text, search_text=rule) for text in TEXTS[:SOME]])
    graph.create_node_group("line", str.splitlines)
    graph.build("summary")
    retriever = Retriever(graph, "line", "bm25", top_k=3)
    assert "Passage 7 " in retriever.retrieve("about passage 7")[0].node.text
    assert set(counts) == {0}
