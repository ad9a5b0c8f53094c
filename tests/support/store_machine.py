"""A store under random writes, compared with dictionaries."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodekin.nodegraph import Document, Link, Node
from nodekin.nodegraph.derivation import Derivation, Stamp
from nodekin.nodegraph.storage.graph_store import GraphStore
from support.stores import memory_store

GROUP = "word"
IDS = st.sampled_from(["a", "b", "c", "d"])
WORDS = st.lists(st.sampled_from(["x", "y", "z", "w"]), max_size=5, unique=True)

Facts = tuple[str, int, dict[str, object]]


def facts(nodes: Sequence[Node]) -> dict[str, Facts]:
    return {node.id: (node.text, node.order, node.metadata) for node in nodes}


def stamp(words: Sequence[str]) -> Stamp:
    return Stamp(" ".join(words), "rule", "")


def derived(root: Node, words: Sequence[str], version: int = 0) -> Derivation:
    """Return a node per word. Two words each have one parent, named 0, 1, ..."""
    nodes = tuple(
        Node(
            word,
            {"version": version},
            id=f"{root.id}/{word}",
            group=GROUP,
            document_id=root.id,
            parent_id=f"{root.id}:{at // 2}",
            order=root.order + at,
        )
        for at, word in enumerate(words)
    )
    return Derivation(stamp(words), nodes)


class StoreMachine(RuleBasedStateMachine):
    def make(self) -> GraphStore:
        return memory_store()

    def __init__(self) -> None:
        super().__init__()
        self.store = self.make()
        self.links: dict[tuple[str, str, str], float] = {}
        self.texts: dict[str, str] = {}  # in order of arrival
        self.words: dict[str, tuple[list[str], int]] = {}  # with the version
        self.copies: list[tuple[str, int, dict[str, Facts]]] = []

    @rule(texts=st.dictionaries(IDS, st.sampled_from(["one", "two"]), max_size=3))
    def put_documents(self, texts: dict[str, str]) -> None:
        self.store.change_documents([Document(text, id=i) for i, text in texts.items()])
        self.texts.update(texts)

    @rule(ids=st.lists(IDS, max_size=3))
    def remove_documents(self, ids: list[str]) -> None:
        self.store.change_documents([], remove=ids)
        for i in ids:
            self.texts.pop(i, None)
            self.words.pop(i, None)
        self.drop_loose_links()

    @rule(words=st.dictionaries(IDS, WORDS, max_size=3), version=st.integers(0, 1))
    def put_derivations(self, words: dict[str, list[str]], version: int) -> None:
        known = {i: each for i, each in words.items() if i in self.texts}
        roots = {i: self.store.get([i])[0] for i in known}
        self.store.put_derivations(
            GROUP, {i: derived(root, known[i], version) for i, root in roots.items() if root}
        )
        self.words.update({i: (each, version) for i, each in known.items()})
        self.drop_loose_links()

    @rule(at=st.integers(0, 99), to=st.integers(0, 99), kind=st.sampled_from("rs"))
    def link(self, at: int, to: int, kind: str) -> None:
        if nodes := self.existing():
            source, target = nodes[at % len(nodes)], nodes[to % len(nodes)]
            self.store.link([Link(source, target, kind, at)])
            self.links[source, target, kind] = at

    @rule(at=st.integers(0, 99))
    def unlink(self, at: int) -> None:
        if self.links:
            key = list(self.links)[at % len(self.links)]
            self.store.unlink([Link(*key), Link("never", "a", "r")])
            del self.links[key]

    @rule(group=st.sampled_from(["ROOT", GROUP]))
    def copy(self, group: str) -> None:
        copy = facts(list(self.store.nodes(group)))
        self.copies.append((group, self.store.revision(group), copy))

    def existing(self) -> list[str]:
        return [*self.texts, *(f"{i}/{w}" for i, (words, _) in self.words.items() for w in words)]

    def drop_loose_links(self) -> None:
        ids = {*self.existing()}
        self.links = {k: w for k, w in self.links.items() if {k[0], k[1]} <= ids}

    @invariant()
    def has_the_links_of_existing_nodes(self) -> None:
        ids = self.existing()
        for incoming in (False, True):
            found = self.store.links(ids, incoming=incoming)
            kept = {(k.source, k.target, k.type): k.weight for links in found for k in links}
            assert kept == self.links
            for i, links in zip(ids, found, strict=True):
                assert {(k.target if incoming else k.source) for k in links} <= {i}

    @invariant()
    def has_the_nodes_of_the_model(self) -> None:
        assert [(n.id, n.text) for n in self.store.nodes("ROOT")] == list(self.texts.items())
        assert list(self.store.stamps("ROOT")) == list(self.texts)
        built = {i: self.words[i] for i in self.texts if i in self.words}
        expected = [
            (f"{i}/{word}", word, {"version": version})
            for i, (words, version) in built.items()
            for word in words
        ]
        nodes = list(self.store.nodes(GROUP))
        assert [(n.id, n.text, n.metadata) for n in nodes] == expected
        assert [self.store.count(group) for group in ("ROOT", GROUP)] == [
            len(self.texts),
            len(expected),
        ]
        assert [n.order for n in nodes] == sorted({n.order for n in nodes})
        stamps = {i: stamp(words) for i, (words, _) in built.items()}
        assert list(self.store.stamps(GROUP).items()) == list(stamps.items())
        for i in "abcd":
            names = [i, *(f"{i}/{word}" for word in "xyzw")]
            found = [node.id if node else None for node in self.store.get(names)]
            words = built.get(i, ([], 0))[0]
            assert found == [name if name in self.existing() else None for name in names]
            for at in range(3):
                parent = Node("", id=f"{i}:{at}", document_id=i)
                children = [node.text for node in self.store.children(GROUP, parent)]
                assert children == words[2 * at : 2 * at + 2]
            assert self.store.stamps(GROUP, [i]) == {k: s for k, s in stamps.items() if k == i}
            made = self.store.derivations(GROUP, [i])
            assert {k: d.stamp for k, d in made.items()} == self.store.stamps(GROUP, [i])

    @invariant()
    def a_copy_catches_up_from_every_revision(self) -> None:
        for group, revision, copy in self.copies:
            changes = self.store.changes(group, revision)
            assert changes.revision == self.store.revision(group) >= revision
            updated = {} if changes.complete else dict(copy)
            for i in changes.removed:
                updated.pop(i, None)
            assert {**updated, **facts(changes.added)} == facts(list(self.store.nodes(group)))
