"""A group that follows another one is amended, and is at rest as one that is built anew."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from built_anew import Declaration, check_as_anew, declare

from nodekin.nodegraph import (
    Document,
    EntityExtractor,
    Node,
    NodeGraph,
    TransformError,
    build_writer,
)
from nodekin.nodegraph.memory_store import MemoryStore, PackedNodes
from nodekin.nodegraph.transforms import Draft, RankedDraft


class Entities(EntityExtractor):
    __name__ = "entities"


class Letters:
    """Makes a node of each first letter, linked to the texts; counts what it is told."""

    __name__ = "letters"
    trans_node = True
    told: ClassVar[list[str]] = []

    def __call__(self, nodes: Sequence[Node]) -> list[object]:
        raise AssertionError("it follows")

    def follower(self) -> LettersFollower:
        return LettersFollower(self)


class LettersFollower:
    def __init__(self, letters: Letters) -> None:
        self.letters = letters
        self.nodes: dict[str, Node] = {}

    def update(
        self, removed: Collection[str], added: Sequence[Node]
    ) -> dict[str, RankedDraft | None]:
        touched = {self.nodes.pop(i).text[0] for i in removed if i in self.nodes}
        for node in added:
            if node.text == "bad":
                raise ValueError("no such letter")
            self.letters.told.append(node.text)
            self.nodes[node.id] = node
            touched.add(node.text[0])
        drafts: dict[str, RankedDraft | None] = dict.fromkeys(touched)
        for key in touched:
            if ids := sorted(node.id for node in self.nodes.values() if node.text[0] == key):
                links = tuple(("member", i) for i in ids)
                drafts[key] = RankedDraft((key,), Draft(key, None, {"n": len(ids)}, links=links))
        return drafts


GROUPS: dict[str, Declaration] = {
    "entity": (Entities(), {"scope": "group"}),
    "letter": (Letters(), {"scope": "group"}),
    "of letter": (str.split, {"parent": "letter"}),
}

TEXTS = [
    "Green Tea\nGreen Tea of Henrik Ibsen.",
    "Henrik Ibsen\nHe wrote Brand. Green Tea is a drink.",
    "Green is a colour. Brand is a play by Ibsen.",
    "Brand (play)\nIbsen of Skien wrote it. green tea.",
    "The colour of Green Tea in Skien. Old Henrik Ibsen Street.",
    "x",
]


@pytest.fixture(params=["memory", "file"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeGraph]:
    store = tmp_path / "graph.db" if request.param == "file" else None
    with NodeGraph(store=store, progress=False, on_error="skip") as graph:
        declare(graph, GROUPS)
        yield graph


@pytest.mark.parametrize("gap", [1 << 16, 2])  # little room between places: all change
@pytest.mark.parametrize("seed", range(3))
def test_changes_end_in_a_graph_as_one_that_is_built_anew(
    graph: NodeGraph, seed: int, gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_writer, "_GAP", gap)
    rng = random.Random(seed)
    for step in range(10):
        for _ in range(rng.randrange(1, 3)):
            i = rng.choice("abcdef")
            if rng.random() < 0.3 and i in [node.id for node in graph.nodes("ROOT")]:
                graph.remove(i)
            else:
                title = rng.choice([None, {"title": "Ibsen"}, {"title": "Skien (town)"}])
                graph.add(Document(rng.choice(TEXTS), title, id=i))
        if rng.random() < 0.5:
            graph.build("entity", "letter")
        check_as_anew(graph, GROUPS)
        if step == 5:
            graph.close()  # in a file: what followed is forgotten, what is stored is amended


def test_only_what_changed_is_told_and_written(
    graph: NodeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_writer, "_GAP", 4)  # room for one, so that no other place changes
    graph.add([Document(f"{letter} {n}") for letter in "acegi" for n in range(3)])
    graph.build("letter")
    Letters.told.clear()
    with graph.reader.reading("letter"):
        revision = graph.reader.revision("letter")
        places = {node.text: node.order for node in graph.nodes("letter")}
    graph.add(Document("d 1", id="d"))
    with graph.reader.reading("letter"):
        changes = graph.reader.changes("letter", revision)
        assert [node.text for node in changes.added] == ["d"]
        assert not changes.removed
        assert Letters.told == ["d 1"]
        nodes = graph.nodes("letter")
        assert [node.text for node in nodes] == list("acdegi")
        assert {node.text: node.order for node in nodes if node.text != "d"} == places
    graph.remove("d")
    assert [node.text for node in graph.nodes("letter")] == list("acegi")


def test_one_that_fails_begins_anew(graph: NodeGraph) -> None:
    graph.add([Document("a", id="a"), Document("b", id="b")])
    assert [node.text for node in graph.nodes("letter")] == ["a", "b"]
    graph.add(Document("bad", id="c"))
    with pytest.raises(TransformError, match="no such letter"):
        graph.build("letter", on_error="raise")
    graph.add(Document("c", id="c"))
    assert [node.text for node in graph.nodes("letter")] == ["a", "b", "c"]
    check_as_anew(graph, GROUPS)


def test_another_process_that_amended_the_file_is_noticed(tmp_path: Path) -> None:
    graphs = [NodeGraph(store=tmp_path / "graph.db", progress=False) for _ in range(2)]
    for graph in graphs:
        declare(graph, GROUPS)
    for number, text in enumerate(TEXTS[:5]):
        graphs[number % 2].add(Document(text, id=str(number)))
        graphs[number % 2].build("entity", "letter")
    for graph in graphs:
        check_as_anew(graph, GROUPS)
        graph.close()


LINES: dict[str, Declaration] = {
    "line": (str.splitlines, {}),
    "letter": (Letters(), {"parent": "line", "scope": "group"}),
}


@pytest.mark.slow
def test_changes_among_packed_nodes_give_what_is_built_anew(tmp_path: Path) -> None:
    def put(name: str, first: int, last: int, more: str = "") -> None:
        rows = [f"{n} tea\na {n} cup\n{n}. Both." for n in range(first, last)]
        (tmp_path / f"{name}.txt").write_text("\n".join([*rows, *more.splitlines()]))

    def packed(group: str) -> list[bool]:
        stored = [*store._derivations[group].values()]
        return [isinstance(derivation.nodes, PackedNodes) for derivation in stored]

    names = [f"d{at:02}" for at in range(17)]
    for at, name in enumerate(names):
        put(name, 500 * at, 500 * at + 500)
    store = MemoryStore()
    graph = NodeGraph(tmp_path, store=store, progress=False)
    declare(graph, LINES)
    assert len(graph.nodes("letter")) == 11  # of digits, and "a"
    assert len(graph.nodes("line")) == 25_500
    assert packed("line") == [False] * 14 + [True] * 3
    first, *_, last = graph.nodes("line")
    graph.link(last, first, weight=0.5)
    put(names[0], 3, 500, "new\nzen")  # from now on packed
    put(names[16], 8002, 8500, "new")  # as before
    put("later", 8500, 8600, "odd")
    (tmp_path / "d05.txt").rename(tmp_path / "moved.txt")
    (tmp_path / "d06.txt").unlink()
    done = graph.refresh()
    assert [len(ids) for ids in (done.added, done.updated, done.removed)] == [1, 2, 1]
    assert len(done.renamed) == 1
    document = graph.nodes("ROOT")[7]
    graph.update(Document(document.text, {"by": "Ann"}, id=document.id))
    check_as_anew(graph, LINES)
    assert sum(packed("line")) == 7
    assert packed("letter") == [False]  # what is amended is never packed
    source, target = graph.nodes("line")[-400], graph.nodes("line")[-1]
    for weight in (0.5, 0.25):
        graph.link(source, target, weight=weight)
        assert [link.weight for link in graph.links(source)] == [weight]
    graph.remove([document.id, target.document_id])  # with the link
    check_as_anew(graph, LINES)
    graph.remove([node.id for node in graph.nodes("ROOT")[1:]])  # few are left
    put(names[0], 3, 490, "zero")
    graph.refresh()
    check_as_anew(graph, LINES)
    held = {number for number, nodes in store._packed.items() if nodes}
    assert len(held) == sum(packed("line"))  # nothing is held that is gone
