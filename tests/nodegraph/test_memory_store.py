"""The store in memory against a simple model, under random writes."""

from typing import Any

import pytest
from hypothesis import settings
from store_machine import StoreMachine
from stress import amount

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.memory_store import MemoryStore

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


@pytest.mark.parametrize("store", [{}, {"type": "map", "path": "x"}, 3, [], ("graph.db",), b"x"])
def test_what_is_no_store_is_named(store: Any) -> None:
    with pytest.raises(TypeError, match=r"path of a file, .*, or None for memory, not"):
        NodeGraph(store=store)


@pytest.mark.parametrize("address", ["mysql://db/x", "postgresql+psycopg://me:secret@db/x"])
def test_an_address_of_another_kind_is_no_file(address: str) -> None:
    with pytest.raises(ValueError, match="is no kind of server that holds a graph") as caught:
        NodeGraph(store=address)
    assert "secret" not in str(caught.value)
