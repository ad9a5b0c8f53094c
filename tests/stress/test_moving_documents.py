"""32 threads query composites while a writer moves documents between tenants."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.moving_documents import COMPOSITES, OWNER, WAYS, Answer, documents, moving_graph, shown
from support.stress import Tally, amount

from nodekin.nodegraph import NodeGraph

THREADS = 32
ANSWERS = amount(200, 100_000)
PATIENCE = 3 * 3600.0
STATES = amount(6, 12)
"""States after which it begins again with the first."""


class Seen(NamedTuple):
    composite: str
    way: str
    answer: Answer


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Shorten the interval between thread switches."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


class Crowd:
    """Threads that ask, and one that moves documents after every few answers."""

    def __init__(self, graph: NodeGraph) -> None:
        self.retrievers = {
            name: make(graph, lambda inner: inner) for name, make in COMPOSITES.items()
        }
        self.graph = graph
        self.seen: list[Seen] = []
        self.errors: list[BaseException] = []
        self.moves = 0
        self._enough = threading.Event()
        self._answered = threading.Condition()

    def run(self) -> None:
        threads = [threading.Thread(target=self._guarded, args=[-1], daemon=True)]
        threads += [
            threading.Thread(target=self._guarded, args=[seed], daemon=True)
            for seed in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "threads wait for each other"
        if self.errors:
            raise self.errors[0]

    def _guarded(self, seed: int) -> None:
        try:
            if seed < 0:
                self._move()
            else:
                self._ask(random.Random(seed))
        except BaseException as error:
            self.errors.append(error)
        finally:
            self._enough.set() if self.errors else None
            with self._answered:
                self._answered.notify_all()

    def _move(self) -> None:
        while not self._enough.is_set():
            self.moves += 1
            self.graph.update(documents(self.moves % STATES))
            until = len(self.seen) + self.moves % 4
            with self._answered:
                self._answered.wait_for(
                    lambda: len(self.seen) >= until or self._enough.is_set()  # noqa: B023
                )

    def _ask(self, choose: random.Random) -> None:
        while not self._enough.is_set():
            name, way = choose.choice(list(COMPOSITES)), choose.choice(list(WAYS))
            answer = shown(WAYS[way](self.retrievers[name]))
            with self._answered:
                self.seen.append(Seen(name, way, answer))
                self._answered.notify_all()
            if len(self.seen) >= ANSWERS:
                self._enough.set()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "file"])
def test_results_belong_to_the_tenant_during_moves(store: str, tmp_path: Path) -> None:
    graph = moving_graph(store=None if store == "memory" else tmp_path / "graph")
    crowd = Crowd(graph)
    crowd.run()
    graph.close()
    tally = Tally(f"answers of composites to {THREADS} threads, graph in {store}")
    for seen in crowd.seen:
        with tally.trying((seen.composite, seen.way)):
            nodes: list[dict[str, Any]] = [fields for _, _, fields, *_ in seen.answer]
            assert all(fields["tenant"] == OWNER["tenant"] for fields in nodes)
    tally.notes["moves"] = crowd.moves
    tally.check()
