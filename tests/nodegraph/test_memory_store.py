"""The store in memory against a simple model, under random writes."""

from typing import Any

import pytest
from hypothesis import settings
from store_machine import StoreMachine
from stress import amount

from nodekin.nodegraph import NodeGraph

TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=amount(20, 60), stateful_step_count=30)


@pytest.mark.parametrize("store", [{}, {"type": "map", "path": "x"}, 3, [], ("graph.db",), b"x"])
def test_what_is_no_store_is_named(store: Any) -> None:
    with pytest.raises(TypeError, match=r"path of a file, .*, or None for memory, not"):
        NodeGraph(store=store)


@pytest.mark.parametrize("address", ["mysql://db/x", "postgresql+psycopg://me:secret@db/x"])
def test_an_address_of_another_kind_is_no_file(address: str) -> None:
    with pytest.raises(ValueError, match="is no kind of server that holds a graph") as caught:
        NodeGraph(store=address)
    assert "secret" not in str(caught.value)
