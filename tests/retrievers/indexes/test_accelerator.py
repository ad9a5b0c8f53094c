import importlib.util
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from nodekin.retrievers.indexes import accelerator
from nodekin.retrievers.indexes.accelerator import Accelerator, Kernels


def test_only_a_large_index_loads_it_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    kernels = Kernels()

    def load() -> Kernels:
        loads.append(threading.get_ident())
        return kernels

    monkeypatch.setattr(accelerator, "load", load)
    own = Accelerator()
    assert own.kernels(9_999) is None
    assert not loads
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(own.kernels, [10_000] * 32)) == {kernels}
    assert len(loads) == 1
    assert own.kernels(5) is kernels  # what is there costs nothing


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
