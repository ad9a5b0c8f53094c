"""32 threads query composites while a writer moves documents between tenants."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.moving_documents import COMPOSITES, OWNER, WAYS, documents, moving_graph
from support.stress import Tally, amount

THREADS = 32
STATES = 12


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Shorten the interval between thread switches."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "file"])
def test_results_belong_to_the_tenant_during_moves(store: str, tmp_path: Path) -> None:
    graph = moving_graph(store=None if store == "memory" else tmp_path / "graph")
    retrievers = {name: make(graph, lambda inner: inner) for name, make in COMPOSITES.items()}
    tally = Tally(f"searches by composites in {THREADS} threads, graph in {store}")
    finished, answered = threading.Event(), threading.Semaphore(0)

    def move() -> None:
        while not finished.is_set():
            tally.note("moves")
            graph.add(documents(tally.notes["moves"] % STATES))
            for _ in range(tally.notes["moves"] % 4):
                answered.acquire(timeout=1)

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        name, way = rng.choice(list(COMPOSITES)), rng.choice(list(WAYS))
        with tally.trying((name, way)):
            results = WAYS[way](retrievers[name])
            assert all(r.node.metadata["tenant"] == OWNER["tenant"] for r in results)
        answered.release()

    with ThreadPoolExecutor(1) as writer, ThreadPoolExecutor(THREADS) as readers:
        moving = writer.submit(move)
        try:
            list(readers.map(ask, range(amount(200, 100_000))))
        finally:
            finished.set()
        moving.result()
    graph.close()
    tally.check()
