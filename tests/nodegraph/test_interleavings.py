"""After any change during a build, a graph equals a graph that is built from scratch.

A build is stopped at each moment at which it does not hold the lock of the graph, one moment per
run. Another thread changes the graph at that moment, and the build continues.
"""

import itertools
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.fresh_builds import (
    GROUPS,
    TIMEOUT,
    Declaration,
    check_against_fresh_build,
    declare,
    halves,
)
from support.postgres_server import RunningServer
from support.stress import LONG

from nodekin.nodegraph import Document, NodeGraph, builder, split_sentences

DOCUMENTS = {"a": "tea\ngreen tea", "b": "cup", "c": "tea cup\nriver"}


class Steps:
    """The moments at which the threads of a build hold no lock; one moment can have an action."""

    def __init__(self) -> None:
        self.count = 0
        self._at = -1
        self._action: Callable[[], object] = lambda: None
        self._acting = False
        self.errors: list[BaseException] = []
        self.graph: NodeGraph | None = None

    def watch(self, at: int, action: Callable[[], object]) -> None:
        """Start to count; run an action at the moment with this number."""
        self.count, self._at, self._action = 0, at, action

    def pause(self) -> None:
        """Count a moment; run the action in another thread, and wait for it."""
        if self._acting or self.graph is None or self.graph._store.transactions.is_held:
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

    def pause_before_turns(self, graph: NodeGraph) -> None:
        """Pause before each turn and each transaction of a graph."""

        def pausing(hold: Callable[..., Any]) -> Callable[..., Any]:
            def call(**options: Any) -> Any:
                self.pause()
                return hold(**options)

            return call

        transactions = graph._store.transactions
        for name in ("turn", "transaction"):
            setattr(transactions, name, pausing(getattr(transactions, name)))
        self.graph = graph


class World:
    """A graph, and the changes that can be made to it."""

    def __init__(self, store: Path | str | None, num_workers: int = 0) -> None:
        self.steps = Steps()
        self.groups = dict(GROUPS)
        self._num_workers = num_workers
        self.graph = NodeGraph(store=store, on_error="skip", progress=False)
        self.declare(self.groups)
        self.texts = dict(DOCUMENTS)
        self.graph.add([Document(text, {"topic": "ice"}, id=i) for i, text in self.texts.items()])
        self.steps.pause_before_turns(self.graph)

    def declare(self, groups: dict[str, Declaration]) -> None:
        """Declare groups whose transforms pause before each call."""
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
        """Build the groups that no other thread is building."""
        building = self.graph._builder._locks
        for name in names:
            locks = [building.get(group.name) for group in self.graph.reader.lineage(name)]
            if all(lock is None or free(lock) for lock in locks):
                self.graph.build(name)

    def rules(self, name: str, transform: Callable[..., Any]) -> None:
        self.declare({name: (transform, GROUPS[name][1])})


def free(lock: Any) -> bool:
    is_free: bool = lock.acquire(blocking=False)
    if is_free:
        lock.release()
    return is_free


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


def replace_and_back(world: World) -> None:
    world.rules("line", halves)
    world.build(*GROUPS)
    world.rules("line", GROUPS["line"][0])


CHANGES: dict[str, Callable[[World], object]] = {
    "remove": lambda world: world.remove("b"),
    "add": lambda world: world.put("d", "tea\nnew"),
    "update": lambda world: world.put("b", "cup\nmilk"),
    "metadata": lambda world: world.put("b", "cup", "fire"),
    "remove and add": readd,
    "remove, build, add": lambda world: readd(world, *GROUPS),
    "update and back": revert,
    "update, build, back": lambda world: revert(world, *GROUPS),
    "metadata, build, back": lambda world: revert(world, *GROUPS, to="cup", topic="fire"),
    "fail, build, back": lambda world: revert(world, *GROUPS, to="bad"),
    "replace lines": lambda world: world.rules("line", halves),
    "replace lines, build, back": replace_and_back,
    "build others": lambda world: world.build(*GROUPS),
    "query": lambda world: (world.graph.nodes("ROOT"), world.build("title")),
    "remove all and add": lambda world: [
        (world.graph.remove(list(world.texts)), [world.put(*each) for each in world.texts.items()])
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("group", "num_workers", "writes", "in_file", "every"),
    [
        ("label", 0, "early", False, 1 if LONG else 4),
        ("label", 2, "late", False, 7),
        ("initial", 0, "early", False, 3 if LONG else 7),
        ("label", 0, "late", True, 11),
        ("all", 0, "late", True, 11),
    ],
)
def test_change_at_any_moment_of_a_build(
    change: str,
    group: str,
    num_workers: int,
    writes: str,
    in_file: bool,
    every: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builder, "_SECONDS", -1.0 if writes == "early" else float("inf"))
    first = [*CHANGES].index(change) % every
    for at in itertools.count(first, every):
        world = World(tmp_path / f"{at}" if in_file else None, num_workers)
        if at >= checked_moments(world, change, group, at):
            return


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_change_during_a_build_on_a_server(change: str, postgres_server: RunningServer) -> None:
    moments = (5, 40, 90, 140)
    turn = [*CHANGES].index(change)
    for at in moments if LONG else (moments[turn % 4], moments[(turn + 2) % 4]):
        checked_moments(World(postgres_server.address()), change, "label", at)


def checked_moments(world: World, change: str, group: str, at: int) -> int:
    """Build a group with a change at one moment, check the graph, and return the moments."""
    world.steps.watch(at, partial(CHANGES[change], world))
    world.graph.nodes(group)
    moments = world.steps.count
    world.steps.graph = None
    assert not world.steps.errors
    assert [n.id for n in world.graph.nodes("ROOT")] == list(world.texts)
    assert [n.text for n in world.graph.nodes("ROOT")] == list(world.texts.values())
    check_against_fresh_build(world.graph, world.groups)
    world.graph.close()
    return moments


def test_document_changed_during_build_of_a_lower_group_stays_readable(tmp_path: Path) -> None:
    store = tmp_path / "tea.nodekin"
    other = NodeGraph(store=store, progress=False)
    new_texts = ["Tea"]

    def split_words(text: str) -> list[str]:
        while new_texts:
            other.add(Document(new_texts.pop(), id="tea"))
        return text.split()

    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", split_words, parent="line")
    graph.add(Document("Green tea\nBlack tea\nWhite tea", id="tea"))
    graph.build("word")
    assert [node.text for node in graph.nodes("word")] == ["Tea"]


def test_document_readded_during_a_split_has_its_new_position() -> None:
    for at in itertools.count():
        graph = NodeGraph(progress=False)
        graph.create_node_group("sentence", split_sentences)
        graph.add([Document("Green tea. Black tea.", id="tea"), Document("A cup.", id="cup")])

        def readd(graph: NodeGraph = graph) -> None:
            graph.remove("tea")
            graph.add(Document("Green tea. Black tea.", id="tea"))

        steps = Steps()
        steps.watch(at, readd)
        steps.pause_before_turns(graph)
        graph.build("sentence")
        steps.graph = None
        assert not steps.errors
        if at >= steps.count:
            return
        nodes = graph.nodes("sentence")
        assert [node.text for node in nodes] == ["A cup.", "Green tea.", "Black tea."]
