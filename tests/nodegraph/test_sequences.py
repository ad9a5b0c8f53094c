"""Sequences of changes and builds, compared with fresh builds."""

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from built_anew import GROUPS, check_as_anew, declare, halves, picky

from nodekin.nodegraph import Document, NodeGraph, TransformError


class World:
    """A graph with its rules and its possible changes."""

    def __init__(self, store: Path | None) -> None:
        self.groups = dict(GROUPS)
        self.graph = NodeGraph(store=store, progress=False)
        declare(self.graph, self.groups)

    def put(self, i: str, text: str, topic: str = "ice") -> None:
        self.graph.add(Document(text, {"topic": topic}, id=i))

    def fill(self) -> None:
        self.put("a", "tea\ngreen tea")
        self.put("b", "cup")
        self.build(*GROUPS)

    def build(self, *names: str) -> None:
        for name in names:
            with suppress(TransformError):
                self.graph.build(name, on_error="raise")

    def readd(self) -> None:
        node = self.graph.node("b")
        self.graph.remove("b")
        self.put("b", node.text, node.metadata["topic"])

    def touch(self) -> None:
        """Change metadata that requires no build."""
        metadata = {"topic": "ice", "last_modified_date": "today"}
        self.graph.add(Document("cup", metadata, id="b"))

    def rules(self, name: str, transform: Callable[..., object] | None = None) -> None:
        self.groups[name] = transform or GROUPS[name][0], GROUPS[name][1]
        declare(self.graph, {name: self.groups[name]})

    def check(self) -> None:
        self.graph.on_error = "skip"
        check_as_anew(self.graph, self.groups)
        self.graph.on_error = "raise"


STEPS: dict[str, Callable[[World], None]] = {
    "other text": lambda world: world.put("b", "milk\ncup of milk"),
    "more text": lambda world: world.put("b", "cup worse"),
    "first text": lambda world: world.put("b", "cup"),
    "bad text": lambda world: world.put("b", "cup\nbad"),
    "other metadata": lambda world: world.put("b", "cup", "fire"),
    "other date": World.touch,
    "remove and add": World.readd,
    "other lines": lambda world: world.rules("line", halves),
    "first lines": lambda world: world.rules("line"),
    "words that fail": lambda world: world.rules("word", picky),
    "first words": lambda world: world.rules("word"),
    "build lines": lambda world: world.build("line"),
    "build labels": lambda world: world.build("label"),
    "build all": lambda world: world.build("all"),
}


CHAINS = [
    ("other text", "build lines", "first text"),
    ("bad text", "build labels", "first text"),
    ("more text", "build labels", "first text"),
    ("other lines", "build labels", "first lines"),
    ("words that fail", "build labels", "first words"),
    ("other metadata", "build lines", "remove and add"),
]


@pytest.mark.slow
@pytest.mark.parametrize("steps", CHAINS, ids=", ".join)
def test_two_graphs_of_one_file_take_turns(steps: tuple[str, ...], tmp_path: Path) -> None:
    """Two graphs have one file open. Each step uses one of the two graphs."""
    for turns in itertools.product([0, 1], repeat=len(steps)):
        path = tmp_path / "".join(map(str, turns))
        worlds = World(path), World(path)
        worlds[0].fill()
        for step, turn in zip(steps, turns, strict=True):
            STEPS[step](worlds[turn])
        for world in worlds:
            world.check()
        for world in worlds:
            world.graph.close()


@pytest.mark.slow
def test_restored_file_equals_a_fresh_build(tmp_path: Path) -> None:
    """A file is removed, changed or renamed, and then restored, with and without builds."""
    folder = tmp_path / "docs"
    folder.mkdir()
    texts = {"a.txt": "tea\ngreen tea", "b.txt": "cup"}
    builds: list[tuple[str, ...]] = [(), ("line",), ("label",), ("all",), tuple(GROUPS)]
    for store, between, after in itertools.product((None, "file"), builds, builds[:3]):
        for change in ("remove", "update", "rename"):
            for name, text in texts.items():
                (folder / name).write_text(text)
            path = store and tmp_path / f"{change}-{'-'.join(between)}-{'-'.join(after)}.graph"
            with NodeGraph(folder, store=path or None, progress=False) as graph:
                declare(graph, GROUPS)
                graph.build(*GROUPS)
                if change == "remove":
                    (folder / "b.txt").unlink()
                elif change == "update":
                    (folder / "b.txt").write_text("milk\ncup of milk")
                else:
                    os.replace(folder / "b.txt", folder / "c.txt")
                graph.refresh()
                graph.build(*between)
                (folder / "c.txt").unlink(missing_ok=True)
                (folder / "b.txt").write_text("cup")
                graph.refresh()
                graph.build(*after)
                check_as_anew(graph, GROUPS)


def test_renamed_document_gets_its_pattern_rule() -> None:
    graph = NodeGraph()
    rules = [("*.md", str.upper), ("*", str.lower)]
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("case", rules)
    graph.create_node_group("case of line", rules, parent="line")
    for name, expected in [("a.md", "TEA"), ("a.txt", "tea"), ("a.md", "TEA")]:
        graph.add(Document("Tea", {"file_name": name}, id="d"))
        for group in ("case", "case of line"):
            assert [node.text for node in graph.nodes(group)] == [expected]


def test_derived_links_of_a_moved_file_stay_derived(tmp_path: Path) -> None:
    here, there = tmp_path / "docs" / "one" / "a.txt", tmp_path / "docs" / "two" / "a.txt"
    for store in (None, tmp_path / "graph"):
        for path in (here, there):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        here.write_text("tea\ngreen tea")
        with NodeGraph(tmp_path / "docs", store=store, progress=False) as graph:
            declare(graph, GROUPS)
            graph.build(*GROUPS)
            os.replace(here, there)
            assert graph.refresh().renamed
            here.write_text("tea\ngreen tea")
            graph.refresh()
            check_as_anew(graph, GROUPS)
            for name in GROUPS:
                for links in graph.reader.links_of([node.id for node in graph.nodes(name)]):
                    assert all(link.derived for link in links)
