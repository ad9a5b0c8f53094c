"""Several processes on one file: each reads one state at a time, and one of them writes."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph, StoreError
from nodekin.nodegraph.sqlite.connection import Connection as SQLiteConnection
from nodekin.nodegraph.sqlite.connection import opening as OPENING
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore
from nodekin.retrievers import Retriever

# Forked here, while there is one thread: quicker than to start anew, and a thing users do.
FORK = multiprocessing.get_context("fork")
WAIT = 300


def opened(path: Path, timeout: float = 60) -> NodeGraph:
    graph = NodeGraph(store=SQLiteStore(path, timeout=timeout), progress=False)
    graph.create_node_group("word", str.split)
    return graph


class Process:
    """A function that runs in a process of its own, with a line to talk over."""

    def __init__(self, run: Callable[..., object], *given: object) -> None:
        self.line, theirs = FORK.Pipe()
        self._process = FORK.Process(target=self._run, args=(run, theirs, *given), daemon=True)
        self._process.start()
        theirs.close()

    @staticmethod
    def _run(run: Callable[..., object], line: Connection, *given: object) -> None:
        try:
            line.send(run(line, *given))
        except BaseException as error:
            line.send(error)

    def hear(self) -> Any:
        """Return what the process says next; at last, what its function returned."""
        assert self.line.poll(WAIT), "the process says nothing"
        said = self.line.recv()
        if isinstance(said, BaseException):
            raise said
        return said

    def kill(self) -> None:
        self._process.kill()
        self._process.join(WAIT)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.line.close()
        self._process.close()


def generation(number: int) -> list[Document]:
    return [Document(f"tea g{number} n{i}", {"of": number}, id=f"d{i}") for i in range(12)]


def write_generations(line: Connection, path: Path) -> str:
    graph = opened(path)
    line.send("ready")
    for number in range(1, 40):
        graph.add(generation(number))
        if number % 13 == 0:
            graph.build("word")
            graph.compact()
        time.sleep(0.02)
    graph.close()
    return "done"


def read_generations(line: Connection, path: Path) -> list[int]:
    """See that every state is of one generation, and none older than the last."""
    graph = opened(path)
    search = Retriever(graph, "word", "bm25", target="ROOT", top_k=20)
    seen: list[int] = []
    line.send("ready")
    while not line.poll():
        with graph.reader.reading("word"):
            documents = [node.metadata["of"] for node in graph.nodes("ROOT")]
            words = [node.text for node in graph.nodes("word")]
        assert len(set(documents)) == 1
        assert words == [word for d in generation(documents[0]) for word in d.text.split()]
        found = search("tea")
        assert len(found) == 12
        assert len({result.node.metadata["of"] for result in found}) == 1
        assert len({result.score for result in found}) == 1
        seen += [documents[0], found[0].node.metadata["of"]]
    assert seen == sorted(seen)
    graph.close()
    return seen


@pytest.mark.slow
def test_readers_see_one_state_at_a_time_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    with opened(path) as graph:
        graph.add(generation(0))
    with (
        Process(read_generations, path) as first,
        Process(read_generations, path) as second,
    ):
        assert [first.hear(), second.hear()] == ["ready", "ready"]
        with Process(write_generations, path) as writer:
            assert [writer.hear(), writer.hear()] == ["ready", "done"]
        for reader in (first, second):
            reader.line.send("enough")
            assert len(set(reader.hear())) > 1


def add_many(line: Connection, path: Path, name: str) -> str:
    graph = opened(path)
    line.send("ready")
    line.recv()
    for number in range(15):
        graph.add([Document(f"tea {number}", id=f"{name}{number}-{i}") for i in range(3)])
        graph.build("word")
    graph.close()
    return "done"


def test_two_writers_wait_for_each_other_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    with Process(add_many, path, "a") as first, Process(add_many, path, "b") as second:
        assert [first.hear(), second.hear()] == ["ready", "ready"]
        first.line.send("go")
        second.line.send("go")
        assert [first.hear(), second.hear()] == ["done", "done"]
    with opened(path) as graph:
        expected = {f"{p}{n}-{i}" for p in "ab" for n in range(15) for i in range(3)}
        assert {node.id for node in graph.nodes("ROOT")} == expected
        assert len(graph.nodes("word")) == 2 * len(expected)


def hold(line: Connection, path: Path) -> None:
    store = SQLiteStore(path)
    with store.writing(), store.transaction():
        store.change_documents([Document("half done", id="half")])
        line.send("held")
        line.recv()


def test_a_writer_that_waits_too_long_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = opened(path, timeout=0.3)
    graph.add(Document("tea", id="tea"))
    graph.build("word")
    with Process(hold, path) as holder:
        assert holder.hear() == "held"
        for write in (lambda: graph.add("more"), lambda: graph.remove("tea"), graph.compact):
            with pytest.raises(StoreError, match="another process") as caught:
                write()
            assert str(path) in str(caught.value)
            assert "timeout=" in str(caught.value)
        assert [node.text for node in graph.nodes("word")] == ["tea"]  # reading goes on
        holder.line.send("enough")
        holder.hear()
    graph.add(Document("more", id="more"))
    assert [node.id for node in graph.nodes("ROOT")] == ["tea", "half", "more"]
    graph.close()


def test_a_process_killed_while_it_writes_keeps_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = opened(path, timeout=300)
    graph.add(Document("tea", id="tea"))
    with Process(hold, path) as holder:
        assert holder.hear() == "held"
        holder.kill()
        graph.add(Document("more", id="more"))
    assert [node.id for node in graph.nodes("ROOT")] == ["tea", "more"]
    graph.close()


class Slow:
    """A model that notes each call, in a file that all processes write to."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, text: str) -> list[str]:
        time.sleep(0.02)
        with self.log.open("a") as log:
            log.write(f"{text}\n")
        return text.split()


def build_slowly(line: Connection, path: Path, log: Path) -> list[str]:
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("slow", Slow(log), version="1")
    line.send("ready")
    line.recv()
    texts = [node.text for node in graph.nodes("slow")]
    graph.close()
    return texts


def test_two_processes_that_want_a_group_derive_it_once(tmp_path: Path) -> None:
    path, log = tmp_path / "graph", tmp_path / "log"
    with NodeGraph(store=path) as graph:
        graph.add([Document(f"n{i} tea", id=str(i)) for i in range(20)])
    with (
        Process(build_slowly, path, log) as first,
        Process(build_slowly, path, log) as second,
    ):
        assert [first.hear(), second.hear()] == ["ready", "ready"]
        first.line.send("go")
        second.line.send("go")
        assert first.hear() == second.hear()
    assert sorted(log.read_text().splitlines()) == sorted(f"n{i} tea" for i in range(20))


def use(line: Connection, graph: NodeGraph) -> list[str]:
    graph.add(Document("of the child", id="child 1"))
    line.send("added")
    line.recv()
    graph.add(Document("of the child", id="child 2"))
    line.send([node.text for node in graph.nodes("word")])
    return [node.id for node in graph.nodes("ROOT")]


@pytest.mark.parametrize("closes", [False, True])
def test_a_graph_is_used_on_both_sides_of_a_fork(tmp_path: Path, closes: bool) -> None:
    graph = opened(tmp_path / "graph")
    graph.add(Document("of the parent", id="parent 0"))
    graph.build("word")
    with Process(use, graph) as child:
        assert child.hear() == "added"
        if closes:  # the last to close a file tidies up: the child is still there
            graph.close()
        graph.add(Document("of the parent", id="parent 1"))
        if closes:
            graph.close()
        child.line.send("on")
        assert child.hear()[:3] == ["of", "the", "parent"]
        expected = ["parent 0", "child 1", "parent 1", "child 2"]
        assert child.hear() == expected
    assert [node.id for node in graph.nodes("ROOT")] == expected
    assert len(graph.nodes("word")) == 12
    graph.close()
    with opened(tmp_path / "graph") as again:
        assert [node.id for node in again.nodes("ROOT")] == expected


def test_a_fork_between_reads_of_one_state_disturbs_neither(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph")
    graph.add(Document("tea", id="tea"))
    with graph.reader.reading():
        pid = os.fork()
        if pid == 0:  # the child of a thread that reads; it looks with an object of its own
            code = 1
            try:
                other = opened(tmp_path / "graph")
                code = 0 if [node.id for node in other.nodes("ROOT")] == ["tea"] else 2
                other.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert [node.id for node in graph.nodes("ROOT")] == ["tea"]
    graph.add(Document("more", id="more"))
    assert [node.id for node in graph.nodes("ROOT")] == ["tea", "more"]
    graph.close()


SPAWNED = """
import pickle, sys
from nodekin.nodegraph import Document
graph = pickle.loads(sys.stdin.buffer.read())
graph.add(Document("from elsewhere", id="elsewhere"))
print(*[node.text for node in graph.nodes("word")])
graph.close()
"""


def test_a_pickled_graph_is_the_same_file_in_another_process(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph")
    graph.add(Document("green tea", id="tea"))
    graph.build("word")
    command = [sys.executable, "-W", "error", "-c", SPAWNED]
    ran = subprocess.run(command, input=pickle.dumps(graph), capture_output=True, check=True)
    assert ran.stdout.split() == [b"green", b"tea", b"from", b"elsewhere"]
    assert [node.id for node in graph.nodes("ROOT")] == ["tea", "elsewhere"]
    graph.close()


PATIENCE = 300.0

READ_AND_CLOSE = """
import sys, threading
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore

store = SQLiteStore(sys.argv[1])
store.put_values("kind", {str(n): b"x" * 100 for n in range(200)})
sys.setswitchinterval(1e-5)
read = []

def run():
    for turn in range(60):
        read.append(len(store.get_values("kind")))
        if turn % 3 == 0:
            store.close()

threads = [threading.Thread(target=run) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
store.close()
print(len(read), set(read))
"""


def test_threads_read_while_others_close(tmp_path: Path) -> None:
    # In a process of its own: SQLite crashes where a connection in use is closed.
    command = [sys.executable, "-W", "error", "-c", READ_AND_CLOSE, str(tmp_path / "graph")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "360 {200}\n"


SEARCH_AND_CLOSE = """
import sys, threading
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever

graph = NodeGraph(store=sys.argv[1], progress=False)
graph.add([Document(f"tea {i}", id=f"d{i}") for i in range(50)])
search = FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "FineChunk")])
done = threading.Event()
errors = []

def run():
    while not done.is_set():
        try:
            assert search("tea")
        except Exception as error:
            errors.append(repr(error))

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(100):
    graph.close()
    graph.add(Document("cup", id="d1"))
done.set()
for thread in threads:
    thread.join()
graph.close()
print(errors)
"""


@pytest.mark.slow
def test_threads_search_while_another_closes_the_graph(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", SEARCH_AND_CLOSE, str(tmp_path / "graph")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "[]\n")


def test_what_reads_goes_on_with_its_state_where_the_graph_is_closed(tmp_path: Path) -> None:
    graph, other = opened(tmp_path / "graph"), opened(tmp_path / "graph")
    graph.add([Document("green tea", id="tea"), Document("a cup", id="cup")])
    nodes = graph._store.nodes("ROOT")
    first = next(nodes)
    other.update([Document("black tea", id="tea"), Document("two cups", id="cup")])
    closing = threading.Thread(target=graph.close)
    closing.start()
    closing.join(PATIENCE)
    assert [first.text, *(node.text for node in nodes)] == ["green tea", "a cup"]
    again = graph._store.nodes("ROOT")
    first = next(again)
    graph.close()  # also by the thread that reads
    assert [first.text, *(node.text for node in again)] == ["black tea", "two cups"]
    for each in (graph, other):
        each.close()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("graph-")] == []


def finished(work: Callable[[], object]) -> bool:
    """Return whether a call ends that nothing should keep waiting."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    return not thread.is_alive()


def test_compacting_does_not_wait_for_those_who_read(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph", timeout=PATIENCE)
    graph.add([Document(f"tea {i}", id=str(i)) for i in range(20)])
    store = graph._store
    with store.snapshot():
        graph_is_compacted = finished(graph.compact)
    assert graph_is_compacted
    graph.close()


def test_values_are_read_in_a_snapshot_while_another_thread_writes(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "graph", timeout=PATIENCE)
    store.put_values("kind", {"old": b"1"})
    writes, read = threading.Event(), threading.Event()

    def write() -> None:
        with store.transaction():
            store.put_values("kind", {"new": b"2"})
            writes.set()
            read.wait(PATIENCE)

    writer = threading.Thread(target=write, daemon=True)
    values: list[object] = []

    def look() -> None:
        with store.snapshot():
            values.append(store.get_values("kind"))
            writer.start()
            writes.wait(PATIENCE)
            values.append(store.get_values("kind"))

    try:
        assert finished(look)
    finally:
        read.set()
        writer.join(PATIENCE)
    assert values == [{"old": b"1"}, {"old": b"1"}]
    store.close()


FORK_WHILE_WRITING = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever

graph = NodeGraph(store=sys.argv[1] or None, progress=False)
graph.add([Document(f"tea {i}", id=f"d{i}") for i in range(50)])
search = Retriever(graph, "ROOT")
search("tea")
done, wrote = threading.Event(), threading.Semaphore(0)

def write():
    turn = 0
    while not done.is_set():
        turn += 1
        graph.add([Document(f"cup {turn} " + "leaf " * 50, id=f"c{n}") for n in range(20)])
        wrote.release()

writer = threading.Thread(target=write)
writer.start()
codes = []
for _ in range(10):
    wrote.acquire()
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(60)
            assert search("tea")
            cups = [node.text for node in graph.nodes("ROOT") if node.text.startswith("cup")]
            assert len(cups) == 20 and len(set(cups)) == 1
            graph.add(Document("of the child", id="child"))
            assert graph.node("child").text == "of the child"
            code = 0
        finally:
            os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if any(codes):
        break
done.set()
writer.join()
print(codes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("store", ["memory", "file"])
def test_a_process_that_is_forked_while_a_thread_writes_searches_and_writes(
    tmp_path: Path, store: str
) -> None:
    path = str(tmp_path / "graph") if store == "file" else ""
    command = [sys.executable, "-c", FORK_WHILE_WRITING, path]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", f"{[0] * 10}\n")


INTERRUPTED = """
import random, signal, sys
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore

store, rng = SQLiteStore(sys.argv[1], timeout=60), random.Random(7)
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupts = 0
while interrupts < 2_000:
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 1e-3), 0.1)
        try:
            while True:
                with store.writing():
                    pass
                with store.exclusive("an index", wait=True):
                    pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
with store.writing(), store.exclusive("an index", wait=False) as free:
    assert free
other = SQLiteStore(sys.argv[1], timeout=5)  # what is left over would keep it out
with other.writing(), other.exclusive("an index", wait=False) as free:
    assert free
print("free")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interrupt_leaves_no_lock_held(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "graph")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "free\n")


def test_a_state_that_is_read_stays_open_and_a_file_that_is_closed_opens_again(
    tmp_path: Path,
) -> None:
    graph = NodeGraph(store=SQLiteStore(tmp_path / "graph"), progress=False)
    graph.add([Document("tea", id="tea"), Document("cup", id="cup")])
    with graph.reader.reading():
        nodes = iter(graph.nodes("ROOT"))
        first = next(nodes)
        closing = threading.Thread(target=graph.close)
        closing.start()
        closing.join(PATIENCE)
        assert not closing.is_alive()
        assert [first.id, *(node.id for node in nodes)] == ["tea", "cup"]
        assert [node.text for node in graph.nodes("ROOT")] == ["tea", "cup"]
    assert [node.text for node in graph.nodes("ROOT")] == ["tea", "cup"]
    graph.close()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("graph-")] == []


def statements(graph: NodeGraph, read: Callable[[], object]) -> list[str]:
    """Return what a function of this thread asks the file for."""
    asked: list[str] = []
    connection = graph._store._database.db._db  # type: ignore[attr-defined]
    connection.set_trace_callback(asked.append)
    try:
        read()
    finally:
        connection.set_trace_callback(None)
    return [statement.split()[0] for statement in asked]


def test_nodes_are_read_from_the_file_once_while_nothing_changes(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph.db")
    graph.add([Document("green tea", id="a"), Document("black tea", id="b")])
    retriever = Retriever(graph, "word", "bm25")

    def retrieve() -> list[str]:
        return [result.node.document_id for result in retriever.retrieve("tea")]

    assert retrieve() == ["a", "b"]
    assert statements(graph, retrieve) == ["BEGIN", "SELECT", "ROLLBACK"]  # the state's number
    graph.update(Document("white tea", {"from": "China"}, id="a"))
    assert [r.node.metadata for r in retriever.retrieve("tea")] == [{"from": "China"}, {}]
    graph.remove("a")
    assert retrieve() == ["b"]


def test_another_process_that_changes_a_file_makes_nodes_be_read_anew(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph.db")
    graph.add([Document("green tea", {"from": "Japan"}, id="a")])
    retriever = Retriever(graph, "word", "bm25")
    assert [r.node.metadata for r in retriever.retrieve("tea")] == [{"from": "Japan"}]
    other = opened(tmp_path / "graph.db")
    other.update(Document("green tea", {"from": "China"}, id="a"))
    other.build("word")
    assert [r.node.metadata for r in retriever.retrieve("tea")] == [{"from": "China"}]


def test_nodes_that_were_read_are_bounded_and_let_their_graph_go(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph.db")
    graph.add([Document("long " * 200_000, id=str(number)) for number in range(10)])
    for number in range(10):
        with graph.reader.reading():
            assert graph.node(str(number)).graph is graph
        assert graph._store._database._cache.size < 6_000_000  # type: ignore[attr-defined]
    alive = weakref.ref(graph)
    del graph
    gc.collect()
    assert alive() is None


def test_a_thread_does_not_read_the_state_of_one_that_has_ended(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "graph")
    graph = NodeGraph(store=store, progress=False)
    graph.add(["one", "two"])
    unfinished: list[Any] = []

    def peek() -> None:  # half read: its snapshot stays open
        unfinished.append(store.nodes("ROOT"))
        next(unfinished[0])

    sizes: list[int] = []
    for call in (peek, lambda: sizes.append(len(graph.nodes("ROOT")))):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        if not sizes:
            graph.add("three")
    assert sizes == [3]


def test_a_connection_that_opens_or_closes_meanwhile_keeps_a_process_from_forking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child would take over what SQLite notes of its locks, and wait for itself."""
    graph = opened(tmp_path / "graph.db")
    graph.add(["tea"])
    file = graph._store._database  # type: ignore[attr-defined]
    graph.close()
    opening, go_on, create = threading.Event(), threading.Event(), SQLiteConnection.create_tables

    def slow(connection: SQLiteConnection) -> None:
        opening.set()
        assert go_on.wait(60)
        create(connection)

    monkeypatch.setattr(SQLiteConnection, "create_tables", slow)
    thread = threading.Thread(target=graph.add, args=["cup"])
    thread.start()
    assert opening.wait(60)
    assert not file.before_fork(time.monotonic())
    go_on.set()
    thread.join(60)
    assert file.before_fork(time.monotonic() + 60)

    states = []
    connection = file.db

    class Closing:
        in_transaction = False

        def close(self) -> None:
            states.append(connection.is_open)

    monkeypatch.setattr(connection, "_db_now", Closing())
    connection.close()
    assert [*states, connection.is_open] == [True, False]


def test_a_fork_does_not_wait_for_a_thread_that_waits_for_the_fork(
    tmp_path: Path,
) -> None:
    """The thread is to open a connection, which no thread may do while a process forks."""
    graph = opened(tmp_path / "graph.db")
    graph.add(["tea"])
    file = graph._store._database  # type: ignore[attr-defined]
    connection, is_closing, rows = file.db, threading.Event(), []
    db = connection._db_now

    class Closing:
        in_transaction = False

        def close(self) -> None:
            is_closing.set()
            while not connection.retired:  # until the other thread waits for this one
                time.sleep(0.001)
            db.close()

    def use() -> None:
        with connection._lock:
            connection.close()
            rows.append(connection.row("SELECT 1"))

    def fork() -> None:
        with OPENING:
            file.before_fork(time.monotonic() + 60)

    connection._db_now = Closing()
    threads = [threading.Thread(target=work, daemon=True) for work in (use, fork)]
    for thread in threads:
        thread.start()
        assert is_closing.wait(60)
    for thread in threads:
        thread.join(60)
    assert rows == [(1,)]
