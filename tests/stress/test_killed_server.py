"""A PostgreSQL server is killed during writes, builds and searches, and restarted.

No acknowledged document is lost and no removed document returns. A search by words or vectors
finds all documents acknowledged before the search started. ``make stress`` kills PostgreSQL 200
times.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.postgres_server import RunningServer, running_server
from support.stress import Tally, amount

from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.retrievers import Retriever

PATIENCE = 600  # seconds, on a busy machine
MANY = 500  # documents; larger graphs shrink


def digits(texts: list[str]) -> list[list[float]]:
    """Return a different vector for each number."""
    numbers = [next((int(word) for word in text.split() if word.isdigit()), 0) for text in texts]
    return [[float(number >> bit & 1) + 0.1 for bit in range(16)] for number in numbers]


def opened(store: Any) -> NodeGraph:
    graph = NodeGraph(embed=Embedder(digits, "digits"), store=store, progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


class Work:
    """Threads that write and search, and the documents that must exist or be missing."""

    def __init__(self, graph: NodeGraph, tally: Tally) -> None:
        self.graph, self.tally = graph, tally
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.exists: dict[str, bool] = {}  # without documents of unacknowledged writes
        self.busy: set[str] = set()  # documents that one thread uses
        self.done = {"written": 0, "searched": 0}
        self.errors: list[BaseException] = []

    def run(self, step: Callable[[random.Random, int], None], thread: int) -> None:
        rng = random.Random(thread)
        number = 1_000 * thread
        try:
            while not self.stop.is_set():
                number += 1
                step(rng, number)
        except BaseException as error:
            self.errors.append(error)

    @contextmanager
    def using(self, name: str, what: str) -> Iterator[None]:
        """Reserve a document during an operation. A server error ends the operation."""
        try:
            yield
            self.done[what] += 1
        except StoreError as error:
            self.tally.note(f"operations refused by {type(error).__name__}")
            if what == "written":
                self.exists.pop(name, None)
            time.sleep(0.01)
        finally:
            self.busy.discard(name)

    def write(self, rng: random.Random, number: int) -> None:
        with self.lock:
            free = [i for i, exists in self.exists.items() if exists and i not in self.busy]
            remove = bool(free) and rng.random() < (0.2 if len(free) < MANY else 0.6)
            name = rng.choice(free) if remove else str(number)
            self.busy.add(name)
        with self.using(name, "written"):
            if remove:
                self.graph.remove(name)
            else:
                self.graph.add(Document(f"document {name}\nbeside {name}", id=name))
            with self.lock:
                self.exists[name] = not remove

    def search(self, rng: random.Random, number: int) -> None:
        with self.lock:
            free = [i for i in self.exists if i not in self.busy]
            if not free:
                return
            name = rng.choice(free)
            self.busy.add(name)
        with self.using(name, "searched"):
            for similarity in ("bm25", "cosine"):
                retriever = Retriever(self.graph, "line", similarity, target="ROOT", top_k=3)
                ids = [result.node.id for result in retriever(f"document {name}")]
                with self.tally.trying((name, self.exists[name], ids, similarity)):
                    assert (name in ids) == self.exists[name]

    def wait_for_progress(self) -> None:
        """Wait for four writes and four searches."""
        goal = {what: count + 4 for what, count in self.done.items()}
        end = time.monotonic() + PATIENCE
        while any(self.done[what] < count for what, count in goal.items()):
            assert not self.errors, self.errors
            assert time.monotonic() < end, "no progress since the server was started"
            time.sleep(0.005)


@pytest.fixture
def mortal() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.mark.slow
def test_killed_server_keeps_all_acknowledged_documents(mortal: RunningServer) -> None:
    tally, store = Tally("killed server"), mortal.address()
    graph = opened(store)
    work = Work(graph, tally)
    steps = [work.write, work.write, work.search, work.search]
    threads = [threading.Thread(target=work.run, args=(s, n)) for n, s in enumerate(steps, 1)]
    for thread in threads:
        thread.start()
    rng = random.Random(7)
    for _ in range(amount(2, 200)):
        work.wait_for_progress()
        time.sleep(rng.random() * 0.05)
        mortal.kill()
        mortal.start()
        tally.note("kills")
    work.wait_for_progress()
    work.stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not work.errors, work.errors
    ids = set(graph.reader.document_ids())
    for document, exists in work.exists.items():
        with tally.trying(document):
            assert (document in ids) == exists
    tally.check()
    graph.close()
    with opened(store) as again:
        assert set(again.reader.document_ids()) == ids
        assert {n.document_id for n in again.nodes("line")} == ids
        results = Retriever(again, "line", "cosine", top_k=10_000)("document 1")
        assert {result.node.document_id for result in results} == ids
