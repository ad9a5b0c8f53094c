"""Texts that are analyzed by several processes give the same index as in one process."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.worker_processes import started_workers

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.workers import idle_processors
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import text_analysis
from nodekin.retrievers.similarities.bm25 import Bm25

TEXTS = [
    f"Passage {n} of the E-{n % 97} handbook. Der Fluß {n} fließt. 第{n}条：长江有{n}米，免运费。"
    for n in range(4_000)
]


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
