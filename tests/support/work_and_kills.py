"""Threads that write and search while a server is killed and started again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.retrievers import Retriever, ScoredNode
from support.stress import Tally

PATIENCE = 600  # seconds, on a busy machine

MANY = 500  # documents, from which on more are removed than added


class Server(Protocol):
    """What can be killed."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


def digits(texts: list[str]) -> list[list[float]]:
    """Return a vector by which a text is told from all others."""
    rows = []
    for text in texts:
        number = next((int(word) for word in text.split() if word.isdigit()), 0)
        rows.append([float(number >> bit & 1) + 0.1 for bit in range(16)])
    return rows


def opened(**options: Any) -> NodeGraph:
    graph = NodeGraph(embed=Embedder(digits, "digits"), progress=False, **options)
    graph.create_node_group("line", str.splitlines)
    return graph


class Work:
    """What threads do, and what they know to have happened."""

    def __init__(self, tally: Tally, **options: Any) -> None:
        self.options = options
        self.graph = opened(**options)
        self.tally = tally
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.written: dict[str, bool] = {}  # by document: whether it is there; only what is known
        self.busy: set[str] = set()  # documents that a call is changing
        self.changed = 0
        self.searched = 0
        self.errors: list[BaseException] = []

    def write(self, thread: int) -> None:
        rng = random.Random(thread)
        number = 1_000 * thread
        while not self.stop.is_set():
            with self.lock:
                old = [i for i, there in self.written.items() if there and i not in self.busy]
            remove = rng.random() < (0.2 if len(old) < MANY else 0.6)
            if remove and old:
                name = rng.choice(old)
            else:
                remove = False
                number += 1
                name = str(number)
            with self.lock:
                if name in self.busy:
                    continue
                self.busy.add(name)
            try:
                if remove:
                    self.graph.remove(name)
                else:
                    self.graph.add(Document(f"document {name}\nbeside {name}", id=name))
            except StoreError as error:
                self.tally.note(f"writes refused by {type(error).__name__}")
                with self.lock:
                    self.written.pop(name, None)  # whether it happened is looked up in the end
                time.sleep(0.01)
            else:
                with self.lock:
                    self.written[name] = not remove
                    self.changed += 1
            finally:
                with self.lock:
                    self.busy.discard(name)

    def read(self, thread: int) -> None:
        rng = random.Random(thread)
        retrievers = [
            Retriever(self.graph, "line", similarity, target="ROOT", top_k=3)
            for similarity in ("bm25", "cosine")
        ]
        while not self.stop.is_set():
            with self.lock:
                known = [i for i in self.written if i not in self.busy]
                if not known:
                    continue
                existing = [i for i in known if self.written[i]]
                name = rng.choice(existing if existing and rng.random() < 0.8 else known)
                there = self.written[name]
                self.busy.add(name)  # nobody changes it meanwhile
            try:
                for retriever in retrievers:
                    ids = [result.node.id for result in retriever(f"document {name}")]
                    with self.tally.trying((name, there, ids, retriever.similarity.name)):
                        assert (name in ids) == there
                with self.lock:
                    self.searched += 1
            except StoreError:
                self.tally.note("searches refused")
                time.sleep(0.01)
            finally:
                with self.lock:
                    self.busy.discard(name)

    def wait_for_progress(self) -> None:
        """Wait until some documents were changed, and some found by words and by vectors."""
        changed, searched = self.changed, self.searched
        end = time.monotonic() + PATIENCE
        while self.changed < changed + 4 or self.searched < searched + 4:
            assert not self.errors, self.errors
            assert time.monotonic() < end, "no progress since the server was started"
            time.sleep(0.005)

    def run(self, work: Callable[[int], None], thread: int) -> None:
        try:
            work(thread)
        except BaseException as error:
            self.errors.append(error)


def check_kills(server: Server, kills: int, name: str, **options: Any) -> None:
    """Kill a server in the middle of writes, builds and searches; look what was lost.

    Args:
        server: The server, running.
        kills: How many times.
        name: Names the test.
        **options: What ``NodeGraph`` takes.
    """
    tally = Tally(name)
    work = Work(tally, **options)
    threads = [threading.Thread(target=work.run, args=(work.write, n)) for n in (1, 2)]
    threads += [threading.Thread(target=work.run, args=(work.read, n)) for n in (3, 4)]
    for thread in threads:
        thread.start()
    rng = random.Random(7)
    for _ in range(kills):
        work.wait_for_progress()
        time.sleep(rng.random() * 0.05)
        server.kill()
        server.start()
        tally.note("kills")
    work.wait_for_progress()
    work.stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not work.errors, work.errors
    ids = set(work.graph.reader.document_ids())
    for document, there in work.written.items():
        with tally.trying((document, "acknowledged")):
            assert (document in ids) == there
    tally.check()
    work.graph.close()
    again = opened(**options)
    assert set(again.reader.document_ids()) == ids
    assert {n.document_id for n in again.nodes("line")} == ids
    vectors = Retriever(again, "line", "cosine", top_k=10_000)
    assert {result.node.document_id for result in _when_ready(vectors)} == ids
    again.close()


def _when_ready(retriever: Retriever) -> list[ScoredNode]:
    """Return what is found as soon as the server that was started last takes searches."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return retriever("document 1")
        except StoreError:
            if time.monotonic() > end:
                raise
