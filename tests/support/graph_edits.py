"""Test that a graph equals a new graph of the same documents after any sequence of changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodekin.nodegraph import Document, Node, NodeGraph

IDS = st.sampled_from(["a", "b", "c"])
LINES = st.sampled_from(["x y", "y", "x y x", "z", "", "bad", "x"])
TEXTS = st.lists(LINES, max_size=4).map("\n".join)
METADATA = st.sampled_from([{}, {"topic": "tea"}, {"topic": "ice"}])


def strict_words(text: str) -> list[str]:
    if "bad" in text:
        raise ValueError(text)
    return text.split()


def with_topic(node: Node) -> list[Node]:
    assert node.parent is not None
    return [Node(f"{node.metadata.get('topic')} {node.parent.text}", {"of": node.id})]


def without_z(text: str) -> list[str]:
    return [] if text == "z" else [text.upper()]


def both_ways(text: str) -> list[str]:
    return [*text.split(), *reversed(text.split())]


RULES: dict[str, list[tuple[Callable[..., Any], dict[str, Any]]]] = {
    "line": [(str.splitlines, {}), (both_ways, {})],
    "word": [(strict_words, {"parent": "line"}), (both_ways, {"parent": "line"}), (without_z, {})],
    "topic": [(with_topic, {"parent": "word", "trans_node": True})],
    "loud": [(without_z, {"parent": "line"}), (without_z, {"parent": "word", "num_workers": 2})],
}


def facts(node: Node) -> tuple[Any, ...]:
    place = (node.start, node.end, node.offset, node.parent_id, node.document_id)
    return node.id, node.text, node.content, node.metadata, *place


class GraphEdits(RuleBasedStateMachine):
    """A state machine that makes random changes to a graph.

    After each step, the graph is compared with a new graph of the same documents.
    """

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[str, Document] = {}
        self.rules = dict.fromkeys(RULES, 0)
        self.graph = self.new(self.place())
        self.copies: dict[str, tuple[int, dict[str, tuple[Any, ...]]]] = {}
        self.links: set[tuple[str, str]] = set()

    def place(self) -> Path | str | None:
        """Return the store for the graph."""
        return None

    def new(self, store: Path | str | None = None) -> NodeGraph:
        graph = NodeGraph(on_error="skip", progress=False, store=store)
        for name, number in self.rules.items():
            transform, options = RULES[name][number]
            graph.create_node_group(name, transform, **options)
        return graph

    @rule(i=IDS, text=TEXTS, metadata=METADATA)
    def add(self, i: str, text: str, metadata: dict[str, str]) -> None:
        self.documents[i] = Document(text, metadata, id=i)
        self.graph.add(self.documents[i])

    @rule(i=IDS)
    def remove(self, i: str) -> None:
        if self.documents.pop(i, None):
            self.graph.remove(i)
            self.links = {ends for ends in self.links if i not in ends}

    @rule(start=IDS, end=IDS, exists=st.booleans())
    def link(self, start: str, end: str, exists: bool) -> None:
        if {start, end} <= self.documents.keys():
            change = self.graph.link if exists else self.graph.unlink
            change(start, end)
            self.links.discard((start, end))
            self.links |= {(start, end)} if exists else set()

    @invariant()
    def links_connect_existing_documents(self) -> None:
        for i in self.documents:
            assert {k.id for k in self.graph.linked(i)} == {t for s, t in self.links if s == i}
            sources = {k.id for k in self.graph.linked(i, incoming=True)}
            assert sources == {s for s, t in self.links if t == i}

    @rule(name=st.sampled_from(list(RULES)), number=st.integers(0, 2))
    def replace(self, name: str, number: int) -> None:
        self.rules[name] = number % len(RULES[name])
        transform, options = RULES[name][self.rules[name]]
        self.graph.create_node_group(name, transform, replace=True, **options)

    @rule(number=st.integers(0, 1))
    def replace_between_looks(self, number: int) -> None:
        self.look("word")
        self.replace("word", number)
        self.look("word")

    @rule(name=st.sampled_from([*RULES, "ROOT"]))
    def look(self, name: str) -> None:
        anew = self.new()
        anew.add(self.documents.values())
        assert [facts(n) for n in self.graph.nodes(name)] == [facts(n) for n in anew.nodes(name)]
        orders = [node.order for node in self.graph.nodes(name)]
        assert orders == sorted(set(orders))
        for group in anew.reader.lineage(name):
            failed = {f.document for f in self.graph.failures if f.group == group.name}
            assert failed == {f.document for f in anew.failures if f.group == group.name}

    @rule(name=st.sampled_from(list(RULES)))
    def walk(self, name: str) -> None:
        for node in self.graph.nodes(name):
            assert node.parent is not None
            assert node in node.parent.children[name]
            assert node in self.graph.find(name)(node.root)
            assert self.graph.find(name)(node) == [node]

    @rule(name=st.sampled_from([*RULES, "ROOT"]))
    def follow(self, name: str) -> None:
        """Update a copy of a group only from the reported changes, in the same way as an index."""
        revision, copy = self.copies.get(name, (0, {}))
        with self.graph.reader.reading(name):
            changes = self.graph.reader.changes(name, revision)
            now = {node.id: (*facts(node), node.order) for node in self.graph.nodes(name)}
        if changes.complete:
            copy.clear()
        for i in changes.removed:
            copy.pop(i, None)
        copy.update((node.id, (*facts(node), node.order)) for node in changes.added)
        assert copy == now
        self.copies[name] = (changes.revision, copy)

    @invariant()
    def spans_are_true(self) -> None:
        for name, summary in self.graph.groups.items():
            if summary.built:
                for node in self.graph.nodes(name):
                    if node.start is not None:
                        assert node.root.text[node.start : node.end] == node.text
