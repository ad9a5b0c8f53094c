"""Compiled loops are loaded where they pay, and change no result."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import compiled_search, text_index


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    compiled_search.load.cache_clear()
    yield
    compiled_search.load.cache_clear()


@pytest.mark.parametrize("filters", [None, {"even": True}])
def test_a_retriever_returns_the_same_with_and_without(
    monkeypatch: pytest.MonkeyPatch, filters: dict[str, bool] | None
) -> None:
    random = np.random.default_rng(3)
    words = [f"word{number}" for number in range(300)]
    texts = [" ".join(random.choice(words, random.integers(3, 30))) for _ in range(400)]
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(t, {"even": n % 2 == 0}, id=str(n)) for n, t in enumerate(texts)])
    queries = [" ".join(random.choice(words, 6)) for _ in range(40)]

    def results() -> list[list[tuple[str, float]]]:
        retriever = Retriever(graph, "line", "bm25", top_k=7, filters=filters)
        return [[(r.node.id, r.score) for r in results] for results in retriever.batch(queries)]

    without = results()
    monkeypatch.setattr(text_index, "WORTH_LOADING", 0)
    monkeypatch.setattr(
        text_index, "load", lambda: compiled_search.adding(compiled_search.add_postings)
    )
    assert results() == without
    graph.remove([str(number) for number in range(0, 400, 3)])
    compiled = results()
    monkeypatch.setattr(text_index, "load", lambda: None)
    assert results() == compiled != without


def test_searches_of_many_nodes_together_load_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    monkeypatch.setattr(text_index, "load", lambda: loads.append(1))
    graph = NodeGraph(progress=False)
    graph.add(["green tea", "black tea", "white tea"])
    retriever = Retriever(graph, "ROOT")
    monkeypatch.setattr(text_index, "WORTH_LOADING", 6)
    retriever("green tea")
    assert not loads
    retriever("green tea")
    assert loads


def test_without_numba_there_are_none_and_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert compiled_search.load() is None
    assert not caplog.records


@pytest.mark.parametrize(
    "numba",
    [
        SimpleNamespace(config=SimpleNamespace(DISABLE_JIT=1)),
        SimpleNamespace(config=SimpleNamespace(DISABLE_JIT=0)),  # of another kind: no types
    ],
)
def test_a_numba_that_can_not_compile_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, numba: SimpleNamespace
) -> None:
    monkeypatch.setitem(sys.modules, "numba", numba)  # type: ignore[arg-type]
    assert compiled_search.load() is None


def test_importing_and_searching_little_does_not_import_numba() -> None:
    code = (
        "import sys; from nodekin.nodegraph import NodeGraph; "
        "from nodekin.retrievers import Retriever; graph = NodeGraph(); graph.add('tea'); "
        "print(len(Retriever(graph, 'ROOT')('tea')), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
