"""Whatever happens while a graph is built: at rest it is as one that is built anew.

A build is stopped at every moment at which it holds no lock (there another thread can change the
graph), one moment a run; a change is made by another thread, and the build goes on.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from built_anew import GROUPS, TIMEOUT, Declaration, check_as_anew, declare, halves
from postgres_server import RunningServer
from stores import file_store, memory_store
from stress import LONG

from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.nodegraph import Document, NodeGraph, builder
from nodekin.nodegraph.storage.graph_store import GraphStore

DOCUMENTS = {"a": "tea\ngreen tea", "b": "cup", "c": "tea cup\nriver"}
BUILDS = ["line", "word", "label", "all", "initial", "documents"]


STORES: dict[str, Callable[..., GraphStore]] = {
    "memory": lambda path: memory_store(),
    "file": file_store,
    "server": PostgresStore,
}


class Steps:
    """Count the moments at which threads of a build hold no lock; act at one of them."""

    def __init__(self) -> None:
        self.count = 0
        self._at = -1
        self._action: Callable[[], object] = lambda: None
        self._acting = False
        self.errors: list[BaseException] = []
        self.graph: NodeGraph | None = None

    def watch(self, at: int, action: Callable[[], object]) -> None:
        """Begin to count; act at a moment of this number."""
        self.count, self._at, self._action = 0, at, action

    def pause(self) -> None:
        """Note a moment; act in another thread, and wait for it."""
        if self._acting or self.graph is None or self._locked(self.graph):
            return
        self.count += 1
        if self.count - 1 == self._at:
            self._acting = True
            thread = threading.Thread(target=self._act, daemon=True)
            thread.start()
            thread.join(TIMEOUT)
            assert not thread.is_alive(), "the change and the build wait for each other"
            self._acting = False

    def _act(self) -> None:
        try:
            self._action()
        except BaseException as error:
            self.errors.append(error)

    @staticmethod
    def _locked(graph: NodeGraph) -> bool:
        """Return whether another thread could not change the graph."""
        lock = graph.reader.change_lock._lock
        if graph._store.database.is_held or lock._is_owned() or not lock.acquire(blocking=False):
            return True
        lock.release()
        return False


def stepping(store: GraphStore, steps: Steps) -> GraphStore:
    """Let a store pause before every turn and transaction."""

    def paused(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(**options: Any) -> Any:
            steps.pause()
            return method(**options)

        return call

    for name in ("turn", "transaction"):
        setattr(store, name, paused(getattr(store, name)))
    return store


class World:
    """A graph, and the changes that can be made to it."""

    def __init__(self, store: str, path: Path | str, num_workers: int = 0) -> None:
        self.steps = Steps()
        self.groups = dict(GROUPS)
        self._num_workers = num_workers
        self.store = stepping(STORES[store](path), self.steps)
        self.graph = NodeGraph(store=self.store, on_error="skip", progress=False)
        self.declare(self.groups)
        self.texts = dict(DOCUMENTS)
        self.graph.add([Document(text, {"topic": "ice"}, id=i) for i, text in self.texts.items()])
        self.steps.graph = self.graph

    def declare(self, groups: dict[str, Declaration]) -> None:
        """Declare groups whose transforms pause when they are called."""
        self.groups |= groups
        declare(self.graph, groups, self._num_workers, self._paused)

    def _paused(self, transform: Callable[..., Any]) -> Callable[..., Any]:
        def call(given: Any, /) -> Any:
            self.steps.pause()
            return transform(given)

        return call

    def put(self, i: str, text: str, topic: str = "ice") -> None:
        self.texts[i] = text
        self.graph.add(Document(text, {"topic": topic}, id=i))

    def remove(self, i: str) -> None:
        del self.texts[i]
        self.graph.remove(i)

    def build(self, *names: str) -> None:
        """Build those of the groups for which another thread is not building already."""
        locks_of = self.graph._builder._locks
        for name in names:
            locks = [locks_of.get(group.name) for group in self.graph.reader.lineage(name)]
            if all(lock is None or free(lock) for lock in locks):
                self.graph.build(name)

    def rules(self, name: str, transform: Callable[..., Any]) -> None:
        self.declare({name: (transform, GROUPS[name][1])})


def free(lock: Any) -> bool:
    with lock.held(wait=False) as is_free:
        return bool(is_free)


def readd(world: World, *builds: str) -> None:
    text = world.texts["b"]
    world.remove("b")
    world.build(*builds)
    world.put("b", text)


def revert(world: World, *builds: str, to: str = "milk\ncup of milk", topic: str = "ice") -> None:
    text = world.texts["b"]
    world.put("b", to, topic)
    world.build(*builds)
    world.put("b", text)


def replace_and_back(world: World, *builds: str, name: str = "line") -> None:
    world.rules(name, halves)
    world.build(*builds)
    world.rules(name, GROUPS[name][0])


CHANGES: dict[str, Callable[[World], object]] = {
    "remove": lambda world: world.remove("b"),
    "add": lambda world: world.put("d", "tea\nnew"),
    "update": lambda world: world.put("b", "cup\nmilk"),
    "metadata": lambda world: world.put("b", "cup", "fire"),
    "remove and add": readd,
    "remove, build, add": lambda world: readd(world, *GROUPS),
    "remove, add, build": lambda world: (readd(world), world.build(*GROUPS)),
    "update and back": revert,
    "update, build, back": lambda world: revert(world, *GROUPS),
    "update, build lines, back": lambda world: revert(world, "line"),
    "metadata, build, back": lambda world: revert(world, *GROUPS, to="cup", topic="fire"),
    "fail and back": lambda world: revert(world, to="bad"),
    "fail, build, back": lambda world: revert(world, *GROUPS, to="bad"),
    "replace lines": lambda world: world.rules("line", halves),
    "replace lines and back": replace_and_back,
    "replace lines, build, back": lambda world: replace_and_back(world, *GROUPS),
    "replace words, build, back": lambda world: replace_and_back(world, *GROUPS, name="word"),
    "build others": lambda world: world.build(*GROUPS),
    "query": lambda world: (world.graph.nodes("ROOT"), world.build("title")),
    "remove all and add": lambda world: [
        (world.graph.remove(list(world.texts)), [world.put(*each) for each in world.texts.items()])
    ],
}


def stepped(
    change: Callable[[World], object],
    group: str,
    store: str,
    path: Path,
    *,
    num_workers: int = 0,
    every: int = 1,
) -> Iterator[World]:
    """Yield worlds in which the change was made at one moment of a build, one for each moment.

    Where not every moment is tried, other changes are made at others.
    """
    first = [*CHANGES.values()].index(change) % every
    for at in itertools.count(first, every):
        world = World(store, path / f"{at}", num_workers)
        world.steps.watch(at, partial(change, world))
        world.graph.nodes(group)
        moments = world.steps.count
        world.steps.graph = None
        if world.steps.errors:
            raise world.steps.errors[0]
        yield world
        world.graph.close()
        if at >= moments:
            return


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("group", "num_workers", "written", "every"),
    [
        ("label", 0, "at once", 1 if LONG else 4),
        ("label", 0, "late", 7),
        ("label", 2, "late", 7),
        ("initial", 0, "at once", 3 if LONG else 7),
        ("documents", 0, "late", 7),
    ],
)
def test_a_change_at_any_moment_of_a_build_loses_nothing(
    change: str,
    group: str,
    num_workers: int,
    written: str,
    every: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builder, "_SECONDS", -1.0 if written == "at once" else float("inf"))
    for world in stepped(
        CHANGES[change], group, "memory", tmp_path, num_workers=num_workers, every=every
    ):
        check(world)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("group", ["label", "all"])
def test_a_change_during_a_build_in_a_file_loses_nothing(
    change: str, group: str, tmp_path: Path
) -> None:
    for world in stepped(CHANGES[change], group, "file", tmp_path, every=9):
        check(world)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_during_a_build_on_a_server_loses_nothing(
    change: str, postgres_server: RunningServer
) -> None:
    moments = (2, 15, 28, 41)
    turn = [*CHANGES].index(change)
    for at in moments if LONG else (moments[turn % 4], moments[(turn + 2) % 4]):
        world = World("server", postgres_server.address())
        world.steps.watch(at, partial(CHANGES[change], world))
        world.graph.nodes("label")
        world.steps.graph = None
        assert not world.steps.errors
        check(world)
        world.graph.close()


def check(world: World) -> None:
    assert [n.id for n in world.graph.nodes("ROOT")] == list(world.texts)
    assert [n.text for n in world.graph.nodes("ROOT")] == list(world.texts.values())
    check_as_anew(world.graph, world.groups)
