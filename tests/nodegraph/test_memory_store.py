"""The store in memory against a simple model, under random writes."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import settings
from store_checks import check_store
from store_machine import StoreMachine
from stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph, split_sentences
from nodekin.nodegraph.memory_store import MemoryStore, PackedNodes

TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=amount(20, 60), stateful_step_count=30)


def test_neighbours_cost_the_same_in_a_long_document(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(MemoryStore, "read_links", lambda self, ids, **side: read.extend(ids))
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(["one\ntwo\nthree"])
    lines = graph.nodes("line")
    assert [graph.neighbours(n) for n in lines] == [
        (None, lines[1]),
        (lines[0], lines[2]),
        (lines[1], None),
    ]
    assert read == []  # of whole derivations


class PackingStore(MemoryStore):
    packs_from = 0


def test_parents_of_packed_nodes_are_known_without_making_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = NodeGraph(store=PackingStore(), progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add(["one two three\nfour five\nsix", "seven"])
    words, lines = graph.nodes("word"), graph.nodes("line")
    made: list[int] = []
    monkeypatch.setattr(PackedNodes, "__getitem__", lambda self, at: made.append(at))
    with graph.reader.reading("word"):
        parents = graph.reader.parent_ids([*(word.id for word in words), lines[0].id])
    assert parents == [*(word.parent_id for word in words), lines[0].parent_id]
    assert set(parents[:-1]) == {line.id for line in lines}
    assert made == []


def _heading(node: Node) -> list[Node]:
    return [Node(line, {"line": at}) for at, line in enumerate(node.text.splitlines())]


def _remove_in_vain(store: MemoryStore, document: str) -> None:
    with store.transaction():
        store.change_documents([], [document])
        raise KeyError(document)


def _written(store: MemoryStore) -> list[tuple[Any, ...]]:
    """Write to a graph on the store; return all of its nodes and their kin after each write."""
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("line", _heading)
    graph.create_node_group("sentence", split_sentences, parent="line")
    graph.create_node_group("copy", lambda text: ["copy of " + text] * 5)
    lines = [f"Tea {n}. It is hot? 茶是饮品。水。" for n in range(9)]
    written = []
    for documents in (
        [Document("\n".join(lines), {"by": "Ann"}, id=i) for i in "abc"],
        [Document("\n".join([*lines[:3], "New.", *lines[3:]]), {"by": "Bob"}, id="b")],
        [Document("Short.", id="c"), Document("", id="a")],
    ):
        graph.add(documents)
        for group in ("line", "sentence", "copy"):
            for node in graph.nodes(group):
                kin = node.parent, *graph.neighbours(node), *graph.find("ROOT")([node])
                children = [c.id for of in node.children.values() for c in of]
                written.append((node.__reduce__()[1], [k and k.id for k in kin], children))
        with pytest.raises(KeyError):
            _remove_in_vain(store, "b")
    graph.remove("b")
    return [*written, [node.id for node in graph.nodes("sentence")]]


def test_packed_nodes_are_the_same() -> None:
    packing = PackingStore()
    assert _written(packing) == _written(MemoryStore())
    sentences = packing.derivation("sentence", "c")
    assert sentences is not None
    assert not isinstance(sentences.nodes, PackedNodes)  # a single one


def test_packed_nodes_take_less_than_half_of_the_memory() -> None:
    text = "\n".join(f"line {number} of a long text about green tea" for number in range(8000))

    def size(store: MemoryStore) -> int:
        graph = NodeGraph(store=store, progress=False)
        graph.add(Document(text, id="tea"))
        graph.create_node_group("line", str.splitlines)
        tracemalloc.start()
        graph.build("line")
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size

    assert 2 * size(PackingStore()) < size(MemoryStore())


@pytest.mark.parametrize("store", [{}, {"type": "map", "path": "x"}, 3, [], ("graph.db",), b"x"])
def test_what_is_no_store_is_named(store: Any) -> None:
    with pytest.raises(TypeError, match=r"path of a file, .*, or None for memory, not"):
        NodeGraph(store=store)


@pytest.mark.parametrize("address", ["mysql://db/x", "postgresql+psycopg://me:secret@db/x"])
def test_an_address_of_another_kind_is_no_file(address: str) -> None:
    with pytest.raises(ValueError, match="is no kind of server that holds a graph") as caught:
        NodeGraph(store=address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("store", [MemoryStore, PackingStore])
def test_store_in_memory_passes_checks(store: type[MemoryStore]) -> None:
    check_store(store)
