"""A store against a model as simple as can be, under random writes."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodekin.nodegraph import Document, Link, Node
from nodekin.nodegraph.derivation import Derivation, Stamp
from nodekin.nodegraph.storage.graph_store import Changes, GraphStore
from support.stores import memory_store

GROUP = "word"


IDS = st.sampled_from(["a", "b", "c", "d"])


WORDS = st.lists(st.sampled_from(["x", "y", "z", "w"]), max_size=5, unique=True)


Facts = tuple[str, int, dict[str, object]]


def facts(nodes: Sequence[Node]) -> dict[str, Facts]:
    return {node.id: (node.text, node.order, node.metadata) for node in nodes}


def replay(copy: dict[str, Facts], changes: Changes) -> None:
    """Bring a copy of a group up to date as an index does."""
    if changes.complete:
        copy.clear()
    for i in changes.removed:
        copy.pop(i, None)
    copy.update(facts(changes.added))


def derived(root: Node, words: Sequence[str], version: int = 0) -> Derivation:
    """Make a node a word; two words a parent, the parents being called 0, 1, ..."""
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
    return Derivation(Stamp(" ".join(words), "rule", ""), nodes)


class StoreMachine(RuleBasedStateMachine):
    def make(self) -> GraphStore:
        return memory_store()

    def __init__(self) -> None:
        super().__init__()
        self.store = self.make()
        self.links: dict[tuple[str, str, str], float] = {}
        self.texts: dict[str, str] = {}  # in order of arrival
        self.words: dict[str, tuple[list[str], int]] = {}
        self.copies: dict[str, list[tuple[int, dict[str, Facts]]]] = {"ROOT": [], GROUP: []}

    @rule(texts=st.dictionaries(IDS, st.sampled_from(["one", "two"]), max_size=3))
    def put_documents(self, texts: dict[str, str]) -> None:
        self.store.change_documents([Document(text, id=i) for i, text in texts.items()])
        self.texts.update(texts)

    def there(self) -> list[str]:
        derived = [f"{i}/{word}" for i, (words, _) in self.words.items() for word in words]
        return [*self.texts, *derived]

    @rule(at=st.integers(0, 99), to=st.integers(0, 99), kind=st.sampled_from("rs"))
    def link(self, at: int, to: int, kind: str) -> None:
        nodes = self.there()
        if nodes:
            source, target = nodes[at % len(nodes)], nodes[to % len(nodes)]
            self.store.link([Link(source, target, kind, at)])
            self.links[source, target, kind] = at

    @rule(at=st.integers(0, 99))
    def unlink(self, at: int) -> None:
        if self.links:
            key = list(self.links)[at % len(self.links)]
            self.store.unlink([Link(*key), Link("never", "a", "r")])
            del self.links[key]

    def drop_loose_links(self) -> None:
        there = set(self.there())
        self.links = {k: w for k, w in self.links.items() if {k[0], k[1]} <= there}

    @invariant()
    def has_the_links_whose_nodes_are_there(self) -> None:
        ids = self.there()
        for incoming in (False, True):
            found = self.store.links(ids, incoming=incoming)
            kept = {(k.source, k.target, k.type): k.weight for links in found for k in links}
            assert kept == self.links
            for i, links in zip(ids, found, strict=True):
                assert {(k.target if incoming else k.source) for k in links} <= {i}

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

    @rule(group=st.sampled_from(["ROOT", GROUP]))
    def copy(self, group: str) -> None:
        copy = facts(list(self.store.nodes(group)))
        self.copies[group].append((self.store.revision(group), copy))

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert [(n.id, n.text) for n in self.store.nodes("ROOT")] == list(self.texts.items())
        assert self.store.ids("ROOT") == list(self.texts)
        expected = [
            (f"{i}/{word}", word, {"version": self.words[i][1]})
            for i in self.texts
            if i in self.words
            for word in self.words[i][0]
        ]
        nodes = list(self.store.nodes(GROUP))
        assert [(n.id, n.text, n.metadata) for n in nodes] == expected
        assert self.store.count("ROOT") == len(self.texts)
        assert self.store.count(GROUP) == len(expected)
        orders = [node.order for node in nodes]
        assert orders == sorted(set(orders))

    @invariant()
    def finds_every_node_and_no_other(self) -> None:
        for i in "abcd":
            (root,) = self.store.get([i])
            assert (root.text if root else None) == self.texts.get(i)
            words = self.words.get(i, ([], 0))[0]
            for word in "xyzw":
                (node,) = self.store.get([f"{i}/{word}"])
                assert (node.text if node else None) == (word if word in words else None)
            for at in range(3):
                parent = Node("", id=f"{i}:{at}", document_id=i)
                children = [node.text for node in self.store.children(GROUP, parent)]
                assert children == words[2 * at : 2 * at + 2]
            made = self.store.derivations(GROUP, [i]).get(i)
            assert (made.stamp.key if made else None) == (
                " ".join(words) if i in self.words else None
            )
            stamp = Stamp(" ".join(words), "rule", "")
            assert self.store.stamps(GROUP, [i]) == ({i: stamp} if i in self.words else {})
        assert list(self.store.stamps(GROUP)) == [i for i in self.texts if i in self.words]
        assert list(self.store.stamps("ROOT")) == list(self.texts)

    @invariant()
    def a_copy_catches_up_from_every_revision(self) -> None:
        for group, copies in self.copies.items():
            now = facts(list(self.store.nodes(group)))
            for revision, copy in copies:
                changes = self.store.changes(group, revision)
                assert changes.revision == self.store.revision(group) >= revision
                caught_up = dict(copy)
                replay(caught_up, changes)
                assert caught_up == now
