import importlib.util
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import accelerator, text_index
from nodekin.retrievers.indexes.accelerator import Accelerator
from nodekin.retrievers.indexes.compiled_search import Kernel
from nodekin.retrievers.indexes.kernels import search


def test_it_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []

    def load() -> Kernel:
        loads.append(threading.get_ident())
        return search

    monkeypatch.setattr(accelerator, "load", load)
    own = Accelerator()
    assert own.loaded is None
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(own.kernel) for _ in range(32)]
        assert {run.result() for run in runs} == {search}
    assert len(loads) == 1
    assert own.loaded is search


def test_searches_of_many_nodes_together_load_it(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Accelerator()
    monkeypatch.setattr(accelerator, "load", lambda: search)
    monkeypatch.setattr(text_index, "accelerator", own)
    graph = NodeGraph(progress=False)
    graph.add(["green tea", "black tea", "white tea"])
    retriever = Retriever(graph, "ROOT")
    monkeypatch.setattr(text_index, "WORTH_LOADING", 6)
    without = [(result.node, result.score) for result in retriever("green tea")]
    assert own.loaded is None
    assert [(result.node, result.score) for result in retriever("green tea")] == without
    assert own.loaded is search


def test_without_numba_there_is_none_and_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert accelerator.load() is None
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
    assert accelerator.load() is None


def test_importing_and_searching_little_does_not_import_numba() -> None:
    code = (
        "import sys; from nodekin.nodegraph import NodeGraph; "
        "from nodekin.retrievers import Retriever; graph = NodeGraph(); graph.add('tea'); "
        "print(len(Retriever(graph, 'ROOT')('tea')), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
