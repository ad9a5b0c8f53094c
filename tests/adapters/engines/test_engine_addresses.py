"""Engines by their addresses."""

from typing import Any

import pytest
from memory_engine import MemoryEngine

from nodekin.adapters.engines.milvus import MilvusEngine
from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.graph_reader import as_engine


def test_an_address_or_an_engine_is_taken() -> None:
    assert isinstance(as_engine("milvus://host"), MilvusEngine)
    engine = MemoryEngine()
    assert as_engine(engine) is engine


@pytest.mark.parametrize("index", ["milvis://host", "milvus", "vectors.db", "http://host:19530"])
def test_other_addresses_are_refused(index: str) -> None:
    with pytest.raises(ValueError, match=r"names no engine that searches vectors.*'milvus'"):
        NodeGraph(index=index)


def test_a_password_is_not_in_the_message() -> None:
    with pytest.raises(ValueError, match="names no engine") as raised:
        NodeGraph(index="milvis://me:secret@host")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("index", [7, {"type": "milvus"}])
def test_other_objects_are_refused(index: Any) -> None:
    with pytest.raises(TypeError, match=r'write NodeGraph\(store="graph.db", index="milvus://'):
        NodeGraph(index=index)
