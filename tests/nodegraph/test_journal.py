"""What a store tells of changes, from one revision to the next."""

import pytest
from store_machine import GROUP, Facts, facts, put_words, replay

from nodekin.nodegraph import ROOT, Document, NodeGraph, NodeStore


def test_a_journal_that_grew_too_long_gives_the_whole_group(store: NodeStore) -> None:
    copies: list[tuple[int, dict[str, Facts]]] = []
    for step in range(60):
        put_words(store, [f"{step}-{n}" for n in range(50)])
        copies.append((store.revision(GROUP), facts(list(store.nodes(GROUP)))))
    now = copies[-1][1]
    kinds = []
    for revision, copy in copies:
        changes = store.changes(GROUP, revision)
        replay(copy, changes)
        assert copy == now
        kinds.append(changes.complete)
    assert kinds[0] is True  # long ago
    assert kinds[-1] is False  # just now
    assert kinds == sorted(kinds, reverse=True)


def test_one_change_is_told_as_one_change(store: NodeStore) -> None:
    put_words(store, ["x", "y"])
    before = store.revision(GROUP)
    put_words(store, ["x", "z"])
    changes = store.changes(GROUP, before)
    assert (changes.complete, list(changes.removed)) == (False, ["a/y"])
    assert [node.id for node in changes.added] == ["a/z"]


def test_a_moved_node_is_removed_and_added(store: NodeStore) -> None:
    put_words(store, ["x", "y"])
    before = store.revision(GROUP)
    put_words(store, ["y", "x"])
    changes = store.changes(GROUP, before)
    assert sorted(changes.removed) == ["a/x", "a/y"]
    assert sorted(node.id for node in changes.added) == ["a/x", "a/y"]
    assert facts(changes.added) == facts(list(store.nodes(GROUP)))


def test_other_metadata_counts_as_a_change(store: NodeStore) -> None:
    put_words(store, ["x"], version=0)
    before = store.revision(GROUP)
    put_words(store, ["x"], version=1)
    changes = store.changes(GROUP, before)
    assert list(changes.removed) == ["a/x"]
    assert [node.metadata for node in changes.added] == [{"version": 1}]


def test_another_place_in_the_parent_counts_as_a_change() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add(Document("x y\nx y x", id="a"))
    graph.build("word")
    revision = graph.reader.revision("word")
    graph.add(Document("x y x", id="a"))
    nodes = graph.nodes("word")  # the second x: the same start and parent, further on in it
    assert [(n.start, n.offset) for n in nodes] == [(0, 0), (2, 2), (4, 4)]
    assert nodes[2].id in {node.id for node in graph.reader.changes("word", revision).added}


def test_writing_what_is_there_is_no_change(store: NodeStore) -> None:
    put_words(store, ["x", "y"])
    before = store.revision(GROUP)
    put_words(store, ["x", "y"])
    assert store.revision(GROUP) == before
    assert store.changes(GROUP, before).added == []


@pytest.mark.slow
def test_small_changes_after_a_large_one_are_told_alone(store: NodeStore) -> None:
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"tea {number}\nwater", id=str(number)) for number in range(3_000)])
    graph.build("line")
    before = store.revision(ROOT)
    for number in range(20):
        graph.update(Document(f"milk {number}\nwater", id=str(number)))
    changes = store.changes(ROOT, before)
    assert (changes.complete, len(changes.added)) == (False, 20)
    graph.build("line")
    after = store.revision(ROOT)
    graph.update(Document("cup\nwater", id="7"))
    assert [node.id for node in store.changes(ROOT, after).added] == ["7"]
