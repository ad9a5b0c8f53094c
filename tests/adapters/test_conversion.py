import pytest

from nodekin.adapters.conversion import (
    different_text,
    inherited_fields,
    input_positions,
    is_start,
    own_metadata,
    restore_inherited,
)
from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode


def test_positions_of_reranked_results():
    nodes = [Node("a", id="1"), Node("b", id="2"), Node("a again", id="1")]
    candidates = [ScoredNode(node, 0.0) for node in nodes]
    reranked = [ScoredNode(node, 1.0) for node in reversed(nodes)]
    assert input_positions(reranked, candidates) == [2, 1, 0]
    others = [ScoredNode(Node("copied", id="2"), 1.0), ScoredNode(Node("new", id="3"), 1.0)]
    assert input_positions(others, candidates) == [1, None]


def test_inherited_metadata_there_and_back():
    node = Node("a", {"page": 3, "own": 1}, inherited={"page": 2, "tags": ["x"], "lang": "en"})
    names, overridden = inherited_fields(node)
    assert (names, overridden) == (["tags", "lang"], {"page": 2})
    metadata = node.metadata
    assert restore_inherited(metadata, names, overridden) == node.inherited
    assert metadata == node.own_metadata


def test_what_a_text_loses_of_a_content():
    assert different_text(Node("a"), "a") == {}
    assert different_text(Node("a: 1", content={"a": 1}), "{'a': 1}") == {
        "text": "a: 1",
        "content": {"a": 1},
    }


def test_metadata_that_a_splitter_added():
    assert own_metadata({"page": 3, "topic": "tea", "n": 1}, {"page": 3, "topic": "x"}) == {
        "topic": "tea",
        "n": 1,
    }
    assert own_metadata({"flag": True, "n": 1}, {"flag": 1, "n": 1}) == {"flag": True}


@pytest.mark.parametrize(
    ("start", "expected"), [(4, True), (0, False), (-7, False), (None, False), ("4", False)]
)
def test_where_a_part_starts(start, expected):
    assert is_start(start, "tea", "hot tea") is expected
