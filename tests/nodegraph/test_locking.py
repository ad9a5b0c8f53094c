"""Many read or one writes; what would wait for itself is told so."""

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import (
    Document,
    MemoryStore,
    Node,
    NodeGraph,
    NodeStore,
    TransformError,
    build_writer,
)
from nodekin.nodegraph.errors import TransientStoreError
from nodekin.nodegraph.locking import Access, ReadWriteLock
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore

PATIENCE = 300.0
"""Seconds after which something that should happen is taken to hang."""


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def outcome(work: Callable[[], Any]) -> Any:
    """Return what the work gave or raised; fail if it hangs."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    in_thread(run).join(PATIENCE)
    assert results, "the work hangs"
    return results[0]


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.002)):
        if condition():
            return
        pause.wait(0.002)
    raise AssertionError("it never happened")


def test_readers_hold_it_together() -> None:
    lock = ReadWriteLock()
    inside = threading.Barrier(3)

    def read() -> int:
        with lock.read():
            return inside.wait(PATIENCE)  # passed only when all three are inside

    others = [in_thread(read), in_thread(read)]
    assert outcome(read) in (0, 1, 2)
    for other in others:
        other.join(PATIENCE)


def test_a_writer_is_alone() -> None:
    lock = ReadWriteLock()
    inside = 0
    most = 0
    total = 0

    def write() -> None:
        nonlocal inside, most, total
        for _ in range(200):
            with lock.write():
                inside += 1
                most = max(most, inside)
                before = total
                for _ in range(20):
                    pass
                total = before + 1
                inside -= 1

    seen: list[int] = []

    def read() -> None:
        for _ in range(200):
            with lock.read():
                seen.append(inside)

    threads = [in_thread(write) for _ in range(4)] + [in_thread(read) for _ in range(4)]
    for thread in threads:
        thread.join(PATIENCE)
    assert total == 800
    assert most == 1
    assert set(seen) == {0}


def test_reading_again_while_a_writer_waits_goes_on() -> None:
    lock = ReadWriteLock()
    order: list[str] = []

    def write() -> None:
        with lock.write():
            order.append("write")

    def read() -> None:
        with lock.read():
            writer = in_thread(write)
            until(lambda: len(lock._queue) == 1)
            with lock.read():
                order.append("read again")
            assert order == ["read again"]  # the inner block has not let go of the outer one
        writer.join(PATIENCE)

    outcome(read)
    assert order == ["read again", "write"]


def test_a_waiting_writer_goes_before_new_readers() -> None:
    lock = ReadWriteLock()
    order: list[str] = []

    def write() -> None:
        with lock.write():
            order.append("write")

    def read() -> None:
        with lock.read():
            order.append("read")

    with lock.read():
        writer = in_thread(write)
        until(lambda: len(lock._queue) == 1)
        reader = in_thread(read)
        reader.join(0.05)
        assert order == []
    writer.join(PATIENCE)
    reader.join(PATIENCE)
    assert order == ["write", "read"]


def test_writing_while_reading_is_an_error_and_breaks_nothing() -> None:
    lock = ReadWriteLock()

    def write_inside() -> None:
        with lock.read(), lock.write():
            pass

    error = outcome(write_inside)
    assert isinstance(error, RuntimeError)
    assert "from inside a retrieval" in str(error)
    assert outcome(lambda: [lock.write().__enter__()]) == [None]


def test_an_error_inside_lets_go() -> None:
    lock = ReadWriteLock()
    with pytest.raises(ZeroDivisionError), lock.read():
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), lock.write():
        _ = 1 / 0
    with lock.write():
        pass
    with lock.read():
        pass


@pytest.mark.usefixtures("interrupts")
def test_a_writer_that_gives_up_waiting_lets_the_readers_pass() -> None:
    lock = ReadWriteLock()
    release = threading.Event()
    first_in, second_in = threading.Event(), threading.Event()

    def first() -> None:
        with lock.read():
            first_in.set()
            release.wait(PATIENCE)

    def second() -> None:
        until(lambda: len(lock._queue) == 1)
        in_thread(third)
        until(lambda: len(lock._condition._waiters) >= 2)  # type: ignore[attr-defined]
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def third() -> None:
        with lock.read():
            second_in.set()

    in_thread(first)
    assert first_in.wait(PATIENCE)
    in_thread(second)
    with pytest.raises(KeyboardInterrupt), lock.write():
        pass
    passed = second_in.wait(PATIENCE / 2)
    release.set()
    assert passed


def small() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(["a b", "c"])
    graph.create_node_group("word", str.split)
    return graph


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.add("new"),
        lambda graph: graph.remove(graph.nodes("ROOT")[0].id),
        lambda graph: graph.refresh(),
        lambda graph: graph.create_node_group("other", str.split),
    ],
)
def test_changing_a_graph_while_reading_it_is_an_error(change: Callable[[NodeGraph], Any]) -> None:
    graph = small()

    def change_inside() -> None:
        with graph.reader.reading("word"):
            change(graph)

    error = outcome(change_inside)
    assert isinstance(error, RuntimeError)
    assert "after the retrieval has returned" in str(error)
    assert [n.text for n in graph.nodes("word")] == ["a", "b", "c"]
    assert outcome(lambda: len(graph.add("new"))) == 1


def test_building_while_reading_is_an_error_before_any_work() -> None:
    graph = small()
    calls: list[str] = []

    def letters(text: str) -> list[str]:
        calls.append(text)
        return list(text)

    graph.create_node_group("letter", letters, parent="word")

    def build_inside() -> None:
        with graph.reader.reading("word"):
            graph.nodes("letter")

    error = outcome(build_inside)
    assert isinstance(error, RuntimeError)
    assert "build the group before" in str(error)
    assert calls == []
    graph.build("letter")

    def read_inside() -> list[str]:
        with graph.reader.reading("word"):
            return [n.text for n in graph.nodes("letter")]

    assert outcome(read_inside) == ["a", "b", "c"]


@pytest.mark.parametrize("workers", [0, 4])
def test_a_transform_that_changes_its_graph_is_told_so(workers: int) -> None:
    graph = small()
    graph.create_node_group("bad", lambda text: graph.add(text + "!"), num_workers=workers)
    error = outcome(lambda: graph.nodes("bad"))
    assert isinstance(error, TransformError)
    assert isinstance(error.__cause__, RuntimeError)
    assert "can't be changed from inside a transform" in str(error)
    assert len(graph.nodes("ROOT")) == 2
    assert outcome(lambda: len(graph.add("new"))) == 1


@pytest.mark.parametrize("workers", [0, 4])
def test_a_transform_that_asks_for_its_own_group_is_told_so(workers: int) -> None:
    graph = small()

    def greedy(text: str) -> list[str]:
        return [node.text for node in graph.nodes("greedy")]

    graph.create_node_group("greedy", greedy, num_workers=workers)
    error = outcome(lambda: graph.nodes("greedy"))
    assert isinstance(error, TransformError)
    assert "'greedy' needs itself" in str(error)
    assert len(str(error)) < 1000


@pytest.mark.parametrize("workers", [0, 4])
def test_transforms_that_ask_for_each_other_are_told_so(workers: int) -> None:
    graph = small()
    both = threading.Barrier(2)
    met = {"left": threading.Event(), "right": threading.Event()}

    def ask(other: str) -> Callable[[Node], list[str]]:
        def transform(node: Node) -> list[str]:
            if not met[other].is_set():
                met[other].set()
                both.wait(PATIENCE)
            return [n.text for n in graph.nodes(other)]

        return transform

    graph.create_node_group("left", ask("right"), trans_node=True, num_workers=workers)
    graph.create_node_group("right", ask("left"), trans_node=True, num_workers=workers)
    results: list[Any] = []
    threads = [
        in_thread(lambda name=name: results.append(outcome(lambda: graph.nodes(name))))  # type: ignore[misc]
        for name in ("left", "right")
    ]
    for thread in threads:
        thread.join(PATIENCE)
    assert len(results) == 2
    assert any(isinstance(r, TransformError) and "needs itself" in str(r) for r in results)


def test_a_transform_may_use_another_group() -> None:
    graph = small()
    find_words = graph.find("word")
    graph.create_node_group(
        "count", lambda node: len(find_words(node)), trans_node=True, num_workers=3
    )
    assert [n.content for n in outcome(lambda: graph.nodes("count"))] == [2, 1]


class Counting:
    """A store that counts how often a state of it is looked at."""

    def __init__(self, store: NodeStore) -> None:
        self.store = store
        self.snapshots = 0

    @contextmanager
    def snapshot(self) -> Iterator[int]:
        self.snapshots += 1
        with self.store.snapshot() as state:
            yield state

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)


def write_and_fail(access: Access, store: NodeStore) -> None:
    with access.changing():
        store.change_documents([Document("milk", id="milk")])
        raise KeyError("undone")


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_a_thread_wrote_is_the_state_that_is_read(kind: str, tmp_path: Path) -> None:
    inner = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "graph")
    store = Counting(inner)
    access = Access(store)  # type: ignore[arg-type]
    with access.reading():
        assert list(inner.document_ids()) == []
    for text in ("tea", "water"):
        with access.changing():
            inner.change_documents([Document(text, id=text)])
        store.snapshots = 0
        with access.reading():
            assert list(inner.document_ids())[-1] == text
        # No need to keep all others out, as for what another process has written.
        assert store.snapshots == 1
    with pytest.raises(KeyError, match="undone"):
        write_and_fail(access, inner)
    store.snapshots = 0
    with access.reading():
        assert list(inner.document_ids()) == ["tea", "water"]
    assert store.snapshots == 1
    inner.close()


def test_blocks_of_one_thread_may_end_in_the_order_they_began() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["tea"])
    first, second = graph.reader.reading(), graph.reader.reading()
    with ExitStack() as rest:
        first.__enter__()
        rest.enter_context(second)
        first.__exit__(None, None, None)
        assert graph._access._lock.is_reading()  # the second one still reads
    assert not graph._access._lock.is_reading()
    graph.add(["water"])
    assert len(graph.nodes("ROOT")) == 2


def test_a_lock_between_processes_is_held_until_the_outer_block_ends(tmp_path: Path) -> None:
    store, other = SQLiteStore(tmp_path / "a.db"), SQLiteStore(tmp_path / "a.db")
    with store.exclusive("it", wait=True):
        with store.exclusive("it", wait=True) as again:
            assert again
        with other.exclusive("it", wait=False) as free:
            assert not free
    with other.exclusive("it", wait=False) as free:
        assert free


def test_one_thread_at_a_time_works_on_what_is_made_of_a_graph_in_memory() -> None:
    store = MemoryStore()

    def is_free(purpose: str) -> bool:
        with store.exclusive(purpose, wait=False) as free:
            return free

    with store.exclusive("it", wait=True) as free:
        assert free
        assert [outcome(lambda: is_free("it")), outcome(lambda: is_free("that"))] == [False, True]
    assert outcome(lambda: is_free("it"))


@pytest.mark.parametrize("in_file", [False, True])
def test_who_writes_without_pause_keeps_no_reader_and_no_other_writer_out(
    tmp_path: Path, in_file: bool
) -> None:
    graph = NodeGraph(store=tmp_path / "a.db" if in_file else None, progress=False)
    graph.create_node_group("line", str.splitlines)
    done, writes = threading.Event(), [0, 0]

    def write(writer: int) -> None:
        while not done.is_set():
            graph.add(Document(f"tea {writes[writer] % 5}", id=f"{writer} {writes[writer] % 5}"))
            writes[writer] += 1

    writers = [in_thread(lambda n=n: write(n)) for n in (0, 1)]
    try:
        for _ in range(3):
            before = list(writes)
            graph.nodes("line")  # built and read while both write
            until(lambda before=before: all(w > b for w, b in zip(writes, before, strict=True)))
    finally:
        done.set()
        for writer in writers:
            writer.join(60)
    graph.close()


FORKED = """
import os, sys, time
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore
store = SQLiteStore(sys.argv[1])
with store.writing(), store.exclusive("it", wait=True):
    child = os.fork()
    if not child:
        sys.stdin.read()  # it lives on, and has inherited what its parent has open
        os._exit(0)
    print(flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_lives_on_keeps_no_lock_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        store = SQLiteStore(path, timeout=60)
        with store.exclusive("it", wait=False) as free:
            assert not free
        parent.kill()
        parent.wait()
        with store.writing(), store.exclusive("it", wait=True) as free:
            assert free


class _LosesItsServer(MemoryStore):
    """Can't be read once after a transaction, as where a server is killed just then."""

    is_lost = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            yield
        self.is_lost = True

    def snapshot(self) -> AbstractContextManager[int]:
        if self.is_lost:
            self.is_lost = False
            raise TransientStoreError("the connection was lost")
        return super().snapshot()


def test_a_change_that_was_written_is_not_made_again() -> None:
    graph = NodeGraph(store=_LosesItsServer())
    graph.create_node_group("line", str.splitlines)
    graph.add([Document("green tea", id="a"), Document("black tea", id="b")])
    assert [node.text for node in graph.nodes("line")] == ["green tea", "black tea"]
    graph.remove("a")  # made again, it would find no document of that name
    assert [node.text for node in graph.nodes("line")] == ["black tea"]


@pytest.mark.parametrize("in_file", [False, True])
def test_nothing_is_written_within_a_transaction_that_an_interrupt_has_left(
    tmp_path: Path, in_file: bool
) -> None:
    store = SQLiteStore(tmp_path / "graph.db") if in_file else MemoryStore()
    graph = NodeGraph(store=store)
    graph.add(Document("green tea", id="a"))
    left: list[Any] = [store.transaction()]
    left[0].__enter__()
    with pytest.raises(RuntimeError, match="has a transaction of the store open"):
        graph.add(Document("black tea", id="b"))
    left.append(left)  # as a traceback may hold it: only the collector ends it
    del left
    graph.add(Document("black tea", id="b"))
    gc.collect()
    assert [node.id for node in graph.nodes("ROOT")] == ["a", "b"]
    graph.close()
    if in_file:
        reopened = NodeGraph(store=tmp_path / "graph.db")
        assert [n.id for n in reopened.nodes("ROOT")] == ["a", "b"]


class _LeftStore(MemoryStore):
    """Is interrupted once its next transaction has begun, which is left open."""

    is_interrupted = False

    def transaction(self) -> AbstractContextManager[None]:
        block = super().transaction()
        if self.is_interrupted:
            self.is_interrupted = False
            block.__enter__()
            raise KeyboardInterrupt
        return block


def test_an_interrupt_that_leaves_the_transaction_of_a_build_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(build_writer, "_BATCH", 1)
    store = _LeftStore()

    def lines(text: str) -> list[str]:
        store.is_interrupted = len(calls) == 1
        calls.append(text)
        return text.splitlines()

    calls: list[str] = []
    graph = NodeGraph(store=store, progress=False)
    graph.add(["green tea\nblack tea", "cup"])
    graph.create_node_group("line", lines, version="1")
    with pytest.raises(KeyboardInterrupt):
        graph.build("line")
    assert [n.text for n in graph.nodes("line")] == ["green tea", "black tea", "cup"]


def test_outside_of_a_reading_block_nothing_is_remembered_of_a_state(tmp_path: Path) -> None:
    graph, other = (NodeGraph(store=tmp_path / "graph.db", progress=False) for _ in range(2))
    assert graph.reader.count("ROOT") == 0
    other.add("tea")
    assert graph.reader.count("ROOT") == 1
    graph.close()
    other.close()
