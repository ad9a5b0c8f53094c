"""Threads add, update, remove, build and read concurrently. The final graph is complete."""

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.built_anew import GROUPS, TIMEOUT, check_as_anew, declare, halves
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph

TEXTS = ["tea\ngreen tea", "cup", "tea cup\nriver", "milk\ncup of milk", "", "bad\ntea"]
IDS = [f"d{number}" for number in range(30)]
STEPS = 30


def slow(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform that yields to other threads, like a transform waiting for a model."""

    def call(given: Any, /) -> Any:
        time.sleep(0.001)
        return transform(given)

    return call


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Shorten the interval between thread switches."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


class Threads:
    """Threads that change one graph, each with a separate random generator."""

    def __init__(self, graph: NodeGraph, num_workers: int, seed: int) -> None:
        self.graph = graph
        self._num_workers = num_workers
        self._seed = seed
        self._errors: list[BaseException] = []

    def run(self, *actions: Callable[[random.Random], object]) -> None:
        start = threading.Barrier(len(actions))
        threads = [
            threading.Thread(target=self._repeat, args=(number, action, start), daemon=True)
            for number, action in enumerate(actions)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
        if self._errors:
            raise self._errors[0]

    def _repeat(self, number: int, action: Callable[[random.Random], object], start: Any) -> None:
        choose = random.Random(f"{self._seed} {number}")
        try:
            start.wait(TIMEOUT)
            for _ in range(STEPS):
                action(choose)
                time.sleep(choose.random() * 0.01)
        except BaseException as error:
            self._errors.append(error)

    def fill(self) -> None:
        self.graph.add([Document(TEXTS[n % 4], id=i) for n, i in enumerate(IDS)])

    def put(self, choose: random.Random) -> None:
        topic = choose.choice(["ice", "fire"])
        some = choose.sample(IDS, choose.randint(1, 3))
        self.graph.add([Document(choose.choice(TEXTS), {"topic": topic}, id=i) for i in some])

    def readd(self, choose: random.Random) -> None:
        with suppress(LookupError):  # another thread has removed it
            node = self.graph.node(choose.choice(IDS))
            self.graph.remove(node.id)
            self.graph.add(Document(node.text, node.own_metadata, id=node.id))

    def remove(self, choose: random.Random) -> None:
        with suppress(LookupError):
            self.graph.remove(choose.choice(IDS))

    def read(self, choose: random.Random) -> None:
        name = choose.choice(list(GROUPS))
        with self.graph.reader.reading(name):
            for node in self.graph.nodes(name):
                assert node.parent_id is None or node.parent is not None

    def replace(self, choose: random.Random) -> None:
        rule = choose.choice([halves, GROUPS["line"][0]])
        declare(self.graph, {"line": (rule, {})}, self._num_workers, slow)


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize(
    ("store", "seed"),
    [*(("memory", seed) for seed in range(amount(2, 8))), ("file", 8), ("file", 9)],
)
def test_concurrent_changes_leave_graph_equal_to_rebuilt_graph(
    store: str, seed: int, num_workers: int, tmp_path: Path
) -> None:
    path = None if store == "memory" else tmp_path / "graph"
    with NodeGraph(store=path, on_error="skip", progress=False) as graph:
        declare(graph, GROUPS, num_workers, slow)
        threads = Threads(graph, num_workers, seed)
        threads.fill()
        some = [threads.put, threads.readd, threads.readd, threads.remove]
        threads.run(*some, threads.read, threads.read, *([threads.replace] if seed % 2 else []))
        declare(graph, GROUPS, num_workers, slow)
        check_as_anew(graph, GROUPS)
